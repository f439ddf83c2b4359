"""Random programs with state, views and aliases, run step by step by PyTorch, by mini as it stands, and jitted.

A program has states, views of them, and a body: views, writes through them (ints, slices with steps, masks, index
tensors, methods in place), values computed from them, results that may be views. It is called several times, with
arguments of changing shapes, in changing training mode; in between, what is outside - states, views that are made late,
arguments, results - is written, too, and some of it goes while what shares its memory stays. In half of the programs some
states and views are leaves that require a gradient, and each call takes the gradient of a sum over all that depends on
them. After each call all that is there is compared to the bit: numbers are small integers, NaN and infinities, which
every type holds.

    python test/fuzz_views.py 1000 [--seed=0]
"""

from __future__ import annotations

import itertools
import math
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

import mini
from mini import Tensor, nn
from runtime import compiler

TYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
CALLS = 3


class Mode(nn.Module):
  """Something whose training mode the body asks for."""


# ---------------------------------------------------------------- programs


class Program:
  """Drawn by what PyTorch accepts: a step that it refuses is left out."""

  def __init__(self, seed: int):
    self.r = random.Random(seed)
    self.states = [
      (self.shape(), self.r.choice(TYPES), self.r.randrange(100)) for _ in range(self.r.randint(1, 3))
    ]
    self.outside = [self.view() for _ in range(self.r.randint(0, 3))]  # (which tensor, the view of it)
    graded = self.r.random() < 0.5
    self.chosen: list[int] = []  # of these, as PyTorch has them
    self.leaves = [graded and self.r.random() < 0.5 for _ in range(len(self.states) + len(self.outside))]
    self.argument = self.r.choice(TYPES)
    self.shapes = [self.shape() for _ in range(2)]
    self.body = [self.step() for _ in range(self.r.randint(2, 9))]
    self.returned = [self.r.randrange(64) for _ in range(self.r.randint(1, 3))]
    self.between = [[self.step() for _ in range(self.r.randint(0, 3))] for _ in range(CALLS)]
    self.calls = [
      (self.r.choice((0, 0, 1)), self.r.random() < 0.5, self.r.randint(0, 3)) for _ in range(CALLS)
    ]
    for steps in self.between:
      for _ in range(self.r.randint(0, 3)):
        steps.insert(self.r.randint(0, len(steps)), ("drop", self.r.randrange(64)))

  def shape(self) -> tuple[int, ...]:
    return tuple(
      self.r.choice((0, 1, 2, 3, 4, 5) if self.r.random() < 0.2 else (2, 3, 4, 5))
      for _ in range(self.r.choice((0, 1, 1, 2, 2, 3)))
    )

  def number(self) -> Any:
    return self.r.choice(
      (0, 1, 2, 3, -1, -2, True, math.nan, math.inf) if self.r.random() < 0.3 else (0, 1, 2, 3)
    )

  def index(self) -> Any:
    """Ints, slices, None, ...; fractions of an axis, for its size is not known."""
    r = self.r

    def one() -> Any:
      kind = r.random()
      if kind < 0.35:
        return ("int", r.random(), r.random() < 0.3)
      if kind < 0.85:
        return ("slice", r.random(), r.random(), r.choice((1, 1, 2, 3)))
      return r.choice((("none",), ("dots",)))

    return [one() for _ in range(r.randint(1, 3))]

  def view(self) -> tuple:
    r = self.r
    what = r.choice(("index", "index", "index", "flat", "T", "transpose", "split", "unbind", "diagonal", "unsqueeze", "squeeze",
                     "narrow", "detach", "reshape", "movedim", "unfold", "same", "data", "rows"))  # fmt: skip
    return (
      "view",
      r.randrange(64),
      what,
      self.index() if what == "index" else (r.random(), r.random(), r.random()),
    )

  def step(self) -> tuple:
    r = self.r
    draw = r.random()
    if draw < 0.3:
      return self.view()
    if draw < 0.5:
      return "set", r.randrange(64), self.index(), self.number()
    if draw < 0.58:
      return "put", r.randrange(64), self.index(), r.randrange(64)
    if draw < 0.64:
      return "mask", r.randrange(64), self.number(), self.number(), r.random() < 0.5
    if draw < 0.7:
      return "at", r.randrange(64), [r.random() for _ in range(r.randint(0, 3))], self.number()
    if draw < 0.84:
      return (
        "method",
        r.randrange(64),
        r.choice(("fill_", "zero_", "add_", "mul_", "neg_", "clamp_", "not_", "iadd", "sub_")),
        self.number(),
      )
    if draw < 0.9:
      return "copy", r.randrange(64), r.randrange(64)
    if draw < 0.94:
      return "where", r.randrange(64), r.randint(0, 3), self.number()
    if draw < 0.97:
      return "mode", r.randrange(64)
    return "compute", r.randrange(64), r.choice(("clone", "plus", "cast")), r.choice(TYPES)


