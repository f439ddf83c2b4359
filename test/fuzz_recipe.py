"""Random recipes: whatever steps apply, in whatever order,
the kernel in C computes what the interpreter computes of it plain.

python test/fuzz_recipe.py SEED COUNT [FAMILY ...]    as many recipes for each family; prints what disagrees

A step that does not apply is refused with a reason (RecipeError), and so is a recipe that leaves what the verifier
refuses. Anything else that is raised is a fault. How far results may be apart is computed from the data: see `Bounds`.
"""

from __future__ import annotations

import random
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod

import golden_sources as golden
import numpy as np

from mini import Device, Tensor
from mini.codegen.linearize import lanes, places
from mini.codegen.matrix import instruction_of
from mini.codegen.recipe import RecipeError, Tuning
from mini.codegen.threads import threads
from mini.engine.launch import interface
from mini.engine.plan import nameless, scheduled
from mini.engine.realize import Numbered
from mini.ir import interp
from mini.ir.kernel import access, all_ranges, extent, guarded, kernel, params_of, stage_index, stores
from mini.ir.rules import simplify
from mini.ir.uop import UOp, closed, is_condition, rname, rsize, toposort
from mini.render import render_for
from mini.render.c import render
from mini.text.printer import graph_program, kernel_text
from mini.text.verifier import VerifyError, verify
from mini.types import dtypes, to_bfloat16, to_storage
from runtime.base import Call
from runtime.compiler import QUICK, Build, finish_all
from runtime.library import Library

# ---------------------------------------------------------------- the kernels

SIZES = [1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 23, 31, 33]


class Maker:
  """Random sizes, types and inputs."""

  def __init__(self, rng: random.Random):
    self.rng = rng
    self.dtype = rng.choice(
      [dtypes.float32] * 5 + [dtypes.float64, dtypes.int32, dtypes.float16, dtypes.bfloat16]
    )
    self.float = self.dtype if self.dtype.kind == "f" else dtypes.float32

  def n(self, most: int = 33) -> int:
    return self.rng.choice([n for n in SIZES if n <= most])

  def __call__(self, *shape: int, dtype=None) -> Tensor:
    dtype = dtype or self.dtype
    return Tensor(np.zeros(shape, np.float32 if dtype is dtypes.bfloat16 else dtype.np)).cast(dtype).realize()

  def floats(self, *shape: int) -> Tensor:
    return self(*shape, dtype=self.float)

  def indices(self, *shape: int) -> Tensor:
    return self(*shape, dtype=dtypes.int32)


def contraction(t: Maker) -> Tensor:
  i, j, k = t.n(), t.n(), t.n()
  a = t(i, k) if t.rng.random() < 0.5 else t(k, i).T
  b = t(k, j) if t.rng.random() < 0.5 else t(j, k).T
  c = a @ b
  return t.rng.choice([c, c.T, (c + t(j)).relu()])


def batched(t: Maker) -> Tensor:
  n, i, j, k = t.n(5), t.n(17), t.n(17), t.n(17)
  a = t(n, i, k) if t.rng.random() < 0.5 else t(n, k, i).transpose(1, 2)
  return a @ (t(n, k, j) if t.rng.random() < 0.5 else t(n, j, k).transpose(1, 2))


def window(t: Maker) -> Tensor:
  x = t(2, t.n(5), t.n(13) + 4, t.n(13) + 4)
  if t.rng.random() < 0.4:
    return x.max_pool2d(t.rng.choice([2, 3]), stride=t.rng.choice([1, 2]))
  k, step = t.rng.choice([1, 3]), t.rng.choice([1, 2])
  seen = x.pad((1, 1, 1, 1)).unfold(2, k, step).unfold(3, k, step)  # [n, c, h, w, k, k]
  return (seen.unsqueeze(1) * t(t.n(5), x.shape[1], 1, 1, k, k)).sum((2, 5, 6))


def adamw(t: Maker) -> tuple[Tensor, ...]:
  s = (t.n(), t.n())
  p, g, m, v = (t.floats(*s) for _ in range(4))
  m, v = m * 0.9 + g * 0.1, v * 0.99 + g * g * 0.01
  return p - 0.01 * (m / ((v * v + 1).sqrt() + 1e-3) + 0.1 * p), m, v


