"""The mistakes that users make most: each error names the operation, what each input was, and the user's line."""

import re

import numpy as np
import pytest

import mini
from mini import DTypeError, MiniError, ShapeError, Tensor


def f32(*shape):
  return Tensor.zeros(*shape)


# what is done, the error, and what its text must say besides the inputs' types, shapes and lines
MISTAKES = [
  ("a + b", lambda a, b: a + b, (2, 3), (2, 4), ShapeError, r"a \+ b: the shapes \(2, 3\) and \(2, 4\) do not repeat to a common one"),
  ("a + b.T", lambda a, b: a + b, (2, 3), (3, 2), ShapeError, r"b\.T would fit"),
  ("a * b, a vector per row", lambda a, b: a * b, (3, 4), (3,), ShapeError, r"b\.unsqueeze\(-1\) would fit"),
  ("a @ b", lambda a, b: a @ b, (3, 4), (3, 4), ShapeError, r"a @ b: the last axis of a is 4, but the axis of b that it meets is 3(.|\n)*b\.T would fit"),
  ("a @ b, leading axes", lambda a, b: a @ b, (2, 3, 4), (3, 4, 5), ShapeError, "the leading axes"),
  ("a @ 0-d", lambda a, b: a @ b, (3, 4), (), ShapeError, r"a \* b would fit"),
  ("cat", lambda a, b: Tensor.cat([a, b], 0), (2, 3), (2, 4), ShapeError, r"cat: f32\[2,4\] does not go behind f32\[2,3\] along axis 0"),
  ("stack", lambda a, b: Tensor.stack([a, b]), (2, 3), (2, 4), ShapeError, "stack: the shapes differ"),
  ("reshape", lambda a: a.reshape(4, 2), (2, 3), None, ShapeError, r"x.reshape\(4, 2\): x has 6 elements"),
  ("reshape with -1", lambda a: a.reshape(4, -1), (2, 3), None, ShapeError, r"x.reshape\(4, -1\)"),
  ("reshape with two -1", lambda a: a.reshape(-1, -1), (2, 3), None, ShapeError, "only one size may be -1"),
  ("a slice of step 0", lambda a: a[:, ::0], (2, 3), None, ValueError, "the step of a slice is 0"),
  ("expand", lambda a: a.expand(3, 3), (2, 3), None, ShapeError, "only axes of size 1 do"),
  ("permute", lambda a: a.permute(0, 0), (2, 3), None, ShapeError, "no order of the 2 axes"),
  ("a bad axis", lambda a: a.sum(2), (2, 3), None, ShapeError, "sum: there is no axis 2: x has 2 axes"),
  ("an axis twice", lambda a: a.sum((0, -2)), (2, 3), None, ShapeError, "an axis appears twice"),
  ("max over several axes", lambda a: a.max((0, 1)), (2, 3), None, DTypeError, r"x.amax\(\(0, 1\)\) would fit"),
  ("max of nothing", lambda a: a.max(0), (0, 3), None, ShapeError, "without elements"),
  ("an index out of range", lambda a: a[5], (2, 3), None, IndexError, r"index 5 is out of bounds for axis 0, which has size 2"),
  ("too many indices", lambda a: a[0, 0, 0], (2, 3), None, IndexError, "3 indices for the 2 axes"),
  ("a value that does not fit", lambda a, b: a.__setitem__(0, b), (2, 3), (2,), ShapeError, r"v has shape \(2,\), what x\[i\] takes has \(3,\)"),
  ("item of many", lambda a: a.item(), (2, 3), None, ShapeError, "6 elements, not one"),
  ("float of many", lambda a: float(a), (2, 3), None, ShapeError, r"6 elements, not one(.|\n)*x\.sum\(\) or x\.mean\(\)"),
  ("linear", lambda a, b: a.linear(b), (2, 3), (4, 5), ShapeError, "linear: the last axis of x is 3, and the weight takes 5"),
  ("batch_norm of a matrix", lambda a: mini.nn.BatchNorm2d(3)(a), (2, 3), None, ShapeError, "BatchNorm2d: x must have 4 axes"),
  ("a value that is traced", lambda a: mini.jit(lambda x: x.item())(a), (1,), None, MiniError, r"x.item\(\) inside a jitted"),
  ("if of many", lambda a: bool(a), (2, 3), None, ShapeError, r"any\(\) or x.all\(\)"),
  ("assign", lambda a, b: a.assign(b), (2, 3), (3, 2), ShapeError, "a has shape"),
  ("copy_", lambda a, b: a.copy_(b), (2, 3), (2,), ShapeError, r"a\.copy_\(b\): b has shape \(2,\), which does not repeat to that of a, \(2, 3\)"),
  ("layer_norm", lambda a: a.layer_norm(4), (2, 3), None, ShapeError, r"the last axes of x are not \(4,\)"),
  ("backward of many", lambda a: a.requires_grad_().backward(), (2, 3), None, ShapeError, r"a loss has one: x.sum\(\) or x.mean\(\) would fit"),
  ("backward of what requires nothing", lambda a: a.backward(), (), None, MiniError, "depends on no tensor that requires a gradient"),
  ("a float condition", lambda a, b: a.where(b, 0), (2, 3), (2, 3), DTypeError, "the condition is float32, not bool"),
  ("bits of floats", lambda a: a << 1, (2, 3), None, DTypeError, "cast to an integer type"),
  ("a float index", lambda a, b: a[b], (2, 3), (2,), IndexError, "integers or booleans index"),
  ("split", lambda a: a.split([1, 1]), (3, 2), None, ShapeError, r"the sizes \(1, 1\) add up to 2, not to the 3 of axis 0"),
  ("targets of another shape", lambda a, b: a.cross_entropy(b.long()), (2, 5, 3), (2, 5), ShapeError, r"the target has shape \(2, 3\)"),
]  # fmt: skip


