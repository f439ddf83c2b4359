"""Random tensor programs, compared with NumPy: shapes, views, broadcasts, types, empty and 0-d tensors,
several outputs.

    python test/fuzz_tensor.py [SEEDS] [FIRST]      runs seeds FIRST, FIRST+1, ... and prints those that fail

Every step is done twice, on a Tensor and on an array. NumPy is told PyTorch's rules where they differ (sums of integers
are int64, numbers are weak). Floats begin as small multiples of 1/4; what is still on such a grid must be equal however
it was computed (fused, in another order, in float32), and only that enters steps which would blow a rounding up.
"""

from __future__ import annotations

import sys
import traceback
import warnings

import numpy as np

from mini import Tensor, dtypes

TYPES = [
  dtypes.float32,
  dtypes.float32,
  dtypes.float64,
  dtypes.float16,
  dtypes.int32,
  dtypes.int64,
  dtypes.int8,
  dtypes.uint8,
  dtypes.bool,
]
EDGES = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 3.0]


def on_grid(a: np.ndarray) -> bool:
  """Is every sum and product on the way here exact? True of integers, and of floats that are few and small enough."""
  if a.dtype.kind != "f":
    return True
  with np.errstate(all="ignore"):
    x = a.astype(np.float64) * (8 if a.dtype.itemsize == 2 else 256)
    return bool(
      np.all(~np.isfinite(x) | ((x == np.rint(x)) & (np.abs(x) < (2**9 if a.dtype.itemsize == 2 else 2**20))))
    )


