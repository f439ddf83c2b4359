"""Named operations, the walk through a graph, and NumPy in its middle."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from evaluator import evaluate

import mini
from mini import Context, Tensor, dtypes
from mini.ir.extern import Extern
from mini.text.lexer import TextError
from mini.text.parser import parse
from mini.text.printer import graph_program, text
from mini.types import DTypeError, MiniError, ShapeError


@mini.op
def softplus(x):
  return (x.exp() + 1).log()


@mini.op
def split(x, at=1):
  return x[:at], x[at:]


@pytest.fixture(params=["CPU", "INTERP"])
def device(request):
  with Context(DEV=request.param):
    yield request.param


# ---------------------------------------------------------------- named operations


def test_an_operation_is_one_node_called_as_its_variable():
  x = Tensor([0.0, 1.0])
  y = softplus(x * 3)
  *_, node = mini.walk(y)
  assert (node.op, node.name, node.shape, node.dtype) == ("softplus", "y", (2,), dtypes.float32)
  assert [i.op for i in node.inputs] == ["mul"] and node.body is None
  assert [n.op for n in mini.walk(y)] == ["buffer", "const", "mul", "softplus"]
  lines = mini.inspect(y + y).splitlines()
  assert lines[3].startswith("%y = softplus %2 ") and lines[4].startswith("%4 = add %y, %y ")
  assert "y = softplus" in mini.visualize(y) and "log" not in mini.visualize(y)


def test_several_results_have_their_names_and_two_of_one_name_have_numbers():
  head, tail = split(Tensor([1.0, 2.0, 3.0]), at=2)
  assert [list(mini.walk(t))[-1].name for t in (head, tail)] == ["head", "tail"]
  several = split(Tensor([1.0, 2.0]))
  assert [list(mini.walk(t))[-1].name for t in several] == ["", ""]
  a = b = softplus(Tensor([1.0]))
  assert list(mini.walk(b))[-1].name == "a" and a is b
  z = softplus(Tensor([1.0]))
  z = softplus(z)
  assert [line.split(" ")[0] for line in mini.inspect(z).splitlines()] == ["%0", "%1", "%2"]


def test_the_body_is_fused_and_named_in_what_is_shown(capfd, device):
  x = Tensor([0.5, 1.5])
  with Context(SHOW="graph"):
    y = softplus(x * 2)
    before = mini.stats["kernels"]
    (y * y).realize()
  assert mini.stats["kernels"] == before + 1
  shown = capfd.readouterr().err
  assert "  # y = softplus\n" in shown and parse(shown).op == "graph"


def test_its_gradient_is_that_of_its_body_or_the_given_one(device):
  x = Tensor([0.5, -1.0])
  sigmoid = 1 / (1 + np.exp(-x.numpy()))
  assert np.allclose(mini.grad(lambda x: softplus(x).sum())(x).numpy(), sigmoid, rtol=1e-6)
  twice = mini.grad(lambda x: mini.grad(lambda x: softplus(x).sum())(x).sum())(x)
  assert np.allclose(twice.numpy(), sigmoid * (1 - sigmoid), rtol=1e-5)

  @mini.op(name="straight", gradient=lambda g, out, x: g * 7)
  def rounded(x):
    return x.round()

  assert mini.grad(lambda x: rounded(x).sum())(x).tolist() == [7.0, 7.0]
  assert list(mini.walk(rounded(x)))[-1].op == "straight"
  w = Tensor([2.0], requires_grad=True)
  (softplus(w) * 3).sum().backward()
  assert np.allclose(w.grad.item(), 3 / (1 + np.exp(-2)), rtol=1e-6)


def test_a_lowering_counts_on_its_devices_and_a_replacement_everywhere():
  @mini.op
  def f(x):
    return x + 1

  @f.lowering("INTERP")
  def _(x):
    return x + 2

  assert f(Tensor([0.0], device="CPU")).item() == 1 and f(Tensor([0.0], device="INTERP")).item() == 2
  with f.replaced(by=lambda x: x + 3):
    inside = f(Tensor([0.0], device="INTERP"))
    with f.replaced(by=lambda x: x + 4):
      assert f(Tensor([0.0])).item() == 4
    assert f(Tensor([0.0])).item() == 3
  assert list(mini.walk(inside))[-1].op == "f"
  assert f(Tensor([0.0], device="CPU")).item() == 1 and inside.item() == 3


def test_a_routine_is_traced_again_under_a_replacement(device):
  @mini.op
  def f(x):
    return x + 1

  step = mini.jit(lambda x: f(x) * 10)
  x = Tensor([0.0])
  assert [step(x).item() for _ in range(3)] == [10.0] * 3
  with f.replaced(by=lambda x: x + 2):
    assert [step(x).item() for _ in range(3)] == [20.0] * 3
  assert step(x).item() == 10.0


def test_vmap_and_checkpoint_go_through_it(device):
  x = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
  want = np.log(np.exp(x) + 1)
  assert np.allclose(mini.vmap(softplus)(Tensor(x)).numpy(), want, rtol=1e-6)
  t = Tensor(x, requires_grad=True)
  mini.checkpoint(lambda x: softplus(softplus(x)), t).sum().backward()
  s = 1 / (1 + np.exp(-x))
  assert np.allclose(t.grad.numpy(), s / (1 + np.exp(-want)), rtol=1e-5)


def test_equal_calls_of_an_operation_are_one_program(device):
  for k in range(3):
    y = softplus(Tensor([float(k), 1.0]))
    before = mini.stats["schedules"]
    y.realize()
    assert k == 0 or mini.stats["schedules"] == before


# ---------------------------------------------------------------- the walk, and another evaluator


def test_the_walk_goes_inside_when_asked():
  y = softplus(Tensor([1.0]))
  nodes = list(mini.walk(y, inside=True))
  assert [n.op for n in nodes] == ["buffer", "exp", "const", "add", "log", "softplus"]
  assert nodes[-1].body == nodes[-2] and nodes[-1].inputs == (nodes[0],)
  assert len({*nodes, *mini.walk(y, inside=True)}) == 6  # equal nodes are equal in another walk


def test_what_a_node_says_of_itself():
  x = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
  said = {n.op: n.attrs for n in mini.walk(x.cumsum(1).T.pad((1, 0)).sum(0), x.flip(0))}
  assert said["scan"] == {"kind": "add", "axis": 1} and said["permute"] == {"axes": (1, 0)}
  assert (
    said["pad"]["widths"][-1] == (1, 0) and said["reduce"]["kind"] == "add" and said["flip"] == {"axes": (0,)}
  )
  leaf = next(iter(mini.walk(x + 1)))
  assert (leaf.numpy() == x.numpy()).all() and repr(leaf) == "<buffer f32[3, 4]>"
  with pytest.raises(ValueError, match="only memory has values"):
    list(mini.walk(x + 1))[-1].numpy()


PROGRAMS = {
  "softmax": lambda x, y: x.softmax(1) @ y.T,
  "layers": lambda x, y: x.layer_norm((5,)).gelu().std(0),
  "index": lambda x, y: x[:, [2, 0]].cat(y[1:, 3:].flip(0).pad((0, 0, 1, 0)), dim=1),
  "choose": lambda x, y: (x > y).where(x.exp(), (y * 3).floor()).cumsum(0).amax(1),
  "integers": lambda x, y: ((x * 10).int() // 3 % 4 ^ 5).sum(0),
  "named": lambda x, y: softplus(x) * softplus(y).mean(),
  "sorted": lambda x, y: x.sort(1)[0] + y.argmax(1, keepdim=True),
  "gradient": lambda x, y: mini.grad(lambda x: (softplus(x @ y.T) ** 2).sum())(x),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_evaluator_of_ones_own_agrees(name, rng, device):
  x, y = (Tensor(rng.standard_normal((3, 5)).astype(np.float32)) for _ in range(2))
  z = PROGRAMS[name](x, y)
  assert np.allclose(evaluate(z), z.numpy(), rtol=1e-4, atol=1e-6)


def test_it_may_know_an_operation_by_its_name():
  x = Tensor([1.0, 2.0])
  assert evaluate(softplus(x) + 1, {"softplus": lambda x: 10 * x}).tolist() == [11.0, 21.0]


# ---------------------------------------------------------------- NumPy in the middle


@mini.wrap_as_operation
def descending(x, by=1.0):
  return np.sort(x)[::-1] * np.float32(by)


def test_numpy_code_runs_in_the_middle_of_a_graph(rng, device):
  x = rng.standard_normal(50).astype(np.float32)
  y = descending(Tensor(x) * 2) + 1
  assert not y.is_realized and np.array_equal(y.numpy(), np.sort(x * 2)[::-1] + np.float32(1))
  z = descending(descending(Tensor(x), by=-1.0) @ Tensor(np.eye(50, dtype=np.float32)), by=3.0)
  assert np.array_equal(z.numpy(), np.sort(-np.sort(x))[::-1] * 3)
  assert np.array_equal(evaluate(y), y.numpy())


def test_it_runs_under_jit_and_vmap(rng, device):
  x = rng.random((4, 6), np.float32)
  step = mini.jit(lambda x: (descending(x * 2) * x).sum())
  for row in x:
    assert np.isclose(step(Tensor(row)).item(), (np.sort(row * 2)[::-1] * row).sum(), rtol=1e-5)
  assert np.array_equal(mini.vmap(descending)(Tensor(x)).numpy(), np.sort(x, 1)[:, ::-1])
  both = mini.wrap_as_operation(lambda x, w: x * w.sum(), name="both")
  got = mini.vmap(both, in_dims=(0, None))(Tensor(x), Tensor(x[0]))
  assert np.allclose(got.numpy(), x * x[0].sum(), rtol=1e-6)


def test_a_gradient_can_be_given(device):
  sine = mini.wrap_as_operation(np.sin, gradient=lambda g, out, x: g * x.cos(), name="sine")
  x = Tensor([0.5, 2.0], requires_grad=True)
  (sine(x * 2) * 3).sum().backward()
  assert np.allclose(x.grad.numpy(), 6 * np.cos(2 * x.numpy()), rtol=1e-6)
  assert not descending(x).requires_grad


def test_other_arguments_are_handed_on_and_told_apart(device):
  f = mini.wrap_as_operation(lambda a, k, b, how=(): a + k * b + sum(how), name="f")
  a, b = Tensor([1.0]), Tensor([10.0])
  assert f(a, 2, b).item() == 21 and f(a, 3, b).item() == 31 and f(a, 2, b, how=[5.0]).item() == 26
  assert f(a, np.array([4], np.float32), b).item() == 41 and f(a, np.array([5], np.float32), b).item() == 51
  assert len(f.functions) == 3
  assert np.signbit(mini.wrap_as_operation(lambda x, k: x * k)(a, -0.0).item() * 0)


def test_integers_and_every_shape(device):
  counts = mini.wrap_as_operation(lambda x: np.bincount(x, minlength=5), shape=(5,), dtype=dtypes.int64)
  assert counts(Tensor([1, 1, 4]).int()).tolist() == [0, 2, 0, 0, 1]
  total = mini.wrap_as_operation(lambda x: x.sum(), shape=lambda s: s[:-2])
  assert total(Tensor.ones(3, 4)).item() == 12
  assert mini.wrap_as_operation(lambda x: x[:0])(Tensor.ones(3)).tolist() == []
  assert mini.wrap_as_operation(lambda x: x + 1)(Tensor(True)).item() == 2
  assert mini.wrap_as_operation(lambda x: x * 2, dtype="float32")(Tensor([1.5], dtype="bfloat16")).item() == 3


def test_errors_of_a_callback_say_what_and_where(device):
  x = Tensor([1.0, 2.0])
  with pytest.raises(MiniError, match="none of its arguments is a tensor"):
    descending([1.0])
  with pytest.raises(MiniError, match=r"a trial on zeros.*IndexError: (.|\n)*test_extend.py:\d+\n.*shape="):
    mini.wrap_as_operation(lambda x: x[3])(x)
  with pytest.raises(DTypeError, match="an array of complex"):
    mini.wrap_as_operation(lambda x: x * 1j)(x)
  with pytest.raises(DTypeError, match="a tuple"):
    mini.wrap_as_operation(lambda x: (x, x))(x)
  with pytest.raises(DTypeError, match="dtype is int32"):
    mini.wrap_as_operation(lambda x: x, dtype=dtypes.int32)(x)
  with pytest.raises(ShapeError, match=r"wide.* returned float32\[2\], and was to return float32\[3\]"):
    mini.wrap_as_operation(lambda x: x, shape=(3,), name="wide")(x).numpy()
  with pytest.raises(ZeroDivisionError):
    mini.wrap_as_operation(lambda x: 1 // int(x[0] - 1), shape=(), dtype="int64")(x).numpy()
  with pytest.raises(ValueError, match="read-only"):
    mini.wrap_as_operation(lambda x: x.__setitem__(0, 5.0), shape=(2,))(x).numpy()
  with pytest.raises(MiniError, match="asks for the value of a tensor"):
    mini.wrap_as_operation(lambda x: np.float32(Tensor(x).sum().item()), shape=())(x).numpy()
  assert x.tolist() == [1.0, 2.0] and descending(x).tolist() == [2.0, 1.0]  # and all goes on
  with pytest.raises(MiniError, match="is no function"):
    mini.op(3)


def test_a_call_in_text_is_of_a_function_that_is_there():
  twice = Extern("twice", lambda x: 2 * x)
  x = mini.ir.graph.buffer("x", (3,), dtypes.float32)
  p = graph_program("f", (mini.ir.graph.call(twice, (x,), (3,), dtypes.float32),))
  assert '%0 = call %x {function="twice"} : f32[3]' in text(p) and parse(text(p)) is p
  assert Extern("twice", abs).name == "twice.1"
  with pytest.raises(TextError, match="this process has no function thrice"):
    parse(text(p).replace("twice", "thrice"))


# What is to run on every device: a named operation, a call between two kernels, a scalar kernel, a rule.
ON_DEVICES = """
import numpy as np
import mini
from mini import Tensor