@pytest.mark.parametrize("device", ["CPU", "INTERP"])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_an_index_whose_negative_is_itself(dtype, device):
  """-(-2**63) is -2**63: what compares an index with 0 may not turn its sign."""
  with mini.Context(DEV=device):
    x = Tensor([1, 2, 3]).cast(dtype)
    found = [np.array([1, -(1 << 63)]), np.array([1, 1 << 63], np.uint64), np.array([1, 1 << 32])]
    for do in (
      lambda i: x.gather(0, i),
      lambda i: x.scatter(0, i, x[:2]),
      lambda i: x[i],
      lambda i: i.one_hot(3),
    ):
      for i in map(Tensor, found):
        with pytest.raises(IndexError, match="is out of bounds for an axis of size 3"):
          do(i).numpy()
  assert Tensor([1, 2, 3]).gather(0, Tensor([2, 0])).tolist() == [3, 1]


def test_a_layer_of_what_is_no_tensor():
  for x in (np.ones((2, 4), np.float32), [1.0]):
    for layer in (mini.nn.Linear(4, 3), mini.nn.Sequential(mini.nn.Linear(4, 3), mini.nn.ReLU())):
      with pytest.raises(DTypeError, match=rf"Linear\(x\): x is of type {type(x).__name__}, not a tensor"):
        layer(x)
  with pytest.raises(AttributeError, match="no attribute 'lineal'"):
    type("Layer", (mini.nn.Module,), {"forward": lambda self, x: x.lineal})()(f32(2))


def test_a_number_whose_value_a_jitted_function_needs():
  with pytest.raises(
    MiniError, match=r"x was given as a number(.|\n)*functools\.partial(.|\n)*mini\.Variable"
  ) as e:
    mini.jit(lambda x, n: x + Tensor.zeros(n))(f32(3), 3)
  assert re.search(r"made at \S*test_errors\.py:\d+", str(e.value))


def test_numbers_that_no_range_has():
  with pytest.raises(DTypeError, match="linspace: steps is 2.5, not an integer"):
    Tensor.linspace(0, 1, 2.5)
  for end in (np.inf, np.nan):
    with pytest.raises(ValueError, match=f"arange: from 0 to {end} by 1 there is no number of steps"):
      Tensor.arange(end)