def place(t: Any, index: list) -> tuple:
  """The index, for a tensor's sizes."""
  used = sum(i[0] in ("int", "slice") for i in index)
  out, axis, dots = [], 0, 0
  for kind, *about in index:
    n = t.shape[axis] if axis < len(t.shape) else 0
    if kind == "int":
      i = int(about[0] * max(n, 1))
      out.append(i - n if about[1] else i)
      axis += 1
    elif kind == "slice":
      a, b = sorted(int(x * (n + 1.5)) for x in about[:2])
      out.append(slice(a, b, about[2]))
      axis += 1
    elif kind == "none":
      out.append(None)
    elif not dots:
      out.append(...)
      dots, axis = 1, axis + max(len(t.shape) - used, 0)
  return tuple(out)


def seen(t: Any, what: str, about: Any) -> Any:
  """A view of a tensor of either library."""
  if what == "index":
    return t[place(t, about)]
  n = len(t.shape)
  a, b = (int(x * n) for x in about[:2])
  if what == "flat":
    return t.view(-1) if t.is_contiguous() else t.reshape(-1)
  if what == "reshape":
    return t.reshape(-1, t.shape[-1]) if n > 1 and 0 not in t.shape else t.flatten()
  return {
    "T": lambda: t.mT if n > 1 else t,
    "transpose": lambda: t.transpose(a, b),
    "split": lambda: t.split(2, a)[0],
    "unbind": lambda: t.unbind(a)[-1],
    "diagonal": lambda: t.diagonal(int(about[2] * 3) - 1, a, b),
    "unsqueeze": lambda: t.unsqueeze(a),
    "squeeze": lambda: t.squeeze(),
    "narrow": lambda: t.narrow(a, int(about[1] * t.shape[a]), 1),
    "detach": lambda: t.detach(),
    "data": lambda: t.data,
    "movedim": lambda: t.movedim(a, b),
    "unfold": lambda: t.unfold(a, 2, 2),
    "same": lambda: t.to(t.dtype),
    "rows": lambda: next(iter(t)),
  }[what]()


def fitting(x: Any, t: Any) -> Any:
  """A number that the type of a tensor holds."""
  kind = str(t.dtype).split(".")[-1]
  if kind == "bool":
    return bool(x and not math.isnan(x))
  if "float" not in kind:
    x = int(x) if math.isfinite(x) else 1
    return abs(x) if kind.startswith("u") else x
  return x


