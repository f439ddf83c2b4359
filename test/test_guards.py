"""What a guard says of the indices beneath it, beside all values of their ranges."""

import random
import re
from functools import reduce
from itertools import permutations, product

from mini import Tensor, nn
from mini.ir.bounded import covered
from mini.ir.graph import cast
from mini.ir.guards import guarded, guarded_bounds, is_implied, limit
from mini.ir.kernel import load, param
from mini.ir.machine import MOST, fits
from mini.ir.uop import (
  FALSE,
  TRUE,
  add,
  both,
  const,
  div,
  least,
  less,
  mod,
  mul,
  range_,
  rsize,
  substitute,
  within,
)
from mini.schedule import schedule
from mini.text.printer import kernel_text
from mini.text.verifier import provable
from mini.types import dtypes

RANGES = [range_(name, size) for name, size in (("k", 6), ("y", 4), ("x", 5), ("u", 2))]


def a_sum(rng):
  acc = const(rng.randint(-9, 9))
  for r in rng.sample(RANGES, rng.randint(1, 2)):
    acc = add(acc, mul(r, rng.choice((1, 1, 2, 3, 5, -1, 9, 15))))
  return acc


def an_index(rng, inside):
  """A place in memory of rows that are read inside, some of it divided as views of the memory do."""
  flat, step = const(0), 1
  for e, n in inside:
    flat, step = add(flat, mul(e, step)), step * n
  flat = add(flat, mul(rng.choice(RANGES), rng.choice((step, 2 * step))))
  flat = add(flat, a_sum(rng)) if rng.random() < 0.3 else flat
  sizes = (inside[0][1], step, 2 * step, 2, 3)
  e = rng.choice((div, mod))(flat, rng.choice(sizes))
  return rng.choice((div, mod, least))(e, rng.choice(sizes)) if rng.random() < 0.5 else e


def places():
  for at in product(*(range(rsize(r)) for r in RANGES)):
    yield dict(zip(RANGES, map(const, at)))


def test_where_the_gate_is_open_the_index_is_the_same(seed):
  rng, changed = random.Random(seed), 0
  while changed < 12:
    inside = [(a_sum(rng), rng.randint(2, 9)) for _ in range(rng.randint(1, 2))]
    gate = reduce(both, (within(*i) for i in inside), TRUE)
    if gate is FALSE:
      continue
    index = an_index(rng, inside)
    (found,) = guarded((index,), gate)
    lo, hi = guarded_bounds(index, gate)
    changed += found is not index
    for at in places() if found is not index or rng.random() < 0.1 else ():
      if substitute(gate, at) is TRUE:
        value = substitute(index, at)
        assert substitute(found, at) is value and lo <= value.arg <= hi, f"{index} beneath {gate} at {at}"


def test_what_was_divided_becomes_one_again():
  """As loops over channels, rows and columns that become one loop: not by one, and then the next, but all three."""
  k = range_("k", 60)
  parts = (mul(div(k, 9), 9), mul(mod(div(k, 3), 3), 3), mod(k, 3))
  for order in permutations(parts):
    assert reduce(add, order) is k
    assert reduce(add, (mul(part, 7) for part in order), const(1)) is add(mul(k, 7), 1)
  for other in (mul(div(k, 9), 8), mul(div(k, 18), 9), div(k, 9)):
    at = {k: const(31)}
    left = reduce(add, (other, *parts[1:]))
    assert (
      substitute(left, at).arg == sum(substitute(x, at).arg for x in (other, *parts[1:])) and left is not k
    )


def test_rows_of_a_padded_image_are_not_divided():
  k, y, x, u = RANGES
  gate = both(within(add(y, -1), 3), within(add(x, -1), 3))
  flat = add(add(mul(k, 9), mul(y, 3)), add(x, -4))
  assert guarded((div(flat, 9), mod(div(flat, 3), 3), mod(flat, 3)), gate) == (k, add(y, -1), add(x, -1))
  assert guarded((div(flat, 27),), gate) == (div(k, 3),)
  assert guarded((add(flat, u),), gate) == (add(flat, u),)


def test_what_a_guard_proves():
  _, y, x, _ = RANGES
  row = add(mul(y, 5), x)
  assert provable(div(row, 7), 2, less(row, 14)) and not provable(div(row, 7), 2, less(row, 15))
  assert provable(add(mul(y, 2), add(x, -2)), 8, within(add(x, -2), 2))
  assert not provable(add(mul(y, 2), add(x, -2)), 8, within(add(x, -1), 2))
  assert provable(x, 1, both(less(x, 1), less(mul(x, -1), -1)))  # 1 < x < 1
  assert provable(mod(row, 4), 2, less(mod(row, 4), 2)) and not provable(mod(row, 4), 1, less(mod(row, 4), 2))