@pytest.mark.parametrize("_, do, a, b, error, says", MISTAKES, ids=[m[0] for m in MISTAKES])
def test_mistakes(_, do, a, b, error, says):
  with pytest.raises(error, match=says) as e:
    do(*(f32(*s) for s in (a, b) if s is not None))
  text = str(e.value)
  assert f"f32[{','.join(map(str, a))}]" in text
  assert re.search(r"made at \S*test_errors\.py:\d+", text)


def test_the_whole_text():
  a = Tensor.zeros(3, 4)
  b = Tensor.zeros(3, 4)
  with pytest.raises(ShapeError) as e:
    a @ b
  lines = str(e.value).splitlines()
  assert lines[0] == "a @ b: the last axis of a is 4, but the axis of b that it meets is 3"
  assert re.fullmatch(r"  a: f32\[3,4\]   made at \S*test_errors.py:\d+", lines[1]) and lines[2].startswith(
    "  b: f32[3,4]   made at "
  )
  assert int(lines[2].rsplit(":", 1)[1]) == int(lines[1].rsplit(":", 1)[1]) + 1
  assert lines[3:] == ["  b.T would fit"]


@pytest.mark.parametrize("do, error, says", [
  (lambda: Tensor([[1], [2, 3]]), ShapeError, "the nested lists do not all have the same length"),
  (lambda: Tensor(["a"]), DTypeError, "no"),
  (lambda: Tensor({}), DTypeError, "no tensor can be made of dict"),
  (lambda: Tensor([1], dtype="float31"), DTypeError, "no dtype 'float31'; there are bool, int8"),
  (lambda: Tensor([1, 2], requires_grad=True), DTypeError, "only float tensors have gradients, this one is int64"),
  (lambda: Tensor([1, 2]).mean(), DTypeError, r"x.float\(\).mean\(\) would fit"),
  (lambda: Tensor([1, 2]).sum().backward(), DTypeError, "only float tensors have gradients"),
  (lambda: Tensor([1]) + "a", TypeError, "neither a tensor nor a number"),
  (lambda: Tensor([1]).add("a"), DTypeError, "add: other is 'a', not a tensor or a number"),
  (lambda: Tensor.zeros(2, -3), ShapeError, "a size is negative"),
  (lambda: Tensor.zeros(2.5), DTypeError, "zeros: size is 2.5, not an integer"),
  (lambda: Tensor.cat([]), ShapeError, "no tensors to join"),
  (lambda: -Tensor([True]), DTypeError, "~a inverts them"),
  (lambda: Tensor([1, 2]) ** -1, ValueError, "cast a to a float type"),
  (lambda: mini.grad(lambda x: x * 2)(Tensor([1.0, 2.0])), ShapeError, "must return a float tensor of one element"),
  (lambda: mini.grad(lambda x: x.sum())(Tensor([1, 2])), DTypeError, "only float tensors"),
  (lambda: Tensor([1.0]).bitcast("float64"), DTypeError, "has 4 bytes, float64 has 8"),
  (lambda: Tensor([1.0]).dropout(1.5), ValueError, "no probability"),
  (lambda: len(Tensor(1)), ShapeError, "has no length"),
  (lambda: Tensor(np.zeros(2, np.clongdouble)), DTypeError, "no counterpart here"),
])  # fmt: skip
def test_more(do, error, says):
  with pytest.raises(error, match=says):
    do()


def test_a_device_that_is_missing():
  with pytest.raises(Exception, match="no device 'TPU'; there are CPU"):
    Tensor([1.0], device="TPU").numpy()


def test_an_index_that_is_only_known_late_names_the_line():
  picked = Tensor([1.0, 2.0])[Tensor([0, 7])]
  with pytest.raises(IndexError, match=r"out of bounds(.|\n)*made at \S*test_errors\.py"):
    picked.numpy()