def strided(t: Maker) -> Tensor:
  a, b, c = t.n(9), t.n(17), t.n(17)
  x = t(a, b, c)
  return t.rng.choice([
    lambda: x.permute(2, 0, 1) * t(b),
    lambda: x.flip(1) + t(a, 1, c),
    lambda: x[:, ::2, 1:].transpose(1, 2).reshape(-1),
    lambda: x.pad(((0, 0), (1, 2), (2, 0))) * 3,
    lambda: x.reshape(b, a, c) + t(c),
    lambda: Tensor.cat(x, x * 2, dim=1),
  ])()  # fmt: skip


def attention(t: Maker) -> Tensor:
  n, m, d = t.n(17), t.n(17), t.n(9)
  return (t.floats(n, d) @ t.floats(d, m)).softmax(1) @ t.floats(m, d)


def masked(t: Maker) -> Tensor:
  n, d = t.n(17), t.n(9)
  if t.rng.random() < 0.5:
    return t(n, n).tril(t.rng.choice([0, 1, -1])) @ t(n, d)
  return t.floats(n, d).scaled_dot_product_attention(t.floats(n, d), t.floats(n, d), is_causal=True)


def crossed(t: Maker) -> Tensor:
  """Rows of a product, summed along both of its axes: one kernel, which adds row by row."""
  b, n, d = t.rng.choice([8, 9]), t.rng.choice([8, 12, 16]), t.rng.choice([1, 2])
  p = (t.floats(b, n, d) @ t.floats(b, d, n)).exp()
  p = p.tril() if t.rng.random() < 0.5 else p
  return (p @ t.floats(b, n, d)).cat(p.mT @ t.floats(b, n, d), dim=1)


def gather(t: Maker) -> Tensor:
  n, m = t.n(), t.n()
  return t(n, m)[t.indices(t.n())] * t(m) if t.rng.random() < 0.7 else t(n, m).gather(1, t.indices(n, t.n()))


# fmt: off
FAMILIES = {
  "elementwise": lambda t: (t.floats(n := t.n() * t.n()) * t.floats(n)).exp() / (t.floats(n).abs() + 1) + t.floats(n),
  "strided":     strided,
  "row reduce":  lambda t: t.rng.choice([Tensor.sum, Tensor.amax, Tensor.amin])(t(t.n(), t.n() * 3) * 2, 1),
  "column reduce": lambda t: t.rng.choice([Tensor.sum, Tensor.amax, Tensor.prod])(t(t.n(), t.n()) - 1, 0),
  "full reduce": lambda t: t.rng.choice([Tensor.sum, Tensor.max, Tensor.argmax])(t(t.n(), t.n(), t.n(5))),
  "rows":        lambda t: t.rng.choice([Tensor.softmax, Tensor.layernorm, Tensor.log_softmax])(t.floats(t.n(), t.n())),
  "attention":   attention,
  "crossed":     crossed,
  "masked":      masked,
  "contraction": contraction,
  "batched":     batched,
  "window":      window,
  "gather":      gather,
  "scatter":     lambda t: t.rng.choice([Tensor.scatter_add, Tensor.scatter])(
                           t(n := t.n(), m := t.n()), 0, t.indices(n, m), t(n, m)),
  "scan":        lambda t: t.rng.choice([Tensor.cumsum, Tensor.cumprod])(t(t.n(), t.n()) * 0.5, t.rng.choice([0, 1])),
  "outputs":     adamw,
}
# fmt: on


def kernels_of(made: Tensor | tuple[Tensor, ...], gpu: bool = False) -> list[UOp]:
  roots = made if isinstance(made, tuple) else (made,)
  graph = graph_program("g", tuple(simplify(Numbered([x.uop for x in roots]).roots)))
  return [nameless(k).kernel for k in scheduled(graph, gpu).kernels]


