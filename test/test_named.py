"""Axes with names: what methods give is what Tensor's give by number, with the names that follow; what does not match is an
error that says both."""

from __future__ import annotations

import numpy as np
import pytest

import mini
from mini import Dim, DTypeError, ShapeError, Tensor, compose, einsum
from mini.named_axes import ALONG, EACH, REDUCING, SAME

NAMES = ["batch", "seq", "head", "d"]


def drawn(rng, n=3, low=0.1):
  names = [str(name) for name in rng.permutation(NAMES)[:n]]
  x = Tensor(rng.uniform(low, 1, [NAMES.index(name) + 2 for name in names]), device="INTERP")
  return x, x.rename(*names), names


def equal(ours, theirs, names):
  if isinstance(theirs, tuple):  # values and indices
    for mine, other in zip(ours, theirs, strict=True):
      equal(mine, other, names)
    return
  assert ours.names == tuple(names)
  assert ours.shape == theirs.shape
  np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


PAIRS = ("max", "min", "median", "nanmedian", "mode")  # along one axis, values and indices


@pytest.mark.parametrize("method", sorted(REDUCING))
def test_reductions(method, rng):
  x, named, names = drawn(rng)
  one = names[rng.integers(3)]
  a = names.index(one)
  equal(getattr(named, method)(one), getattr(x, method)(dim=a), names[:a] + names[a + 1 :])
  if method != "count_nonzero":
    equal(getattr(named, method)(one, keepdim=True), getattr(x, method)(dim=a, keepdim=True), names)
  if method not in ("argmax", "argmin", "count_nonzero", *PAIRS):
    two = [names[2], names[0]]
    equal(getattr(named, method)(two), getattr(x, method)(dim=(0, 2)), names[1:2])
  if method not in ("norm", "mode"):
    equal(getattr(named, method)(), getattr(x, method)(), ())


@pytest.mark.parametrize("method", sorted(ALONG))
def test_along(method, rng):
  x, named, names = drawn(rng)
  equal(getattr(named, method)(names[1]), getattr(x, method)(1), names)


def test_elementwise(rng):
  x, named, names = drawn(rng)
  tried = 0
  for method in sorted(EACH - SAME):
    if isinstance(getattr(Tensor, method), property):
      continue
    try:
      plain = getattr(x, method)()
    except (TypeError, ValueError):
      continue  # it takes more arguments
    if not isinstance(plain, Tensor) or plain.shape != x.shape:
      continue
    if np.array_equal(plain.numpy(), getattr(x, method)().numpy(), equal_nan=True):  # it is not random
      equal(getattr(named, method)(), plain, names)
      tried += 1
  assert tried > 60
  equal(named.maximum(named * 2), x.maximum(x * 2), names)
  equal(named.clamp(min=0.3, max=0.5), x.clamp(0.3, 0.5), names)
  equal(2 / named - 1 + abs(-named), 2 / x - 1 + abs(-x), names)
  equal(named + x[0], x + x[0], names)
  equal(x[0] + named, x + x[0], names)
  equal(named > 0.5, x > 0.5, names)
  equal(named.cast("float32"), x.cast("float32"), names)
  equal(named[0] * named, x[0] * x, names)
  equal(named[1:, 0], x[1:, 0], [names[0], names[2]])


def test_movement(rng):
  x, named, names = drawn(rng)
  a, b, c = names
  equal(named.align_to(c, ..., "new"), x.permute(2, 0, 1).unsqueeze(-1), [c, a, b, "new"])
  equal(named.align_to("...", a), x.permute(1, 2, 0), [b, c, a])
  equal(named.align_as(named.permute(b, c, a)), x.permute(1, 2, 0), [b, c, a])
  equal(named.transpose(c, a), x.permute(2, 1, 0), [c, b, a])
  equal(named.select(b, 1), x.select(1, 1), [a, c])
  equal(named.flatten([b, c], "f"), x.flatten(1, 2), [a, "f"])
  sizes = [(c, named.size(c)), (b, named.size(b))]
  equal(
    named.flatten([b, c], "f").unflatten("f", sizes), x.reshape(x.shape[0], x.shape[2], x.shape[1]), [a, c, b]
  )
  equal(named.rename(**{a: "x"}), x, ["x", b, c])
  equal(x.rename(None, b, None).refine_names(a, ...), x, [a, b, None])
  assert named.rename(None) is named.tensor
  assert repr(Tensor([1, 2]).rename("i")) == "Tensor([1, 2]).rename('i')"


@pytest.mark.parametrize("n", range(10))
def test_einsum_by_name(n, rng):
  """Axes are found by name, in whatever order a tensor has them."""
  x, named, names = drawn(rng)
  y, other, others = drawn(rng, 2)
  out = [str(m) for m in rng.permutation([*dict.fromkeys(names + others)])][: rng.integers(4)]
  turned = [str(m) for m in rng.permutation(names)]
  formula = f"{' '.join(turned)}, {' '.join(others)} => {' '.join(out)}"
  found = einsum(formula, named, other)
  plain = einsum(f"{' '.join(names)}, {' '.join(others)} => {' '.join(out)}", x, y)
  assert found.names == tuple(out)
  np.testing.assert_allclose(found.numpy(), plain.numpy())
  total = einsum(f"{' '.join(turned)} => {names[0]}", named)
  start = Tensor.ones(*total.shape, device="INTERP").double()
  np.testing.assert_allclose(
    start.einsum_(f"{names[0]} += {' '.join(turned)}", named).numpy(), 1 + total.numpy()
  )


