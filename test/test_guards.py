"""What a guard says of the indices beneath it, beside all values of their ranges."""

import random
from functools import reduce
from itertools import permutations, product

from mini import Tensor, nn
from mini.ir.guards import guarded, guarded_bounds
from mini.ir.text import kernel_text
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
from mini.ir.verify import provable
from mini.schedule import schedule

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
  x, w = Tensor.rand(2, 8, 5, 5).realize(), Tensor.rand(4, 8, 3, 3).realize()
  y = nn.GroupNorm(2, 8)(x).conv2d(w, padding=1)
  kernels, _ = schedule({"out": y.uop})
  loads = [line.split(" if ")[0] for k in kernels for line in kernel_text(k).splitlines() if " if " in line]
  assert len(loads) == 3 and loads[0].endswith("[%i, %k, %k1 + %m - 1, %k2 + %n - 1]")
  assert all(e.endswith("[%k // 4]") for e in loads[1:])