def random_data(k: UOp, seed: int) -> dict[str, np.ndarray]:
  """Normal numbers; integers that are indices of every axis there is."""
  rng = np.random.default_rng(seed)
  data = {}
  sizes = [n for m in interface(k) for n in m.shape]
  for m in interface(k):
    x = (
      rng.standard_normal(m.shape)
      if m.dtype.kind == "f"
      else rng.integers(0, 2 if m.dtype.kind == "b" else min(sizes, default=1), m.shape)
    )
    data[m.name] = to_bfloat16(np.float32(x)) if m.dtype is dtypes.bfloat16 else np.asarray(x, m.dtype.np)
  return data


# ---------------------------------------------------------------- how far apart two right results may be

EPS = {dtypes.float16: 2.0**-10, dtypes.bfloat16: 2.0**-7, dtypes.float32: 2.0**-23, dtypes.float64: 2.0**-52}
ULPS = 8  # of an elementwise operation


class Bounds(interp._Slice):
  """The interpreter, which beside each value knows how far from it a device may be that adds in another order.

  A sum of n terms differs by at most n * eps * sum|terms|, and by what the terms do. An operation differs by some ulps,
  and by what it makes of differences of its operands, each moved both ways, and to 0 if that lies between.
  """

  def __init__(self, k: UOp, data: dict[str, np.ndarray]):
    super().__init__(k, data, all_ranges(k), ())
    self.unmade = set()  # type: ignore[assignment]
    self.err: dict[UOp, np.ndarray] = {}
    self.staged: dict[UOp, np.ndarray] = {}
    self.bounds = {p.arg[0]: np.zeros(p.arg[1]) for p in params_of(k)}

  def value(self, u: UOp) -> np.ndarray:
    x = super().value(u)
    with np.errstate(all="ignore"):
      self.err[u] = np.nan_to_num(self.spread(u, x) + np.zeros(self.ones), nan=np.inf, posinf=np.inf)
    return x

  def spread(self, u: UOp, x: np.ndarray) -> np.ndarray | float:
    if u.op == "load" and u.src[0].op == "stage":
      return np.where(self.val[access(u)[2]], self.staged[u.src[0]][self.cells(u)], 0)
    if u.op in ("const", "load") or u.dtype is dtypes.index or is_condition(u):
      return 0.0
    eps = EPS.get(u.dtype, 0)
    if u.op in ("reduce", "scan"):
      rs = closed(u) if u.op == "reduce" else (u.src[1],)
      axes, kind = tuple(self.axis[r] for r in rs), u.arg.what if u.op == "reduce" else u.arg
      terms, e = (
        self.along(np.abs(np.asarray(a, np.float64)), rs) for a in (self.val[u.src[0]], self.err[u.src[0]])
      )
      fold = (
        (lambda f, a: f.reduce(a, axis=axes, keepdims=True))
        if u.op == "reduce"
        else (lambda f, a: f.accumulate(a, axis=axes[0]))
      )
      if kind == "max":
        return fold(np.maximum, e)
      n = prod(map(rsize, rs))
      if kind == "add":
        return fold(np.add, e) + n * eps * fold(np.add, terms)
      return fold(np.multiply, terms * (1 + eps) ** 2 + e) * (1 + n * eps) - fold(np.multiply, terms)
    total = ULPS * eps * np.abs(np.asarray(x, np.float64))
    operands = [self.val[s] for s in u.src]
    for n, s in enumerate(u.src):
      e = self.err.get(s)
      if e is None or not e.any():
        continue
      worst: np.ndarray | float = 0.0
      for sign in (-2, 2):
        moved = (
          ~operands[n] & (e > 0) | operands[n] & (e == 0)
          if s.dtype is dtypes.bool
          else interp.held(operands[n] + sign * e, s.dtype)
        )
        if s.dtype.kind == "f":  # at least to the next number
          moved = (
            np.where(e > 0, np.nextafter(moved, np.asarray(sign * np.inf, moved.dtype)), moved)
            if s.dtype is not dtypes.bfloat16
            else moved
          )
        other = interp.elementwise(u, [*operands[:n], moved, *operands[n + 1 :]])
        worst = np.maximum(worst, np.abs(np.asarray(other, np.float64) - np.asarray(x, np.float64)))
      if s.dtype.kind == "f":
        moved = np.where(np.abs(operands[n]) <= 2 * e, 0, operands[n]).astype(operands[n].dtype)
        other = interp.elementwise(u, [*operands[:n], moved, *operands[n + 1 :]])
        worst = np.maximum(worst, np.abs(np.asarray(other, np.float64) - np.asarray(x, np.float64)))
      total = total + worst
    return total

  def stage(self, u: UOp) -> None:
    super().stage(u)
    self.staged[u] = np.zeros(self.memory[u].shape)
    *cells, e = np.broadcast_arrays(
      *self.outer(u), *(self.val[i] for i in stage_index(u)), self.err[u.src[0]]
    )
    self.staged[u][tuple(cells)] = e

  def store(self, u: UOp) -> None:
    super().store(u)
    target, index, gate = access(u)
    bound = self.bounds[target.arg[0]].reshape(-1) if not index else self.bounds[target.arg[0]]
    full = [self.val[r].size if r in closed(self.kernel) else 1 for r in self.ranges]
    where = [self.val[i] for i in index] or [np.zeros(self.ones, np.int64)]
    *at, e, x, on = np.broadcast_arrays(
      *where, self.err.get(u.src[1], 0), self.val[u.src[1]], np.broadcast_to(self.val[gate], full)
    )
    cells, eps = tuple(i[on] for i in at), EPS.get(u.src[1].dtype, 0)
    if u.arg == "add":
      np.add.at(bound, cells, e[on] + prod(full) * eps * np.abs(x[on]))
    elif u.arg is not None:
      np.maximum.at(bound, cells, e[on])
    else:
      bound[cells] = e[on]