def test_a_padded_group_norm_is_read_where_it_lies():
  """Its channels in groups and the window's padding met in quotients that no rule could take apart."""
  x, w = Tensor.rand(2, 8, 31, 31).realize(), Tensor.rand(4, 8, 2, 2).realize()
  y = nn.GroupNorm(2, 8)(x).conv2d(w, stride=2, padding=1)  # windows that do not overlap: nothing has memory
  kernels, _ = schedule({"out": y.uop})
  loads = [line.split(" if ")[0] for k in kernels for line in kernel_text(k).splitlines() if " if " in line]
  assert len(loads) == 3 and re.search(r"\[%i, %k, %\w\*2 \+ %k1 - 1, %\w\*2 \+ %k2 - 1\]$", loads[0])
  assert all(e.endswith("[%i, %k // 4, 0]") for e in loads[1:])


def test_cells_that_are_covered_are_taken():
  """What `covered` says, beside all values: it may say nothing, but nothing that is wrong."""
  rng = random.Random(7)
  said = 0
  for _ in range(400):
    terms = []
    for r in rng.choices(RANGES, k=rng.randint(1, 3)):
      t = mul(r, rng.choice((1, 1, 2, 3, -1)))
      if rng.random() < 0.3:
        t = rng.choice((div, mod))(r, rng.choice((2, 3)))
      elif rng.random() < 0.4:
        t = mul(least(mul(r, rng.choice((1, 2, 3))), rng.choice((1, 4, 7))), rng.choice((1, 4, -1)))
      terms.append(t)
    e = reduce(add, terms, const(rng.randint(-3, 3)))
    if (found := covered(e, frozenset(RANGES))) is None:
      continue
    said += 1
    first, count = found
    mine = [r for r in RANGES if r in e.free]
    taken = {
      substitute(e, dict(zip(mine, map(const, at)))).arg for at in product(*(range(rsize(r)) for r in mine))
    }
    assert taken >= {*range(first.arg, first.arg + count)}, e
  assert said > 60


def test_sums_end_where_a_machine_word_does():
  k, y = RANGES[:2]
  for sign in (1, -1):
    far = {k: (0, MOST - 10) if sign > 0 else (10 - MOST, 0)}
    assert fits(add(k, 9 * sign), far) and not fits(add(k, 10 * sign), far)
    assert fits(add(k, mul(y, 3 * sign)), far) and not fits(add(k, mul(y, 4 * sign)), far)  # y is 3 at most
    assert not fits(
      add(k, -20 * sign), {k: (0, MOST) if sign > 0 else (-MOST, 0)}
    )  # the sum fits, k alone does not
    near = {k: (0, MOST // 3) if sign > 0 else (-(MOST // 3), 0)}
    assert fits(mul(k, 3), near) and not fits(mul(k, 4), near) and fits(k, near, 3) and not fits(k, near, 4)
  assert fits(mul(k, MOST // 6), {k: (0, 5)}) and not fits(mul(k, MOST), {k: (0, 0)})
  # any 64 bits, which a minimum compares as they are
  data = cast(load(param("n", (4,), dtypes.int64), (y,)), dtypes.index)
  cut, twice = least(data, 7), least(mul(data, 2), 7)
  assert (
    fits(cut, {cut: (0, 7)}) and not fits(twice, {twice: (0, 7)}) and not fits(mul(cut, 2), {cut: (0, 7)})
  )


def test_what_limits_of_a_loop_say_is_not_asked_again():
  """Where a loop has the limit of a condition, it holds in the loop, and what is one step further does not."""
  rng, outer = random.Random(0), range_("o", 7)
  for _ in range(300):
    step, times, first, most = (
      rng.choice([-3, -2, -1, 1, 2, 3]),
      rng.randint(-3, 3),
      rng.randint(-9, 9),
      rng.randint(-9, 9),
    )
    rest = add(mul(outer, times), first)
    edge = limit(rest, most, step)
    limits = (const(0), edge) if step > 0 else (edge, const(9))
    r = range_("r", 9, "loop", limits)
    asked = less(add(mul(r, step), rest), most)
    assert asked in (TRUE, FALSE) or is_implied(asked)
    assert not is_implied(less(add(mul(r, step), rest), most - abs(step)))
    assert not is_implied(less(add(mul(range_("r", 9), step), rest), most))
    for o in range(7):
      begin, end = (
        max(substitute(limits[0], {outer: const(o)}).arg, 0),
        substitute(limits[1], {outer: const(o)}).arg,
      )
      holds = [n for n in range(9) if step * n + times * o + first < most]
      assert holds == list(range(begin, min(end, 9)))


def test_limits_that_data_are_in_are_asked_again():
  data = cast(load(param("a0", (), dtypes.int64), ()), dtypes.index)
  r = range_("r", 9, "loop", (const(0), limit(data, 100, 1)))
  assert not is_implied(less(add(r, data), 100))