def test_compose(rng):
  a, b, v = (rng.normal(size=s) for s in ((5, 3, 4), (3, 2, 6), (5, 6, 2)))
  m = Tensor(a).rename("batch | k -> o")
  n = Tensor(b.transpose(2, 1, 0)).rename("i j -> k")
  x = Tensor(v).rename("batch | i j")
  equal_to = lambda t, y: np.testing.assert_allclose(t.numpy(), y)
  mn = compose(m, n)
  assert mn.names == ("batch", "i", "j", "o") and mn.kinds == ("batch", "input", "input", "output")
  equal_to(mn, np.einsum("zko,kji->zijo", a, b))
  equal_to(compose(n, x), np.einsum("kji,zij->zk", b, v))
  assert compose(n, x).kinds == ("batch", "output")
  assert (a[0] * m + 1).kinds == (Tensor(a[0]) * m).kinds == ("batch", "input", "output")
  equal_to(compose(m, compose(n, x)), np.einsum("zko,kji,zij->zo", a, b, v))
  equal_to(compose(mn, x), np.einsum("zko,kji,zij->zo", a, b, v))


def test_gradients_pass():
  x = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
  named = x.rename("batch", "seq")
  (named * named).sum("seq").sum().backward()
  assert x.grad.tolist() == [[2.0, 4.0], [6.0, 8.0]]


def test_errors(rng):
  x = Tensor.ones(2, 3).rename("batch", "seq")
  image = Tensor.ones(4, 4, 3).rename("h", "w", c=Dim(3, "rgb"))
  to_hsv = Tensor.ones(3, 3).rename("c -> hsv")
  for message, bad in {
    r"a \+ b: an axis is 'seq', and 'batch' where it meets that\n  a: f32\[batch=2, seq=3\]   made at \S+test_named.py:\d+\n  b: ":
      lambda: x + x.align_to("seq", "batch"),
    r"a \* b: the axis c is 'rgb', and 'hsv' where it meets that\n  a: f32\[h=4, w=4, c=3 rgb\]":
      lambda: image * image.rename(c=Dim(3, "hsv")),
    "maximum: an axis is": lambda: x.maximum(x.rename("batch", "other")),
    "rename: c has size 3, and is not Dim\\(4": lambda: image.rename(c=Dim(4, "rgb")),
    "sum: no axis is called 'd'": lambda: x.sum("d"),
    "softmax: no axis is called 'd'": lambda: x.softmax("d"),
    "rename: 1 names for 2 axes": lambda: Tensor.ones(2, 3).rename("a"),
    "an axis has a name twice: a, a": lambda: Tensor.ones(2, 3).rename("a", "a"),
    "refine_names: an axis is 'seq', and not 's'": lambda: x.refine_names("batch", "s"),
    "align_to: the axis 'seq' is not among batch": lambda: x.align_to("batch"),
    "do not stand side by side": lambda: x.flatten(["seq", "batch"], "f"),
    "unflatten: 2 \\* 2 is not the size of 'seq'": lambda: x.unflatten("seq", [("a", 2), ("b", 2)]),
    '"seq d" does not name the axes batch, seq': lambda: einsum("seq d => d", x),
    "are found by name alone": lambda: einsum("batch 2*seq => batch", x),
    "the axis seq is 'a', and 'b'": lambda: einsum("batch seq, batch seq => ", x.rename(seq=Dim(3, "a")), x.rename(seq=Dim(3, "b"))),
    "m has 1 inputs, and x 3 outputs": lambda: compose(to_hsv, image),
    "the axis None is 'lab', and 'rgb'": lambda: compose(
      to_hsv.rename(c=Dim(3, "lab")), image.select("h", 0).select("w", 0)),
    "axis k0 has size 3 and size 4": lambda: compose(to_hsv, Tensor.ones(4).rename("c")),
  }.items():  # fmt: skip
    with pytest.raises(ShapeError, match=message):
      bad()
  with pytest.raises(DTypeError, match="rename: 3 is no name"):
    Tensor.ones(2).rename(3)
  with pytest.raises(DTypeError, match=r"rename: c is Dim\(size, label\), not 3"):
    Tensor.ones(2).rename(c=3)
  with pytest.raises(AttributeError, match="a tensor with names has no sort"):
    x.sort("seq")
  with pytest.raises(IndexError, match="integers and slices index a tensor with names"):
    x[None]


def test_jit_and_gradients_take_tensors_with_names():
  x = Tensor([[1.0, 2.0], [3.0, 4.0]]).rename("i", "j")
  doubled = mini.jit(lambda v: {"y": v * 2, "s": v.sum("i")})
  for t in (x, x, x + 1, x.rename("j", "i")):
    got, want = doubled(t), (t * 2, t.sum("i"))
    assert (got["y"].names, got["s"].names) == (want[0].names, want[1].names)
    assert got["y"].tolist() == want[0].tolist() and got["s"].tolist() == want[1].tolist()
  slope = mini.grad(lambda v: (v * v).sum())(x)
  assert slope.names == ("i", "j") and slope.tolist() == [[2.0, 4.0], [6.0, 8.0]]
  assert mini.jit(mini.compose)(*[Tensor.ones(2, 2).rename("a -> b")] * 2).tolist() == [[2.0, 2.0]] * 2