def reference(k: UOp, data: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
  """({what the kernel writes}, {how far from it is right})."""
  mine = {name: x.copy() for name, x in data.items()}
  b = Bounds(k, mine)
  b.run()
  outs = [m.name for m in interface(k) if m.where != "in"]
  return {n: mine[n] for n in outs}, {n: b.bounds[n] for n in outs}


def apart(got: np.ndarray, want: np.ndarray, bound: np.ndarray) -> float:
  """By how much two results differ that must not; 0 if they agree."""
  if want.dtype.kind != "f" and not bound.any():
    return float((got != want).sum())
  with np.errstate(all="ignore"):
    a, b = np.asarray(got, np.float64), np.asarray(want, np.float64)
    fine = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= bound + 1e-37) | np.isinf(bound)
    return float(np.nan_to_num(np.abs(a - b), nan=np.inf)[~fine].max(initial=0.0))


# ---------------------------------------------------------------- the recipes

MOST_LANES = 64  # of one value: what a compiler takes in a moment
MOST_ROUNDS = 1 << 22  # of one value: stages within the loops of others are computed again and again


def random_recipe(rng: random.Random, k: UOp, groups: bool = False) -> tuple[UOp, list[str]]:
  """Random steps; those that do not apply are refused, the others must keep the kernel's meaning. groups: with threads
  that share memory, which only GPUs have."""
  t, done = Tuning(k), []

  def attempt(line: str) -> None:
    saved = t.kernel, dict(t.named)
    try:
      t.step(line)
      verify(t.kernel)
      small = all(
        prod(rsize(r) for r in u.free if r.arg[2] in ("vec", "unroll")) <= MOST_LANES
        for u in toposort(t.kernel)
      )
      if small and rounds(t.kernel) <= MOST_ROUNDS:
        done.append(line)
        return
    except (RecipeError, VerifyError) as e:
      assert str(e), line
    t.kernel, t.named = saved

  for n in range(rng.randrange(2, 12) + 4 * groups):
    rs = all_ranges(t.kernel)
    if rs:
      attempt(random_step(rng, t, rs, n, groups))
  for r in all_ranges(t.kernel) if rng.random() < 0.5 else ():
    attempt(f"bound {rname(r)} {rng.choice(['', 'finite'])}")
  return t.kernel, done


def rounds(k: UOp) -> int:
  """How often the value is computed that is computed most often."""
  return max(prod(rsize(r) for r in {*loops, *lanes(u)}) for u, loops in places(k).items())