class Run:
  """A program in one library: `env` are the tensors that its steps choose from."""

  def __init__(self, program: Program, T: Any):
    self.p, self.T, self.ours = program, T, T is not torch
    self.mode = Mode() if self.ours else torch.nn.Module()
    self.env = [self.made(s, d, k) for s, d, k in program.states]
    if self.ours:
      mini.Tensor.realize(*self.env)
    for s in program.outside:
      self.tried(self.env, s)
    if (
      not self.ours
    ):  # of what shares memory one view at most: what base and other views are then is a matter of versions
      homes: dict[int, int] = {}
      of = [t.untyped_storage().data_ptr() for t in self.env]
      for n, (t, home) in enumerate(zip(self.env, of)):
        if program.leaves[n] and t.is_floating_point() and (t._base is not None or of.count(home) == 1):
          homes.setdefault(home, n)
      program.chosen = [*homes.values()]
    self.leaves = [self.env[n].requires_grad_() for n in program.chosen]

  def dtype(self, name: str) -> Any:
    return getattr(mini.dtypes if self.ours else torch, name)

  def made(self, shape: tuple, name: str, k: int) -> Any:
    values = np.random.default_rng(k).integers(0, 2 if name == "bool" else 5, shape)
    return (Tensor(values) if self.ours else torch.from_numpy(np.array(values))).to(self.dtype(name))

  def tried(self, env: list, s: tuple) -> bool:
    """A step; False where it was refused, and nothing has happened."""
    count = len(env)
    try:
      self.step(env, s)
      return True
    except (RuntimeError, IndexError, ValueError, TypeError, AttributeError, StopIteration, mini.MiniError):
      del env[count:]
      return False

  def step(self, env: list, s: tuple) -> None:
    kind, n, *about = s
    t = env[n % len(env)]
    if not self.ours and torch.is_grad_enabled() and kind not in ("view", "compute"):
      home = t.untyped_storage().data_ptr()
      if any(x.is_leaf and x.requires_grad and x.untyped_storage().data_ptr() == home for x in env):
        raise RuntimeError("what a leaf shares is written without gradients alone")
    if kind == "view":
      env.append(seen(t, *about))
    elif kind == "set":
      t[place(t, about[0])] = fitting(about[1], t)
    elif kind == "put":
      t[place(t, about[0])] = env[about[1] % len(env)].detach().to(t.dtype).clone()
    elif kind == "mask":
      mask = t == fitting(about[0], t)
      if about[2]:
        t.masked_fill_(mask, fitting(about[1], t))
      else:
        t[mask] = fitting(about[1], t)
    elif kind == "at":
      rows = sorted({int(x * max(t.shape[0], 1)) for x in about[0]})
      t[self.indices(rows)] = fitting(about[1], t)
    elif kind == "copy":
      t.copy_(env[about[0] % len(env)].detach().clone())
    elif kind == "where":
      places = self.indices(range(t.shape[-1]))
      new = (
        (places < about[0]).where(t * 0 + fitting(about[1], t), t)
        if self.ours
        else torch.where(places < about[0], t * 0 + fitting(about[1], t), t)
      )
      t.copy_(new.to(t.dtype).clone())
    elif kind == "drop":
      env[n % len(env)] = t.clone() if self.ours else t.clone(memory_format=torch.contiguous_format)
    elif kind == "mode":
      t.fill_(fitting(1 if self.mode.training else 0, t))
    elif kind == "compute":
      env.append(
        {
          "clone": lambda: t.clone(),
          "plus": lambda: t + t,
          "cast": lambda: t.to(self.dtype(about[1])).clone(),
        }[about[0]]()
      )
      if not self.ours:
        env[-1] = env[-1].clone(memory_format=torch.contiguous_format)
    else:
      self.method(t, *about)

  def indices(self, rows: Any) -> Any:
    array = np.array([*rows], np.int64)
    return Tensor(array) if self.ours else torch.from_numpy(array)

  def method(self, t: Any, name: str, number: Any) -> None:
    x = fitting(number, t)
    if name == "not_":
      t.logical_not_()
    elif name == "clamp_":
      t.clamp_(fitting(-3, t), 3) if not str(t.dtype).startswith(("torch.u", "dtypes.u")) else t.clamp_(0, 3)
    elif name == "mul_":
      t.mul_(x)
      if not str(t.dtype).endswith("bool"):  # whose clamp PyTorch refuses, when it has been multiplied
        t.clamp_(fitting(-9, t), 9)
    elif name == "iadd":
      t += x
    elif name == "zero_" or name == "neg_":
      getattr(t, name)()
    else:
      getattr(t, name)(x)

  def call(self, a: Any, steps: list) -> tuple:
    env = [*self.env, a]
    for s in steps:
      self.step(env, s)
    self.backward(env)
    return tuple(env[n % len(env)].detach() if self.leaves else env[n % len(env)] for n in self.p.returned)

  def backward(self, env: list) -> None:
    """Gradients of a sum of squares of all that depends on a leaf."""
    for t in self.leaves:
      t.grad = None
    parts = [(t.float() * t.float() * (n + 1)).sum() for n, t in enumerate(env) if t.requires_grad]
    if parts:
      sum(parts[1:], parts[0]).backward()

  def gradients(self) -> list:
    """Of each leaf: zeros where it has none."""
    return [t.detach() * 0 if t.grad is None else t.grad for t in self.leaves]


