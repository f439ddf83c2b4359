"""A value of 16 bits has one rounding, wherever it lives: in memory, or within a kernel that computes on."""

import numpy as np
import pytest

from mini import Tensor, dtypes
from mini.config import Context
from mini.tensor.rounding import ONCE

NARROW = [dtypes.bfloat16, dtypes.float16]
DIGITS = {dtypes.bfloat16: 8, dtypes.float16: 11}

# what a step of a program does with two values of a shape (8, 6)
# fmt: off
STEPS = {
  "add":     lambda a, b: a + b,
  "sub":     lambda a, b: a - b,
  "mul":     lambda a, b: a * b,
  "div":     lambda a, b: a / (b.abs() + 0.5),
  "scale":   lambda a, b: a * 0.3 + 1.7,
  "turn":    lambda a, b: -a,
  "max":     lambda a, b: a.maximum(b),
  "where":   lambda a, b: (a < b).where(a, b * b),
  "sqrt":    lambda a, b: a.abs().sqrt(),
  "exp":     lambda a, b: (a * 0.1).exp(),
  "gelu":    lambda a, b: a.gelu(),
  "sigmoid": lambda a, b: b.sigmoid(),
  "wide":    lambda a, b: (a.float() * b.float()).cast(a.dtype),
  "other":   lambda a, b: a.cast(dtypes.float16 if a.dtype is dtypes.bfloat16 else dtypes.bfloat16).cast(a.dtype),
  "rows":    lambda a, b: a + b.sum(1, keepdim=True),
  "columns": lambda a, b: a - (a * b).sum(0, keepdim=True),
  "flip":    lambda a, b: (a + 0.1).flip(0) + b,
  "view":    lambda a, b: (a * b).reshape(6, 8).T,
  "iota":    lambda a, b: a + Tensor.arange(480).cast(a.dtype).reshape(10, 8, 6)[-1] * 0.01,
}
# fmt: on


def program(seed, d, each):
  """What a random program of 16 bits gives. each: what is done with every value on the way."""
  rng = np.random.default_rng(seed)
  values = [Tensor(rng.standard_normal((8, 6)).astype(np.float32)).cast(d).realize() for _ in range(3)]
  for name in rng.choice(list(STEPS), rng.integers(2, 7)):
    a, b = (values[n] for n in rng.integers(0, len(values), 2))
    # of few numbers of a few sizes a sum is exact, in any order
    values.append(each(each(STEPS[name](a, b)).clamp(-16, 16) + 0.0625))
  return [v.float().numpy() for v in values[3:]]


def differences(seeds, d):
  for seed in seeds:
    fused, realized = program(seed, d, lambda x: x), program(seed, d, lambda x: x.realize())
    for n, (x, y) in enumerate(zip(fused, realized)):
      assert np.array_equal(x, y, equal_nan=True), f"value {n} of program {seed} of {d.name}"


@pytest.mark.sample(2)
@pytest.mark.parametrize("d", NARROW)
def test_programs_give_the_same_bits_whether_values_are_kept_or_not(d):
  differences(range(3), d)


@pytest.mark.full
@pytest.mark.parametrize("d", NARROW)
def test_many_programs_give_the_same_bits_whether_values_are_kept_or_not(d, seed):
  differences(range(seed, seed + 300), d)


@pytest.mark.sample(2)
@pytest.mark.parametrize("d", NARROW)
@pytest.mark.parametrize("dev", ["CL", "CUDA", "METAL", "INTERP"])
def test_every_device_rounds_as_the_cpu_does(dev, d, rng):
  a, b = (rng.standard_normal(100).astype(np.float32) for _ in range(2))

  def f():
    x, y = Tensor(a).cast(d), Tensor(b).cast(d)
    return (((x + y) * x / (y * y + 1) - 0.3).float() * 1).numpy()

  here = f()
  with Context(DEV=dev, EMULATE=1):
    assert np.array_equal(f(), here)


@pytest.mark.sample(2)
@pytest.mark.parametrize("d", NARROW)
@pytest.mark.full
def test_functions_of_several_operations_round_once(d, rng):
  x, y, z = (Tensor(rng.uniform(0.1, 0.9, 500).astype(np.float32)).cast(d).realize() for _ in range(3))
  two = "arctan2 atan2 hypot logaddexp logaddexp2 xlogy"
  of = {"addcdiv": (y, z), "addcmul": (y, z), "lerp": (y, 0.3)} | {name: (y,) for name in two.split()}
  losses = [n for n in ONCE.split() if n.endswith("loss") or n.startswith("binary")]
  names = [n for n in ONCE.split() if n not in (*losses, "glu", "prelu")]

  def results(kind):
    def result(name):
      a = (x + 1 if name in ("acosh", "arccosh") else x).cast(kind)
      return getattr(a, name)(*(v.cast(kind) if isinstance(v, Tensor) else v for v in of.get(name, ())))

    return Tensor.stack([result(n) for n in names]).double().numpy()

  true = results(dtypes.float64)
  off = np.abs(results(d) - true) - np.abs(true) * (0.505 * 2.0 ** (1 - DIGITS[d])) - 1e-7
  assert [n for n, worst in zip(names, off.max(1)) if worst > 0] == []


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 16, 33])
def test_vectors_of_all_widths_are_rounded_between_two_types(n):
  """gcc 12 takes the conversions to a narrow type and back for none, in vectors that are made element by element."""
  rng = np.random.default_rng(n)
  rows = {d: (rng.standard_normal((3, n)) * 1000).astype(d) for d in (np.float32, np.float64, np.int32)}
  found = {
    (wide, narrow): (Tensor(x) * 3).cast(narrow).cast(wide)
    for wide, x in rows.items()
    for narrow in (dtypes.float16, dtypes.float32, dtypes.int16, dtypes.int8)
    if wide is not np.int32 or narrow.kind == "f" or narrow is dtypes.int16
  }
  Tensor.realize(*found.values())
  for (wide, narrow), t in found.items():
    x, between = rows[wide] * wide(3), np.dtype(narrow.name)
    if between.kind == "i" and wide is not np.int32:  # out of range is undefined in NumPy, wraps here
      x = np.trunc(x).astype(np.int64)
    assert np.array_equal(t.numpy(), x.astype(between).astype(wide)), (wide, narrow)