def random_step(rng: random.Random, t: Tuning, rs: list[UOp], n: int, groups: bool) -> str:
  r, names = rname(rng.choice(rs)), [rname(x) for x in rs]
  kind = rng.randrange(24 if t.named else 15)  # a kernel may store what has no name: an index, a constant
  rests = [x for x in rs if ".rest" in rname(x)]
  if kind < 2 and rests:
    rest = rng.choice(rests)
    return f"widen {rname(rest)} {rsize(rest) + rng.randint(1, 8)}"
  if kind < 6:
    size = rng.choice([1, 2, 3, 4, 5, 7, 8, 8, 16, 16, 17])
    return f"split {r} {size} -> {r}o{n}, {r}i{n} {rng.choice(['', *['overlap', 'peel'] * 2, 'any'])}"
  if kind < 11:
    lanes = [rname(x) for x in rs if rsize(x) <= 32] or names
    return f"{rng.choice(['vec', 'vec', 'unroll', 'par'] + ['local'] * 6 * groups)} {rng.choice(lanes)}"
  if kind < 13:
    return "order " + " ".join(rng.sample(names, rng.randint(1, len(names))))
  if kind == 13 and len(rs) > 1:
    at = rng.randrange(len(rs) - 1)
    return f"collapse {names[at]} {names[at + 1]} -> {rng.choice(['both', names[at]])}"
  if kind == 14 or not t.named:
    return rng.choice([f"par {names[0]}", f"unroll {r} {rng.choice(names)}", "split", f"vec nothing{n}", f"split {r} 0 -> a, b",
                       f"split {r} 2 -> {r}, {r}", f"stage 0 over ({r}) shared",
                       "matrix 8x8 f32 " + " ".join(rng.choices(names, k=3))])  # fmt: skip
  sums = [name for name, u in t.named.items() if u.op == "reduce"]
  if kind > 19 and sums:  # held in memory, and then loops of it around those of that memory
    of = t.named[rng.choice(sums)]
    held = any(u.op == "stage" and u.src[0] is of for u in toposort(t.kernel))
    own, outer = map(rname, closed(of)), [rname(x) for x in rs if x in of.free]
    if held or not outer:
      return f"around {rng.choice(list(own) or names)}"
    name = next(name for name, u in t.named.items() if u is of)
    return f"stage {name[1:]} over ({', '.join(rng.sample(outer, rng.randint(1, len(outer))))}) stack"
  stages = [name for name, u in t.named.items() if u.op == "stage"]
  if kind == 15 and stages:
    return rng.choice(
      [f"inline {rng.choice(stages)[1:]}", f"move {rng.choice(stages)[1:]} {rng.choice(['stack', 'shared'])}"]
    )
  name = rng.choice(list(t.named))
  mine = [rname(x) for x in rs if x in t.named[name].free] or names
  over = rng.sample(mine, rng.randint(1, len(mine)))
  spelled = over[0] + "".join(rng.choice([f", {x}", f", {x}", f" + {x}", f" + {x}*2"]) for x in over[1:])
  return f"stage {name[1:]} over ({spelled}) {rng.choice(['stack', 'shared']) if groups else 'stack'}"


Recipe = Callable[[random.Random, UOp, bool], tuple[UOp, list[str]]]

# ---------------------------------------------------------------- running them


@dataclass
class Case:
  """A kernel, what it computes of its data, and recipes for it by name."""

  plain: UOp
  data: dict[str, np.ndarray]
  want: dict[str, np.ndarray]
  bounds: dict[str, np.ndarray]
  tuned: dict[str, tuple[UOp, list[str]]] = field(default_factory=dict)

  def complaint(self, name: str, got: dict[str, np.ndarray]) -> str:
    k, lines = self.tuned[name]
    for out, want in self.want.items():
      if off := apart(got[out], want, self.bounds[out]):
        return f"%{out} is {off} off\n{kernel_text(self.plain)}\n{chr(10).join(lines)}\n{kernel_text(k)}"
    return ""