def arrays(tensors: Any, together: bool = False) -> list[np.ndarray]:
  """Their values. together: computed by one program, which is one run of the compiler."""
  shown = [t.detach() for t in tensors]
  shown = [t.float() if "16" in str(t.dtype) and "float" in str(t.dtype) else t for t in shown]
  if together:
    Tensor.realize(*shown)
  return [t.numpy() for t in shown]


def differing(mine: Any, theirs: Any, together: bool) -> str:
  for n, (a, b) in enumerate(itertools.zip_longest(arrays(mine, together), arrays(theirs))):
    if (
      a is None or b is None or a.shape != b.shape or not np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    ):
      return f"tensor {n}: {a!r} is {b!r} in PyTorch"
  return ""


def check(seed: int) -> str:
  """What is wrong with a program: "" if nothing is."""
  p = Program(seed)
  quick = seed % 4 > 0  # as few runs of the compiler as there can be, which take most of the time
  theirs, runs = Run(p, torch), [Run(p, Tensor), Run(p, Tensor)]
  jitted: dict[
    tuple, Any
  ] = {}  # by the steps that PyTorch accepts, which may differ with shapes, and what they choose from
  for which, training, late in p.calls:
    theirs.mode.train(training)
    a = theirs.made(p.shapes[which], p.argument, which)
    steps = accepted(theirs, a, p.body)
    wanted = theirs.call(a, steps)
    outside = p.between[late % CALLS]
    for n, run in enumerate(runs):
      run.mode.train(training)
      mine = run.made(p.shapes[which], p.argument, which)
      if n:
        f = jitted.setdefault(
          (len(run.env), repr(steps)), mini.jit(lambda x, run=run, steps=steps: run.call(x, steps))
        )
      got = f(mine) if n else run.call(mine, steps)
      name = "jitted" if n else "eager"
      if wrong := differing(
        [*got, mine, *run.env, *run.gradients()], [*wanted, a, *theirs.env, *theirs.gradients()], quick
      ):
        return f"{name}, after a call with {steps}: {wrong}"
      run.after = [*run.env, *got, mine]
      del got, mine  # the steps drop some
    after = [*theirs.env, *wanted, a]
    made = len(after)
    with torch.no_grad(), mini.no_grad():
      for s in outside:
        if theirs.tried(after, s):
          for run in runs:
            run.step(run.after, s)
    late = 0 if p.chosen else 2  # views that are made without gradients PyTorch lets nobody write with them
    theirs.env += after[made:][:late]
    for run in runs:
      run.env += run.after[made:][:late]
      if wrong := differing([*run.after, *run.env], [*after, *theirs.env], quick):
        return f"after {outside}: {wrong}"
  return ""


def accepted(run: Run, a: Any, body: list) -> list:
  """The steps that PyTorch accepts, tried on copies that share memory as the tensors do."""
  import copy

  memo: dict = {}
  env = [*copy.deepcopy([*run.env, a], memo)]
  return [s for s in body if run.tried(env, s) and followed(env)]


def followed(env: list) -> bool:
  """Can the gradient pass through all of them? Not where the memory of what `unbind` gave was written since."""
  try:
    return [t.grad_fn for t in env] != []
  except RuntimeError:
    return False


def main() -> None:
  compiler.BASE_FLAGS = [
    "-O0",
    *(flag for flag in compiler.BASE_FLAGS if not flag.startswith("-O")),
  ]  # most of the time
  count, seed = int(sys.argv[1]), next((int(a[7:]) for a in sys.argv if a.startswith("--seed=")), 0)
  bad = 0
  for n in range(seed, seed + count):
    try:
      wrong = check(n)
    except Exception as e:  # noqa: BLE001 - a program that fails is a finding
      wrong = f"{type(e).__name__}: {e}"
    if wrong:
      bad += 1
      print(f"program {n}: {wrong[:600]}", flush=True)
  print(f"{count - bad} of {count} programs agree with PyTorch")
  sys.exit(bad > 0)


if __name__ == "__main__":
  main()
