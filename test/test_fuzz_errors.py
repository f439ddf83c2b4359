"""No internal error reaches a user: see fuzz_errors.py. What is refused, by the class that PyTorch's users catch."""

import fuzz_errors
import pytest

from mini import MiniError, Tensor, linalg, nn
from mini.types import ArgumentError, AxisError, DTypeError, RangeError, ShapeError

F = nn.functional


def test_classes_are_those_that_users_of_pytorch_and_of_numpy_catch():
  for error, classes in {
    ShapeError: (ValueError, RuntimeError),
    AxisError: (IndexError, ValueError, RuntimeError),
    DTypeError: (TypeError, RuntimeError),
    RangeError: (OverflowError, RuntimeError),
    ArgumentError: (ValueError, RuntimeError),
    linalg.LinAlgError: (RuntimeError,),
  }.items():
    assert issubclass(error, MiniError)
    assert all(issubclass(error, c) for c in classes)


REFUSED = {
  "Tensor(1.0).narrow(0, 0, 1)": IndexError,
  "Tensor(1.0).select(0, 0)": IndexError,
  "Tensor(1.0).unbind()": IndexError,
  "x.unfold(2, 2, 8)": IndexError,
  "x.unfold(0, 5, 1)": RuntimeError,
  "x.sum(7)": IndexError,
  "x.index_select(0, Tensor([[0]]))": IndexError,
  "x.avg_pool2d(2, divisor_override=0)": RuntimeError,
  "x.huber_loss(x, delta=0)": ValueError,
  "x.triplet_margin_loss(x, x, margin=-1)": ValueError,
  "Tensor([1.0, 2.0]).nll_loss(Tensor(0.0))": RuntimeError,
  "Tensor([True]) - Tensor([True])": RuntimeError,
  "-Tensor([True])": RuntimeError,
  "nn.Conv2d(1, 1, 3, padding='typo')": ValueError,
  "nn.Conv2d(1, 1, 3, stride=2, padding='same')": ValueError,
  "nn.RNN(3, 0)": ValueError,
  "nn.LSTM(3, 4, num_layers=0)": ValueError,
  "linalg.vander(Tensor(1.0), 'a')": TypeError,
  "F.embedding(Tensor([0]), None)": TypeError,
  **{f"nn.optim.{name}([x], lr=-1.0)": ValueError for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Adamax")},
  **{f"nn.optim.{name}([x], weight_decay=-1.0)": ValueError for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Adamax")},
  **{f"nn.optim.{name}([x], eps=-1.0)": ValueError for name in ("Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Adamax")},
  **{f"nn.optim.{name}([x], betas=(1.0, 0.9))": ValueError for name in ("Adam", "AdamW", "NAdam", "RAdam", "Adamax")},
  "nn.optim.SGD([x], momentum=-0.1)": ValueError,
  "nn.optim.RMSprop([x], momentum=-0.1)": ValueError,
  "nn.optim.SGD([x], nesterov=True)": ValueError,
}  # fmt: skip


@pytest.mark.parametrize("call", REFUSED)
def test_is_refused(call):
  with pytest.raises(REFUSED[call]) as e:
    eval(
      call,
      {
        "Tensor": Tensor,
        "x": Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True),
        "nn": nn,
        "F": F,
        "linalg": linalg,
      },
    )
  assert isinstance(e.value, MiniError), e.value


def test_works_where_pytorch_does():
  assert Tensor(3.0).unfold(0, 1, 1).tolist() == [3.0]
  assert Tensor(3.0).index_select(0, Tensor([0])).item() == 3.0
  assert Tensor([[1.0, 2.0]]).narrow(1, Tensor(1), 1).tolist() == [[2.0]]
  assert Tensor(0.5).kl_div(Tensor(0.5), reduction="batchmean").shape == ()


def test_errors_from_inside_say_what_was_given_and_those_of_users_stay():
  def broken(a, b):
    raise KeyError("mine")

  x = Tensor([1.0])
  with pytest.raises(KeyError, match="mine"):
    x.triplet_margin_with_distance_loss(x, x, broken)
  with pytest.raises(MiniError, match=r"(?s)scaled_dot_product_attention: .*f32\[\].*test_fuzz_errors"):
    Tensor(1.0).scaled_dot_product_attention(Tensor(1.0), Tensor(1.0))


@pytest.mark.full
def test_arguments_without_sense(seed):
  found = fuzz_errors.fuzz(seed, 40, seconds=60)
  assert not found, "\n".join(found.values())