class Fuzzer:
  """One program: pairs of (tensor, array), to which each step adds one."""

  def __init__(self, seed: int):
    self.r = np.random.default_rng(seed)
    self.log: list[str] = []
    self.pairs: list[tuple[Tensor, np.ndarray]] = []
    self.exact: list[bool] = []  # of each pair
    self.used: list[bool] = []  # are those that the present step looks at exact?

  # ---------------------------------------------------------------- choosing

  def pick(self, xs):
    return xs[int(self.r.integers(len(xs)))]

  def shape(self) -> tuple[int, ...]:
    sizes = [0, 1, 1, 2, 3, 4, 5, 7] if self.r.random() < 0.15 else [1, 2, 3, 4, 5, 7, 9, 17]
    return tuple(int(self.pick(sizes)) for _ in range(self.r.integers(0, 4)))

  def leaf(self, s=None):
    d, s = self.pick(TYPES), self.shape() if s is None else s
    if d.kind == "f":
      a = np.asarray(self.r.integers(-12, 13, s) / 4, d.np)
      if self.r.random() < 0.2 and a.size:
        a.flat[self.r.integers(a.size)] = self.pick(EDGES)
    else:
      a = (
        self.r.random(s) < 0.5
        if d.kind == "b"
        else self.r.integers(0 if d.kind == "u" else -9, 10, s).astype(d.np)
      )
    return self.add(f"leaf {d.short}{list(s)}", self.tensor(a, d), np.asarray(a))

  def tensor(self, a, dtype=None):
    """A tensor of data."""
    return Tensor(a, dtype=dtype)

  def add(self, what, t, a):
    a = np.asarray(a)
    self.log.append(what)
    self.pairs.append((t, a))
    self.exact.append(on_grid(a) and (all(self.used) or a.dtype.kind != "f"))
    return self.pairs[-1]

  def some(self, exact=False):
    at = self.pick([i for i in range(len(self.pairs)) if self.exact[i] or not exact])
    self.used.append(self.exact[at])
    return self.pairs[at]

  def matching(self, a):
    """A pair whose shape repeats to a's, of a's type: an operand. It is exact."""
    fits = [
      (t, b)
      for (t, b), ok in zip(self.pairs, self.exact)
      if ok and b.dtype == a.dtype and (b.shape == a.shape or b.ndim == 0)
    ]
    if fits and self.r.random() < 0.7:
      return self.pick(fits)
    s = tuple(1 if self.r.random() < 0.3 else n for n in a.shape)[
      int(self.r.integers(0, a.ndim + 1)) if self.r.random() < 0.3 else 0 :
    ]
    b = np.asarray(self.r.integers(-8, 9, s) / 4 if a.dtype.kind == "f" else self.r.integers(0, 5, s)).astype(
      a.dtype
    )
    return self.add(f"leaf {b.dtype}{list(s)}", self.tensor(b), b)

  # ---------------------------------------------------------------- steps

  def step_binary(self):
    t, a = self.some()
    u, b = self.matching(a)
    ops = ["+", "*", "-"] if a.dtype.kind != "b" else ["&", "|", "^"]
    if a.dtype.kind in "iu":
      ops += ["//", "%", "&", "|"]
    op = self.pick(ops + ["<", "<=", "==", "!=", ">="])
    if "=" in op or "<" in op:
      t, a = self.some(exact=True)
      u, b = self.matching(a)
    self.add(
      f"{op} {a.shape} {b.shape}", eval(f"x {op} y", {"x": t, "y": u}), eval(f"x {op} y", {"x": a, "y": b})
    )

  def step_extreme(self):
    t, a = self.some(exact=True)
    u, b = self.matching(a)
    name = self.pick(["maximum", "minimum"])
    self.add(name, getattr(t, name)(u), getattr(np, name)(a, b))

  def step_number(self):
    t, a = self.some()
    if a.dtype.kind == "b":
      return
    n = int(self.r.integers(0, 4)) if a.dtype.kind in "iu" else float(self.r.integers(-4, 5)) / 2
    self.add(f"* {n} + 1", t * n + 1, (a * a.dtype.type(n) + a.dtype.type(1)).astype(a.dtype))

  def step_unary(self):
    t, a = self.some()
    if a.dtype.kind == "f" and a.dtype.itemsize > 2:
      name = self.pick(["exp", "tanh", "sin", "sqrt", "abs", "neg", "floor", "round", "square"])
      if name in ("floor", "round", "sqrt") and not self.used[-1]:
        return
      numpy_name = {"neg": "negative", "round": "rint"}.get(name, name)
      small = (t.clamp(-8, 8), np.clip(a, -8, 8)) if name in ("exp", "tanh", "sin") else (t, a)
      self.add(name, getattr(small[0], name)(), getattr(np, numpy_name)(small[1]))
    elif a.dtype.kind in "iub":
      self.add("~", ~t, ~a)

  def step_where(self):
    t, a = self.some(exact=True)
    u, b = self.matching(a)
    self.add("where", (t != u).where(t, u), np.where(a != b, a, b))

  def step_cast(self):
    t, a = self.some(exact=True)
    d = self.pick(TYPES)
    if a.dtype.kind == "f" and d.kind in "iu":
      t, a = t.nan_to_num(0, 0, 0).clamp(0, 100), np.clip(np.nan_to_num(a, nan=0, posinf=0, neginf=0), 0, 100)
    self.add(f"cast {d.short}", t.cast(d), a.astype(d.np))

  def step_reshape(self):
    t, a = self.some()
    sizes = [n for n in a.shape if n != 1]
    s = self.pick(
      [
        (-1,),
        tuple(sizes),
        (*a.shape, 1),
        (1, *a.shape),
        tuple(reversed(a.shape)),
        (*a.shape[:-2], -1) if a.ndim > 1 else (-1,),
      ]
    )
    if not a.size:
      s = tuple(s) if -1 not in s else (a.size,)
    self.add(f"reshape {s}", t.reshape(s), a.reshape(s))

  def step_permute(self):
    t, a = self.some()
    order = tuple(int(n) for n in self.r.permutation(a.ndim))
    self.add(f"permute {order}", t.permute(order), a.transpose(order))

  def step_expand(self):
    t, a = self.some()
    if a.size > 2000:
      return
    s = (
      *(int(n) for n in self.r.integers(1, 4, self.r.integers(0, 2))),
      *(int(self.r.integers(1, 5)) if n == 1 else n for n in a.shape),
    )
    self.add(f"expand {s}", t.expand(s), np.broadcast_to(a, s))

  def step_pad(self):
    t, a = self.some()
    if a.ndim and a.size < 2000:
      widths = tuple((int(lo), int(hi)) for lo, hi in self.r.integers(0, 3, (a.ndim, 2)))
      value = int(self.pick([0, 0, 1]))
      self.add(f"pad {widths} {value}", t.pad(widths, value=value), np.pad(a, widths, constant_values=value))

  def step_slice(self):
    t, a = self.some()
    index = tuple(self.one_index(n) for n in a.shape)
    self.add(f"[{index}]", t[index], a[index])

  def one_index(self, n):
    kind = self.r.random()
    if kind < 0.3 and n:
      return int(self.r.integers(-n, n))
    if kind < 0.8:
      ends = [None, *range(-n - 1, n + 2)]
      return slice(self.pick(ends), self.pick(ends), self.pick([None, 1, 1, 2, 3, -1, -2]))
    return slice(None)

  def step_flip(self):
    t, a = self.some()
    axes = tuple(i for i in range(a.ndim) if self.r.random() < 0.5)
    self.add(f"flip {axes}", t.flip(axes), np.flip(a, axes)) if axes else None

  def step_roll(self):
    t, a = self.some()
    if a.ndim:
      axis, by = int(self.r.integers(a.ndim)), int(self.r.integers(-5, 6))
      self.add(f"roll {by} {axis}", t.roll(by, axis), np.roll(a, by, axis))

  def step_take(self):
    t, a = self.some()
    axes = [i for i, n in enumerate(a.shape) if n]
    if axes and a.size < 3000:
      axis = self.pick(axes)
      i = self.r.integers(-a.shape[axis], a.shape[axis], tuple(self.r.integers(1, 4, self.r.integers(0, 3))))
      at = (slice(None),) * axis + (i,)
      tensor_at = (slice(None),) * axis + (self.tensor(i) if self.r.random() < 0.7 else i,)
      self.add(f"take {axis} {i.shape}", t[tensor_at], a[at])

  def step_put(self):
    t, a = self.some()
    index = tuple(self.one_index(n) for n in a.shape)
    u, b = t.clone(), a.copy()
    value = int(self.r.integers(0, 2))
    u[index], b[index] = value, value
    self.add(f"[{index}] = {value}", u, b)

  def step_scatter(self):
    t, a = self.some()
    if a.ndim and a.shape[0] and a.size < 3000 and a.dtype.kind in "iu":
      i = self.r.integers(0, a.shape[0], (int(self.r.integers(1, 6)), *a.shape[1:]))
      b = a.copy()
      np.add.at(b, (i, *np.ogrid[tuple(map(slice, i.shape))][1:]), a.dtype.type(1))
      self.add(f"scatter_add {i.shape}", t.scatter_add(0, self.tensor(i), 1), b)

  def step_reduce(self):
    t, a = self.some()
    axes = tuple(i for i in range(a.ndim) if self.r.random() < 0.5) or None
    kinds = (
      ["sum", "any", "all"]
      + (["amax", "amin"] if a.size else [])
      + (["mean"] if a.dtype.kind == "f" and a.size else [])
    )
    kind, keep = self.pick(kinds), bool(self.r.random() < 0.5)
    if kind in ("any", "all"):
      out = np.asarray(getattr(np, kind)(a, axis=axes, keepdims=keep))
      own = a.dtype if a.dtype == np.uint8 else bool  # as PyTorch has it
      self.add(f"{kind} {axes}", getattr(t, kind)(axes, keepdim=keep), out.astype(own))
      return
    wide = {"sum": np.int64 if a.dtype.kind in "iub" else None}.get(kind)
    b = a.astype(np.float32) if a.dtype == np.float16 and kind != "amax" else a.astype(wide) if wide else a
    out = getattr(np, kind)(b, axis=axes, keepdims=keep)
    self.add(
      f"{kind} {axes}",
      getattr(t, kind)(axes, keepdim=keep),
      out.astype(a.dtype) if a.dtype.kind == "f" else out,
    )

  def step_argmax(self):
    t, a = self.some(exact=True)
    axes = [i for i, n in enumerate(a.shape) if n]
    if axes and a.size:
      axis = self.pick(axes)
      self.add(f"argmax {axis}", t.argmax(axis), np.argmax(a, axis))

  def step_cumsum(self):
    t, a = self.some()
    if a.ndim and a.dtype.kind in "iub":
      axis = int(self.r.integers(a.ndim))
      self.add(f"cumsum {axis}", t.cumsum(axis), np.cumsum(a, axis, dtype=np.int64))

  def step_softmax(self):
    t, a = self.some()
    if a.ndim and a.dtype.kind == "f" and a.dtype.itemsize > 2 and a.size:
      t, a = t.clamp(-9, 9), np.clip(a, -9, 9)
      e = np.exp(a - a.max(-1, keepdims=True))
      self.add("softmax", t.softmax(-1), e / e.sum(-1, keepdims=True))

  def step_matmul(self):
    t, a = self.some()
    if a.ndim and a.dtype.kind in "fi" and a.dtype.itemsize > 2 and a.size < 3000:
      b = self.r.integers(-2, 3, (a.shape[-1], int(self.r.integers(1, 9)))).astype(a.dtype)
      self.add(f"matmul {a.shape} {b.shape}", t @ self.tensor(b), a @ b)

  def step_cat(self):
    t, a = self.some()
    if a.ndim and a.size < 3000:
      axis = int(self.r.integers(a.ndim))
      self.add(
        f"cat {axis}", Tensor.cat([t, t.flip(axis), t], axis), np.concatenate([a, np.flip(a, axis), a], axis)
      )

  def step_realize(self):
    t, _ = self.some()
    t.realize()
    self.log.append("realize")

  # ---------------------------------------------------------------- running

  def run(self, steps: int = 12) -> None:
    """Build the program, compute some of its results together, and compare all of them."""
    names = sorted(n for n in dir(self) if n.startswith("step_"))
    with np.errstate(all="ignore"), warnings.catch_warnings():
      warnings.simplefilter("ignore")
      for _ in range(int(self.r.integers(1, 4))):
        self.leaf()
      for _ in range(steps):
        self.used = []
        getattr(self, self.pick(names))()
      outputs = [self.pairs[int(i)][0] for i in self.r.permutation(len(self.pairs))[:4]]
      outputs[0].realize(*outputs[1:])
      for what, (t, a), exact in zip([w for w in self.log if w != "realize"], self.pairs, self.exact):
        self.check(what, t, a, exact)

  @staticmethod
  def check(what: str, t: Tensor, a: np.ndarray, exact: bool) -> None:
    assert t.shape == a.shape, f"{what}: shape {t.shape}, not {a.shape}"
    assert t.dtype.np == a.dtype, f"{what}: type {t.dtype.name}, not {a.dtype}"
    got = t.numpy()
    if a.dtype.kind != "f" or exact:
      np.testing.assert_array_equal(got, a, err_msg=what)
      return
    finite = np.abs(a[np.isfinite(a)].astype(np.float64))
    scale = float(finite.max()) if finite.size else 1.0
    tolerance = {2: 1e-2, 4: 1e-4, 8: 1e-9}[a.dtype.itemsize]
    np.testing.assert_allclose(
      got.astype(np.float64),
      a.astype(np.float64),
      rtol=tolerance,
      atol=tolerance * min(max(scale, 1.0), 1e6),
      err_msg=what,
    )


def run(seed: int) -> None:
  """One random program. A failure says the seed and the steps."""
  fuzzer = Fuzzer(seed)
  try:
    fuzzer.run()
  except Exception as e:
    steps = "\n  ".join(fuzzer.log)
    raise AssertionError(f"seed {seed}: {type(e).__name__}: {e}\nsteps:\n  {steps}") from e


if __name__ == "__main__":
  count, first = (int(x) for x in (*sys.argv[1:], *("200", "0")[len(sys.argv) - 1 :]))
  failed = []
  for seed in range(first, first + count):
    try:
      run(seed)
    except AssertionError:
      traceback.print_exc()
      failed.append(seed)
  print(f"{count - len(failed)} of {count} programs agree with NumPy; failing seeds: {failed}")
  sys.exit(bool(failed))
