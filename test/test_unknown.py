"""Shapes that follow from einsums: from operands to results and back, errors that are the same in any order."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from test_formula import Spec, close

from mini import DTypeError, ShapeError, Tensor, Unknown, einsum


def ones(*shape):
  return Tensor.ones(*shape)


# what is done with Unknowns, a line each, in any order; what their shapes are then, or what is wrong, and which uses say so
SAID = {
  "forward": (2, [
    lambda w, v: einsum("bi,io->bo", ones(5, 3), w),
    lambda w, v: einsum("bo,ok->bk", ones(5, 7), v),
    lambda w, v: einsum("io,ok,k->i", w, v, ones(4)),
  ], [(3, 7), (7, 4)]),
  "from the result": (1, [
    lambda w: einsum("bi,io->bo", ones(5, 3), w),
    lambda w: einsum("bo,bo->", einsum("bi,io->bo", ones(5, 3), w), ones(5, 6)),
  ], [(3, 6)]),
  "from a result that is reckoned": (2, [
    lambda w, x: einsum("k, k => ", w, ones(3)),
    lambda w, x: einsum("o, o => ", einsum("2*o+k, k => o", x, w), ones(4)),
  ], [(3,), (9,)]),
  "parts": (2, [
    lambda w, v: einsum("i, j => i^j", w, v),
    lambda w, v: einsum("i, n => i n", w, ones(3), i=4),
    lambda w, v: einsum("k, k => ", einsum("i, j => i^j", w, v), ones(9)),
  ], [(4,), (5,)]),
  "arithmetic": (2, [
    lambda w, v: (((ones(5, 3) @ w) * ones(1, 6)).relu() @ v).sigmoid() / 2 - ones(4, 1, 1),
    lambda w, v: einsum("io->", w, i=3),
    lambda w, v: ones(5, 3) @ w @ v - ones(2),
  ], [(3, 6), (6, 2)]),
  "a matrix from behind": (2, [
    lambda w, v: -(2 - (ones(5, 3) @ w).exp() ** 2) @ v,
    lambda w, v: einsum("ok,k->", v, ones(2)),
    lambda w, v: ones(4, 7) @ v,
  ], [(3, 7), (7, 2)]),
  "a clash": (1, [
    lambda w: einsum("bi,io->bo", ones(5, 3), w),
    lambda w: einsum("io,o->i", w, ones(6)),
    lambda w: einsum("bi,io->bo", ones(5, 4), w),
  ], ("an axis has size 3 and size 4", ["bi", "bi"], [0, 2])),
  "a clash through results": (2, [
    lambda w, v: einsum("bi,ik->bk", einsum("bi,io->bo", ones(5, 3), w), v),
    lambda w, v: einsum("io,o->", w, ones(6)),
    lambda w, v: einsum("ok,o,k->", v, ones(7), ones(2)),
  ], ("an axis has size 6 and size 7", ["o", "o"], [1, 2])),
  "a clash of what is reckoned": (1, [
    lambda w: einsum("r, r => ", einsum("o, k => 2*o+k", w, ones(3)), ones(10)),
    lambda w: einsum("o, o => ", w, ones(4)),
  ], ("an axis has size 10 and size 9", [], [0])),
  "axes of size 1 do not repeat": (1, [
    lambda w: einsum("bi,io,b->o", ones(1, 3), w, ones(5)),
    lambda w: einsum("io,o->", w, ones(6)),
  ], ("an axis has size 1 and size 5", ["bi", "b"], [0])),
  "not enough": (2, [
    lambda w, v: einsum("bi,io->bo", ones(5, 3), w),
    lambda w, v: einsum("bo,ok->bk", einsum("bi,io->bo", ones(5, 3), w), v),
    lambda w, v: einsum("ok,k->o", v, ones(2)),
  ], ("axis 1 of an Unknown is not determined", ["bi,io->bo"] * 2, [0, 1])),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_any_order(name):
  count, lines, expected = SAID[name]
  numbers = [line.__code__.co_firstlineno for line in lines]
  texts = set()
  for order in itertools.permutations(lines):
    unknown = [Unknown() for _ in range(count)]
    results = [line(*unknown) for line in order]
    if isinstance(expected, list):
      assert [x.shape for x in unknown] == expected
      assert all(r.tensor.shape == r.shape for r in results)
      continue
    message, terms, at = expected
    with pytest.raises(ShapeError) as e:
      _ = (results[0] if len(texts) % 2 else unknown[0]).shape
    texts.add(str(e.value))
    assert str(e.value).startswith(message)
    told = re.findall(r'(?:"([^"]*)" )?in einsum\("([^"]*)"\)   at \S*test_unknown\.py:(\d+)', str(e.value))
    assert sorted({int(line) for *_, line in told}) == [numbers[n] for n in at]
    assert [term or formula for term, formula, _ in told][: len(terms)] == terms
  assert len(texts) <= 1


@pytest.mark.parametrize("n", range(30))
def test_any_operand(n, rng):
  """An operand that is left out gets its shape from the rest of the formula."""
  spec = Spec(rng, words=n % 2 == 1, result=n % 3 == 0)
  arrays = [rng.normal(size=spec.shape(t)) for t in spec.inputs]
  print(spec.formula)
  there = [name for name in spec.names if re.search(rf"\b{name}\b", spec.formula)]
  for k, term in enumerate(spec.inputs):
    if "..." in term and sum("..." in t for t in spec.inputs) == 1:
      continue  # nobody else says anything of the row
    known = [None if axis[0] else m for axis, m in zip(spec.spelled(term), arrays[k].shape)]
    missing = Unknown(
      *known, init=lambda *s: Tensor(np.cos(np.arange(np.prod(s))).reshape(s), device="INTERP")
    )
    operands = [missing if i == k else Tensor(x, device="INTERP") for i, x in enumerate(arrays)]
    found = einsum(spec.formula, *operands, **{name: spec.sizes[name] for name in there})
    assert found.shape == spec.shape(spec.output) and missing.shape == arrays[k].shape
    close(found.numpy(), spec.evaluate([*arrays[:k], missing.numpy(), *arrays[k + 1 :]], "mul", "sum"))


def test_training():
  """Parameters of unknown shape are trained like others."""
  Tensor.manual_seed(0)
  x, y = Tensor.randn(32, 4), Tensor.randn(4)
  target = (x * y).sum(1)
  w = Unknown()
  for _ in range(50):
    loss = ((einsum("n i, i => n", x, w) - target) ** 2).mean()
    w.tensor.grad = None
    loss.backward()
    w.tensor.assign(w.tensor.detach() - 0.3 * w.grad)
  np.testing.assert_allclose(w.numpy(), y.numpy(), atol=1e-3)


def test_asked():
  """What is asked of an Unknown is asked of its tensor; an accumulating formula asks."""
  w = Unknown(init=Tensor.ones)
  x = ones(2, 3).einsum_("i j += i k, k j", ones(2, 4), w)
  assert x.tolist() == [[5.0] * 3] * 2 and w.shape == (4, 3) and w.requires_grad
  assert (w + 1).sum().item() == 24 and (2 * w - w)[0].tolist() == [1] * 3 and (-w).max().item() == -1
  assert (ones(2, 4) @ w).shape == (2, 3) and (w * w).shape == (4, 3)
  assert repr(Unknown(None, 3)) == "Unknown(?, 3)" and repr(w).startswith("Unknown: Tensor(")


def test_what_determined_it_is_remembered():
  w = Unknown()
  assert einsum("bi,io->bo", ones(2, 3), w, o=4).shape == (2, 4)
  with pytest.raises(ShapeError) as e:
    _ = einsum("io,o->i", w, ones(5)).shape
  assert re.search(
    r'size 4: o=4 in einsum\("bi,io->bo"\)(.|\n)*size 5: "o" in einsum\("io,o->i"\)', str(e.value)
  )


def test_errors():
  w = Unknown(None, 3)
  for message, bad in {
    '"ijk" names 3 axes of an operand that has 2(.|\n)*a: Unknown\\(\\?, 3\\)': lambda: einsum("ijk->i", w),
    "the number of axes of an Unknown that has a row is not determined": lambda: einsum("...i->i", Unknown()),
    "the number of axes of an Unknown is not determined": lambda: Unknown().shape,
    "size 3: axis 1 of an Unknown   at": lambda: einsum("io,o->i", w, ones(4)).shape,
    "an axis has size 3 and size 4": lambda: ones(2, 4).einsum_(
      "i j += i k, k j", ones(2, 5), Unknown(None, 3)
    ),
    "axis 1 of an Unknown is not determined": lambda: einsum("i,i->in", Unknown(), ones(3)).shape,
  }.items():
    with pytest.raises(ShapeError, match=message):
      bad()
  with pytest.raises(DTypeError, match="operands are tensors, not 3"):
    einsum("i,i->", w, 3)


def test_arithmetic_that_waits():
  """Values of what waited, the name of an operation in an error, and where nothing says how many axes there are."""
  w, v = Unknown(init=Tensor.ones), Unknown(init=Tensor.ones)
  y = 1 - ((ones(2, 3) @ w).relu() * 2) @ v / ones(2, 1)
  _ = einsum("i o, o k, k =>", w, v, ones(1), o=4)
  assert y.tolist() == [[-23.0]] * 2
  w = Unknown(None, 4)
  _ = ones(2, 3) @ w
  with pytest.raises(ShapeError, match=r'size 3: "x0 i" in a @ b(.|\n)*size 5: i=5 in einsum'):
    _ = einsum("ij->", w, i=5).shape
  with pytest.raises(ShapeError, match="the number of axes of an Unknown is not determined"):
    _ = Unknown() + ones(3)
