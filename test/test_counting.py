"""Elements are counted beyond 2**31, lines of whole numbers meet their ends, and what integers are divided by."""

import numpy as np
import pytest

from mini import Context, Tensor, dtypes
from mini.ir import graph

MANY = 2**31 + 5


def test_what_counts_is_as_wide_as_it_must_be():
  assert graph.counter(2**31 - 1) is dtypes.int32 and graph.counter(2**31) is dtypes.int64
  assert Tensor.linspace(0, MANY - 1, MANY, dtype=dtypes.float64)[2**31 + 2].item() == 2**31 + 2
  assert Tensor.arange(MANY)[-1].item() == MANY - 1
  ones = Tensor.ones(1, 1, dtype=dtypes.int8).expand(2, MANY)
  assert [ones.triu()[1, n].item() for n in (0, 1, 2**31)] == [0, 1, 1]
  assert [ones.tril(2**31)[0, n].item() for n in (0, 2**31, 2**31 + 1)] == [1, 1, 0]
  assert Tensor.eye(2, MANY, dtype=dtypes.int8)[1, 2**31 + 1].item() == 0


@pytest.mark.full
def test_positions_and_counts_beyond_32_bits():
  x = Tensor.arange(MANY)
  assert (x == MANY - 1).argmax().item() == MANY - 1
  assert (x != MANY - 2).argmin().item() == MANY - 2
  assert (x >= 0).sum().item() == (x >= 0).count_nonzero().item() == MANY
  assert Tensor.ones(1, dtype=dtypes.int8).expand(MANY).sum().item() == MANY
  assert abs(Tensor.ones(1).expand(MANY).mean().item() - 1) < 1e-6
  bytes_ = Tensor.zeros(MANY, dtype=dtypes.int8).contiguous().realize()
  with pytest.raises(IndexError, match=f"out of bounds for an axis of size {MANY}"):
    bytes_.gather(0, Tensor([MANY + 7])).realize()


@pytest.mark.parametrize("index", [2**31 + 12, 2**32 + 3, -(2**31) - 7, 2**40])
def test_an_index_beyond_32_bits_is_not_another_index(index):
  x = Tensor([1.0, 2.0, 3.0]).realize()
  with pytest.raises(IndexError, match="an index beyond 32 bits is out of bounds for an axis of size 3"):
    x.gather(0, Tensor([index])).realize()


WHOLE = [dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8]


def test_a_line_of_whole_numbers_meets_its_end():
  ends, counts = [(0, 10), (3, 17), (100, 1), (0, 127), (5, 5)], (1, 2, 3, 7, 10, 11, 23, 50, 100)
  lines = {(d, *e, n): Tensor.linspace(*e, n, dtype=d) for d in WHOLE for e in ends for n in counts}
  Tensor.realize(*lines.values())
  for (d, start, end, n), t in lines.items():
    line = t.tolist()
    assert len(line) == n and line[0] == start and line[-1] == (end if n > 1 else start), (d, start, end, n)
  assert Tensor.linspace(0, 10, 7, dtype=dtypes.int32).tolist() == [0, 1, 3, 5, 6, 8, 10]  # PyTorch's
  assert Tensor.linspace(-3.9, 3.9, 4, dtype=dtypes.int64).tolist() == [-3, -1, 1, 3]


@pytest.mark.full
def test_lines_are_those_of_pytorch():
  torch = pytest.importorskip("torch")
  for d in WHOLE:
    for start, end in [
      (0, 10),
      (-10, 10),
      (3, 17),
      (100, -100),
      (5, 5),
      (1, 127),
      (0.5, 4.7),
      (-3.9, 3.9),
      (-7, 90),
    ]:
      if d is dtypes.uint8 and start < 0 or d is dtypes.uint8 and end < 0:
        continue
      for n in (0, 1, 2, 3, 4, 5, 7, 10, 11, 23, 50, 100, 129):
        expected = torch.linspace(start, end, n, dtype=getattr(torch, d.name)).numpy()
        assert np.array_equal(Tensor.linspace(start, end, n, dtype=d).numpy(), expected), (d, start, end, n)


DIVISIONS = {
  "//": lambda a, b: a // b,
  "%": lambda a, b: a % b,
  "floor": lambda a, b: a.div(b, rounding_mode="floor"),
  "trunc": lambda a, b: a.div(b, rounding_mode="trunc"),
  "fmod": lambda a, b: a.fmod(b),
  "remainder": lambda a, b: a.remainder(b),
}


@pytest.mark.parametrize("name", DIVISIONS)
def test_integers_are_not_divided_by_the_number_0(name):
  divide = DIVISIONS[name]
  for error in (ZeroDivisionError, RuntimeError):  # Python's, and PyTorch's
    with pytest.raises(error, match="divided by 0"):
      divide(Tensor([7, -7]), 0)
  with pytest.raises(ZeroDivisionError):
    divide(Tensor([7], dtype=dtypes.uint8), False)
  zero = Tensor([0, 3])
  assert divide(Tensor([7, 8]), zero)[0].item() == 0  # of a tensor nobody looks for zeros, but with CHECK=1
  with Context(CHECK="1"), pytest.raises(ZeroDivisionError, match=r"divided by 0(.|\n)*b: i64\[2\]"):
    divide(Tensor([7, 8]), zero)
  assert not np.isfinite(divide(Tensor([7.0]), 0).item())


@pytest.mark.sample(2)
@pytest.mark.parametrize("d", [dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64])
def test_the_least_integer_by_minus_one_wraps(d):
  least = dtypes.iinfo(d).min
  x, minus = Tensor([least] * 9, dtype=d), Tensor([-1] * 9, dtype=d)
  assert (x // minus).tolist() == (x // -1).tolist() == [least] * 9
  assert (x % minus).tolist() == (x.fmod(minus)).tolist() == [0] * 9