def cases(
  family: str, seed: int, count: int, groups: bool = False, recipe: Recipe = random_recipe
) -> Iterator[Case]:
  """Kernels of a family with `count` recipes in all that differ.
  A fault while one is made is raised with the kernel."""
  rng = random.Random(f"{family} {seed}")
  left = count
  while left > 0:
    for k in kernels_of(FAMILIES[family](Maker(rng)), groups):
      if any(0 in p.arg[1] for p in params_of(k)):  # of no elements: nothing runs it
        continue
      data = random_data(k, rng.randrange(1 << 30))
      case = Case(k, data, *reference(k, data))
      seen = set()
      for _ in range(min(left, 40)):
        state = rng.getstate()
        try:
          tuned, lines = recipe(rng, k, groups)
        except Exception as e:
          raise AssertionError(f"{family}, {state[1][:1]}: {e!r}\n{kernel_text(k)}") from e
        if tuned not in seen and not any(
          map(instruction_of, toposort(tuned))
        ):  # which some languages do not have
          seen.add(tuned)
          name = f"k{left}"
          case.tuned[name] = kernel(name, stores(tuned), closed(tuned)), lines
          left -= 1
      yield case


def run_in_c(k: UOp, function: int, data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
  """What it writes, by name. What stands behind each buffer must not change."""
  opened = Device["CPU"]
  handles, places = [], {}
  for p in params_of(k):
    raw = np.ascontiguousarray(to_storage(data[p.arg[0]], p.dtype)).reshape(-1).view(np.uint8)
    places[p.arg[0]] = len(handles), raw.size, p
    handles.append(opened.alloc(raw.size + 64))
    opened.upload(handles[-1], np.concatenate([raw, np.full(64, 0xAB, np.uint8)]))
  args = [(n, 0) for n in range(len(handles))] + [(-1, 0)] * guarded(k)
  assert opened.shim.sequence([Call(function, args, extent(k), 1e9)]).run(handles) == 0
  found = {}
  for name, (slot, size, p) in places.items():
    got = opened.download(handles[slot], size + 64)
    assert (got[size:] == 0xAB).all(), f"%{name} is written past its end"
    found[name] = golden.from_storage(got[:size].view(p.dtype.storage), p.dtype).reshape(p.arg[1])
  return found


def disagreements(family: str, seed: int, count: int, recipe: Recipe = random_recipe) -> Iterator[str]:
  """What C computes otherwise than the interpreter, with vectors of 4, 8 or 16 elements. One source holds the kernels
  of some cases, and is compiled while the next cases are made."""
  waiting: deque[list[Case]] = deque()

  def builds() -> Iterator[Build]:
    for n, unit in enumerate(grouped(cases(family, seed, count, recipe=recipe), 120)):
      waiting.append(unit)
      kernels = {name: k for case in unit for name, (k, _) in case.tuned.items()}
      yield Device["CPU"].shim.compiler.start(f"{QUICK}\n{render(kernels, (8, 16, 4)[n % 3])}")

  for data in finish_all(builds(), 2):
    library = Library.of(data)
    for case in waiting.popleft():
      for name, (k, _) in case.tuned.items():
        if wrong := case.complaint(name, run_in_c(k, library[name], case.data)):
          yield wrong


def grouped(made: Iterator[Case], size: int) -> Iterator[list[Case]]:
  """Cases in lists that have at least so many recipes, but for the last."""
  unit: list[Case] = []
  for case in made:
    unit.append(case)
    if sum(len(c.tuned) for c in unit) >= size:
      yield unit
      unit = []
  if unit:
    yield unit


def emulated_disagreements(family: str, seed: int, count: int, dev: str) -> Iterator[str]:
  """The same on an emulated device, which also reports races and overruns."""
  lacks = {dtypes.float64} if dev == "METAL" else set()
  made = [
    c for c in cases(family, seed, count, groups=True) if not {p.dtype for p in params_of(c.plain)} & lacks
  ]
  emulated = golden.Emulated(
    render_for(dev, {name: k for c in made for name, (k, _) in c.tuned.items()}), dev, check=True
  )
  for case in made:
    for name, (k, _) in case.tuned.items():
      got, error = emulated.run(k, case.data, threads=min(2, extent(k)))
      assert error == 0
      if wrong := case.complaint(name, got):
        yield f"{threads(k)} threads: {wrong}"


if __name__ == "__main__":
  seed, count = int(sys.argv[1]), int(sys.argv[2])
  for family in sys.argv[3:] or FAMILIES:
    found = list(disagreements(family, seed, count))
    print(f"{family}: {count} recipes, seed {seed}, {len(found)} disagree")
    if found:
      sys.exit(found[0])
