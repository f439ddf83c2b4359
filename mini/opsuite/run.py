"""Many cases on a device, in few programs: their kernels are compiled together, and a handful is realized at once.

Where a program fails, its cases are halved until the one that is at fault stands alone; so are the kernels where the
source of all of them does not compile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from mini.engine import program
from mini.engine.buffer import Buffer
from mini.engine.device import Device, Opened
from mini.engine.realize import realize
from mini.ir.graph import buffer, shape
from mini.ir.uop import UOp, rebuild, toposort, uop
from mini.opsuite.cases import HERE, OTHER, Case
from mini.opsuite.compare import differs
from mini.opsuite.data import limits, rounded, values
from mini.types import DType, dtypes

TOGETHER = 24  # cases of one program: with their inputs, fewer buffers than any device passes to a kernel

Group = list[Case]


def grouped(cases: Sequence[Case]) -> list[Group]:
  """Programs of cases that are alike: what has the same inputs becomes one kernel. What raises is alone."""
  alike: dict[tuple, Group] = {}
  for case in cases:
    key = (case.column, case.layout, crosses(case.root), case.root if case.raises else None)
    alike.setdefault(key, []).append(case)
  return [group[n : n + TOGETHER] for group in alike.values() for n in range(0, len(group), TOGETHER)]


def crosses(root: UOp) -> bool:
  """Does it take another device, too?"""
  return any(u.op in ("copy", "shard") for u in toposort(root))


class Gathered(Exception):
  """The kernels of a program are known."""


def one_line(e: BaseException) -> str:
  return f"{type(e).__name__}: {' '.join(str(e).split())[:200]}"


class Runner:
  """A device, and what is known of it."""

  def __init__(self, device: str):
    self.name = device
    self.opened = Device[device]
    self.other = (
      "CPU" if device.partition(":")[0] != "CPU" else f"CPU:{int(device.partition(':')[2] or 0) + 1}"
    )
    self.memory: dict[UOp, UOp] = {}  # leaves -> leaves that are buffers
    self.flushes = {d: not self.keeps_subnormals(d) for d in dtypes.all if d.kind == "f" and self.has(d)}
    self.language = self.language_name()

  def has(self, d: DType) -> bool:
    return self.opened.interprets or d.name in self.opened.shim.info.dtypes

  def lacks(self) -> list[DType]:
    return [d for d in dtypes.all if not self.has(d)]

  def language_name(self) -> str:
    if self.opened.interprets:
      return ""
    (k,) = self.kernels(
      [self.placed(uop("flip", dtypes.float32, (buffer("x", (3,), dtypes.float32),), (0,)))]
    )
    return self.opened.kind.language(k, self.opened.shim.info).name

  def keeps_subnormals(self, d: DType) -> bool:
    """Does 1 times a subnormal number give it back? A device that cannot compute that fails in its row, not here."""
    x = rounded(np.full(3, limits(d)[2] * 3), d)
    one = np.ones_like(x)
    try:
      a, b = (buffer(Buffer.of(y, d, self.name), (3,), d) for y in (x, one))
      return bool((self.results([uop("mul", d, (a, b))])[0] == x).all())
    except Exception:  # noqa: BLE001
      return True

  # ---------------------------------------------------------------- programs

  def placed(self, root: UOp) -> UOp:
    """A case's root, over memory of the device."""
    memo: dict[UOp, UOp] = {}
    for u in toposort(root):
      if u.op == "buffer" and not isinstance(u.arg[0], Buffer):
        if u not in self.memory:
          flushed = self.flushes.get(u.dtype, False)
          x = values(u, flushed) if isinstance(u.arg[0], tuple) else np.zeros(shape(u), u.dtype.np)
          self.memory[u] = buffer(Buffer.of(x, u.dtype, self.name), shape(u), u.dtype)
        memo[u] = self.memory[u]
      elif u.op in ("copy", "shard"):
        memo[u] = uop(u.op, u.dtype, tuple(memo[s] for s in u.src), self.named(u.arg))
      else:
        memo[u] = rebuild(u, tuple(memo[s] for s in u.src))
    if not any(u.op == "buffer" for u in memo):  # of no memory: it says itself where it is computed
      return uop("copy", root.dtype, (memo[root],), self.name)
    return memo[root]

  def named(self, arg: Any) -> Any:
    """The argument of a copy, with the names of devices."""
    if isinstance(arg, tuple):
      return tuple(map(self.named, arg))
    return {HERE: self.name, OTHER: self.other}.get(arg, arg)

  def results(self, roots: Sequence[UOp]) -> list[np.ndarray]:
    return [u.arg[0].numpy().reshape(shape(u)) for u in realize(roots)]

  def kernels(self, roots: Sequence[UOp]) -> list[UOp]:
    """What a program of these would launch: programs compile their kernels when they are made, and here they do not."""
    found: list[UOp] = []

    def gather(kernels: Sequence[UOp], opened: Opened, often: bool = True) -> NoReturn:
      found.extend(kernels)
      raise Gathered

    compile_kernels, program.compile_kernels = program.compile_kernels, gather
    try:
      realize(roots)
    except Gathered:
      pass
    finally:
      program.compile_kernels = compile_kernels
    return found

  def prepare(self, groups: Sequence[Group]) -> None:
    """Compile the kernels of all programs together. What cannot be compiled is found when it runs."""
    if self.opened.interprets:
      return
    found: list[UOp] = []
    for group in groups:
      try:
        found += self.kernels([self.placed(case.root) for case in group])
      except Exception:  # noqa: BLE001, S112
        continue
    self.compile(list(dict.fromkeys(found)))

  def compile(self, kernels: list[UOp]) -> None:
    if not kernels:
      return
    try:
      program.compile_kernels(kernels, self.opened, often=False)
    except Exception:  # noqa: BLE001
      half = len(kernels) // 2
      if half:
        self.compile(kernels[:half])
        self.compile(kernels[half:])

  # ---------------------------------------------------------------- verdicts

  def verdicts(self, group: Group) -> Iterator[tuple[Case, str]]:
    """(case, what is wrong with it; "" if nothing is)."""
    if group[0].raises:
      yield group[0], self.raised(group[0])
      return
    try:
      found = self.results([self.placed(case.root) for case in group])
    except Exception as e:  # noqa: BLE001 (whatever a device does wrong: it is its verdict)
      half = len(group) // 2
      if not half:
        yield group[0], one_line(e)
        return
      yield from self.verdicts(group[:half])
      yield from self.verdicts(group[half:])
      return
    for case, got in zip(group, found):
      yield case, self.verdict(case, got)

  def verdict(self, case: Case, got: np.ndarray) -> str:
    try:
      return differs(
        case, got, self.language, any(self.flushes.get(u.dtype, False) for u in toposort(case.root))
      )
    except Exception as e:  # noqa: BLE001 (the interpreter knows the operation no better)
      return one_line(e)

  def raised(self, case: Case) -> str:
    try:
      self.results([self.placed(case.root)])
    except IndexError:
      return ""
    except Exception as e:  # noqa: BLE001
      return one_line(e)
    return "an index out of bounds raises no IndexError"
