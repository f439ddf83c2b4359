"""Sums, quotients and rests of indices, simplified as they are made, are what Python computes at every place."""

from __future__ import annotations

import random
from itertools import product
from math import prod

import pytest

from mini import Tensor
from mini.config import Context
from mini.ir.index import flatten, unflatten
from mini.ir.uop import UOp, add, bounds, const, div, least, mod, mul, range_, rsize, substitute, toposort

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 24, 36)


def expression(rng: random.Random, ranges: list[UOp], depth: int) -> tuple[UOp, str]:
  """An index, and as Python writes it."""
  if depth == 0:
    r = rng.choice(ranges)
    return r, r.arg[0]
  a, text = expression(rng, ranges, rng.randrange(depth))
  n = rng.choice(SIZES)
  kind = rng.choice(["add", "add", "scaled", "shifted", "div", "mod", "mod", "min"])
  if kind == "add":
    b, other = expression(rng, ranges, rng.randrange(depth))
    k = rng.choice([1, n, -n])
    return add(a, mul(b, k)), f"({text} + {other} * {k})"
  if kind == "min":
    return least(a, n), f"min({text}, {n})"
  f, op = {"scaled": (mul, "*"), "shifted": (add, "+"), "div": (div, "//"), "mod": (mod, "%")}[kind]
  return f(a, n), f"({text} {op} {n})"


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(20))
def test_expressions(seed):
  rng = random.Random(seed)
  for n in range(60):
    ranges = [range_(name, rng.choice(SIZES[1:9])) for name in "abc"]
    index, text = expression(rng, ranges, rng.randrange(2, 9))
    lo, hi = bounds(index)
    places = [*product(*(range(rsize(r)) for r in ranges))]
    for place in rng.sample(places, min(len(places), 40)):
      want = eval(text, dict(zip("abc", place)))
      got = substitute(index, dict(zip(ranges, map(const, place))))
      assert got.op == "const" and got.arg == want and lo <= want <= hi, (seed, n, text, place, got)


@pytest.mark.parametrize("seed", range(20))
def test_the_digits_of_a_number_become_it_again(seed):
  """Whatever the number is a sum of: no quotient and no rest is left in the offset of what lies side by side."""
  rng = random.Random(seed)
  for n in range(100):
    shape = tuple(rng.choice(SIZES) for _ in range(rng.randrange(2, 6)))
    lanes = [k for k in (2, 4, 5, 8, 12, 16, 32, 64) if 2 * k <= prod(shape)]
    if not lanes:
      continue
    inner = range_("b", rng.choice(lanes))
    outer = range_("a", prod(shape) // rsize(inner))
    number = add(mul(outer, rsize(inner)), inner)
    if rng.random() < 0.5 and rsize(outer) >= 4:
      half = range_("c", rsize(outer) // 2)
      number = add(add(mul(range_("a", 2), rsize(half) * rsize(inner)), mul(half, rsize(inner))), inner)
    assert flatten(unflatten(number, shape), shape) is number, (seed, n, shape, number)


def test_a_part_of_the_digits_is_a_rest():
  """Rows of a tensor of three axes, at the beginning of each block: (x // 12 % 4) * 12 + x % 12 is x % 48."""
  x = add(mul(range_("a", 40), 8), range_("b", 8))
  assert add(mul(mod(div(x, 12), 4), 12), mod(x, 12)) is mod(x, 48)
  assert not any(u.op == "div" for u in toposort(mod(x, 48)))


@pytest.mark.parametrize("size", [(8, 32, 5, 3, 3), (16, 24, 24), (7, 11, 13)], ids=str)
def test_kernels_of_what_lies_side_by_side_do_not_divide(size, capsys):
  with Context(DEV="CPU", SHOW="source", SEARCH=0):
    x, row = Tensor.ones(*size).realize(), Tensor.ones(*size[1:]).realize()
    for y in (x * 2, x + row, x.sum(0)):
      y.realize()
  text = capsys.readouterr().err
  assert text.count("source") >= 4 and " / " not in text and " % " not in text


def test_digits_of_a_sum_are_those_of_its_terms():
  """Where no carry comes from below: as sums of digits, not as a remainder of the whole."""
  i, j, k = range_("i", 8), range_("j", 4), range_("k", 6)
  assert mod(add(mul(i, 4), j), 8) is add(mul(mod(i, 2), 4), j)
  assert mod(add(mul(i, 6), k), 18) is add(mul(mod(i, 3), 6), k)
  assert mod(mul(k, 4), 8) is mul(mod(k, 2), 4)
  assert div(add(mul(i, 4), j), 8) is div(i, 2)
  assert div(add(mul(i, 6), k), 18) is div(i, 3)
  assert mod(add(mul(i, 3), j), 6).op == "mod"  # j may carry