def test_finding_the_line_is_cheap():
  from time import perf_counter

  from mini.tensor.errors import user_line

  nested = lambda: user_line()
  start = perf_counter()
  for _ in range(2000):
    nested()
  assert (perf_counter() - start) / 2000 < 50e-6  # it takes about 0.5 us; a traceback would take hundreds


# ---------------------------------------------------------------- functions of the package


def with_mini_numpy(shape):
  return mini.numpy.ones(shape, dtype="float32")


WRONG = {
  "a number": 3.0,
  "a scalar of NumPy": np.float32(3),
  "an array of NumPy": np.ones((2, 3)),
  "None": None,
  "text": "abc",
  "a list of numbers": [1, 2.0],
  "a function": lambda x: x,
}
FUNCTIONS = {
  "visualize": lambda x: mini.visualize(x),
  "inspect": lambda x: mini.inspect(x),
  "walk": lambda x: list(mini.walk(x)),
  "wrap_as_operation": lambda x: mini.wrap_as_operation(lambda v: v)(x),
  "chain_rule, cotangents": lambda x: mini.chain_rule(x, Tensor.ones(2, requires_grad=True)),
  "chain_rule, a key": lambda x: mini.chain_rule({x: Tensor.ones(1)}, Tensor.ones(2, requires_grad=True)),
  "chain_rule, a value": lambda x: mini.chain_rule(
    {Tensor.ones(2) * 1: x}, Tensor.ones(2, requires_grad=True)
  ),
  "chain_rule, inputs": lambda x: mini.chain_rule({Tensor.ones(2) * 1: Tensor.ones(2)}, x),
  "compose, m": lambda x: mini.compose(x, Tensor.ones(2, 2).rename("a -> b")),
  "compose, x": lambda x: mini.compose(Tensor.ones(2, 2).rename("a -> b"), x),
  "quantize": lambda x: mini.quantize(x),
  "optimize, params": lambda x: mini.optimize(x, Tensor.ones(2), SGD),
  "optimize, grads": lambda x: mini.optimize(Tensor.ones(2), x, SGD),
  "optimize, optimizer": lambda x: mini.optimize(Tensor.ones(2), Tensor.ones(2), x),
}
SGD = mini.nn.optim.SGD([Tensor.ones(2, requires_grad=True)], lr=0.1)


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_no_tensor_is_an_error_that_names_the_function(name, wrong):
  with pytest.raises((MiniError, TypeError)) as e:
    FUNCTIONS[name](WRONG[wrong])
  what = name.partition(",")[0].replace("visualize", "walk").replace("inspect", "walk")
  hashed = isinstance(e.value, TypeError) and "unhashable" in str(e.value)  # Python's, of a dict's key
  assert hashed or what in str(e.value) or "none of its arguments is a tensor" in str(e.value)


@pytest.mark.parametrize("name", ["jit", "grad", "vmap", "vjp", "jvp", "jacobian", "hessian", "checkpoint"])
def test_what_is_no_function_is_an_error_that_names_who_asked(name):
  for wrong in (3.0, Tensor.ones(2), "abc"):
    with pytest.raises(TypeError, match=rf"^{name}: .* is no function"):
      getattr(mini, name)(wrong, *([(Tensor.ones(2),)] * 2 if name == "jvp" else []))


def test_arrays_of_mini_numpy_are_tensors_in_other_clothes():
  a = with_mini_numpy((2, 4))
  assert mini.visualize(a * 2).startswith("<svg") and "mul" in mini.inspect([a * 2])
  assert mini.wrap_as_operation(lambda v: v * 2)(a).tolist() == [[2] * 4] * 2
  w = Tensor([[1.0] * 4] * 2, requires_grad=True)
  assert mini.chain_rule({w * 3: a}, w).tolist() == [[3] * 4] * 2
  assert mini.quantize(a).dequantize().shape == (2, 4)
  new, _ = mini.optimize(a, a, mini.nn.optim.SGD([w], lr=0.5))
  assert type(new) is type(a) and new.tolist() == [[0.5] * 4] * 2