@mini.op
def softplus(x):
  return (x.exp() + 1).log()

@mini.kernel
def before(i, a):
  s = 0.0
  for k in range(i):
    if a[k] > 1:
      s += a[k]
  return s

descending = mini.wrap_as_operation(lambda x: np.sort(x)[::-1], name="descending")
product = mini.wrap_as_operation(lambda x, y: x @ y * 2, shape=lambda x, y: (x[0], y[1]), name="product")
x = np.array([3, 1, 2], np.float32)
for device in %r:
  t = Tensor(x, device=device)
  y = descending(softplus(t) * 2) + t
  assert y.device == device, y.device
  assert before[3](t).tolist() == [0, 3, 3]
  with mini.rewrite(mini.rule("twice", "matmul(x, y)", product)):
    assert (t.reshape(3, 1) @ t.reshape(1, 3)).numpy().sum() == 36  # an outer product is no sum
    assert (t.reshape(1, 3) @ Tensor(np.ones((3, 2), np.float32), device=device)).tolist() == [[12, 12]]
  assert np.allclose(y.numpy(), np.sort(2 * np.log(np.exp(x) + 1))[::-1] + x, rtol=1e-6), y.numpy()
print("all")
"""


@pytest.mark.full
def test_every_device(tmp_path):
  script = tmp_path / "script.py"  # a kernel's source has to stand in a file
  script.write_text(ON_DEVICES % ["CL", "CUDA", "METAL"])
  done = subprocess.run(
    [sys.executable, script], capture_output=True, text=True, check=False, env={**os.environ, "EMULATE": "1"}
  )
  assert done.stdout == "all\n", done.stderr
