"""Kernels at the bounds of what is allowed, as text: whoever writes them wants to reach memory that is not theirs.

Coefficients near 2^31, 2^62 and 2^63, negative, several in a sum; data of each integer type in indexes, guards and
limits; quotients and remainders of what is negative; guards that hold nowhere; stages that are filled in part; lanes.

python test/hostile.py FIRST COUNT [CL|CUDA|METAL]     prints what is accepted, and goes wrong (sanitized.py)
"""

import faulthandler
import os
import random
import signal
import sys

import numpy as np
from golden_sources import Emulated
from sanitized import found_wrong

from mini.engine.launch import interface
from mini.ir.kernel import all_ranges, kernel, results
from mini.ir.uop import closed, rsize
from mini.render import render_for
from mini.render.cstyle import RenderError
from mini.text.parser import TextError, parse
from mini.text.printer import text
from runtime.base import DeviceError
from runtime.emulate import source

INTEGERS = ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "bool"]
POWERS = [1 << n for n in (4, 8, 15, 16, 24, 28, 29, 30, 31, 32, 33, 40, 48, 60, 61, 62)]
SMALL = [1, 1, 1, 2, 3, 4, 7, 8, 16]
STEPS = 1 << 14  # iterations of what is run


class Writer:
  """One kernel. Values are numbered; an index is a sum that may be guarded, or brought into its axis."""

  def __init__(self, seed, groups=False):
    """groups: of threads, which share stages."""
    self.rng, self.lines, self.count, self.groups = random.Random(seed), [], 0, groups
    self.data = {f"d{n}": (self.pick(INTEGERS), self.pick([1, 8, 16])) for n in range(self.rng.randrange(3))}
    self.sizes = {"o": self.shape(), "x": self.shape(), "z": self.shape()}
    self.kind = self.pick(["f32"] * 6 + ["f16", "bf16", "f64", "bool", "u8", "i64"])
    self.ranges = {}
    inner = ["local"] if groups else ["loop", "vec", "unroll"]
    for name, kinds in (("i", ["loop", "par"]), ("j", inner), ("p", ["loop", "unroll"])):
      kind = self.pick(kinds)
      self.ranges[name] = self.pick({"vec": [8, 16], "local": [2, 4, 8, 16]}.get(kind, [1, 2, 3, 4, 8]))
      self.line(f"%{name} = range {self.ranges[name]}{'' if kind == 'loop' else ' ' + kind}")
    self.known = dict(self.ranges)

  def pick(self, among):
    return self.rng.choice(list(among))

  def often(self, chance):
    return self.rng.random() < chance

  def shape(self):
    return [self.pick([1, 2, 3, 4, 7, 8, 16, 64]) for _ in range(self.pick([1, 1, 2, 3]))]

  def line(self, made):
    self.lines.append("  " + made)

  def value(self, made):
    self.count += 1
    self.line(f"%{self.count} = {made}")
    return f"%{self.count}"

  def number(self):
    n = self.pick(SMALL) if self.often(0.6) else self.pick(POWERS) + self.pick([-2, -1, 0, 1, 2])
    return -n if self.often(0.25) else n

  def datum(self):
    """Data as a term of an index."""
    if not self.data:
      return self.pick([f"%{r}" for r in self.known])
    name = self.pick(self.data)
    kind, size = self.data[name]
    at = self.pick([f"%{r}" for r, n in self.known.items() if n <= size] or ["0"])
    return f"idx({self.value(f'load %{name}[{at}] : {kind}')})"

  def term(self, depth):
    atom = f"%{self.pick(self.known)}" if self.often(0.65) else self.datum()
    if depth and self.often(0.35):
      n = max(1, abs(self.number()))
      inner = self.sum(depth - 1)
      atom = self.pick([f"(({inner}) // {n})", f"(({inner}) % {n})", f"min({inner}, {min(n, 1 << 61)})"])
    return atom if self.often(0.5) else f"{atom} * {self.number()}"

  def sum(self, depth=2):
    parts = [self.term(depth) for _ in range(self.pick([1, 1, 2, 3]))]
    if self.often(0.4):
      parts.append(str(self.number()))
    return " + ".join(parts)

  def access(self, shape):
    """(index, guard): each axis is brought into its bounds in some way, or nearly."""
    index, guards = [], []
    for n in shape:
      fits = [r for r, size in self.known.items() if size <= n]
      way = self.rng.randrange(7)
      if way < 2 and fits:
        index.append(f"%{self.pick(fits)}")
      elif way == 6:  # far from the data, and back
        r, shift, base = self.pick(self.known), self.pick([0, 1, 2, 3]), self.number()
        index.append(f"%{r} - {shift}")
        guards += [f"%{r} + {base} >= {base + shift}", f"%{r} + {base} < {base + shift + n}"]
      elif way == 2:
        index.append(f"({self.sum()}) % {n}")
      else:
        e = self.sum()
        index.append(e)
        guards += [f"{e} < {n}", f"{e} >= 0"]
        if self.often(0.1):
          guards.pop(self.rng.randrange(len(guards)))
    if self.often(0.25):
      guards.append(f"{self.sum()} {self.pick(['<', '>='])} {self.number()}")
    self.rng.shuffle(guards)
    return "[" + ", ".join(index) + "]", f" if {' && '.join(guards)}" if guards else ""

  def load(self, memory, shape):
    index, guard = self.access(shape)
    if memory != "x" or self.kind == "f32":
      return self.value(f"load %{memory}{index}{guard} : f32")
    return self.value(f"cast {self.value(f'load %x{index}{guard} : {self.kind}')} : f32")

  def loop(self, name, local=False):
    """A range of an inner owner, now and then with limits."""
    size = self.pick([1, 2, 4, 8] if local else [1, 2, 3, 4, 8])
    limits = f" from {self.sum(1)} to {self.sum(1)}" if self.often(0.25) and not local else " local" * local
    self.line(f"%{name} = range {size}{limits}")
    return size

  def staged(self):
    """A value of a stage that is filled, or nearly."""
    axes = [self.pick([1, 2, 4, 8]) for _ in range(self.pick([1, 1, 2]))]
    names = [f"s{n}" for n in range(len(axes))]
    shared = self.groups and self.often(0.7)
    sizes = [self.loop(name, shared and self.often(0.8)) for name in names]
    before = dict(self.known)
    self.known.update(zip(names, sizes))
    x = self.load("x", self.sizes["x"])
    ways = [
      "%{r}",
      "%{r}",
      "%{r}",
      "%{r} * 2",
      "%{r} + 1",
      "%{r} // 2",
      "%{r} % 2",
      "min(%{r} * 2, 3)",
      "7 - %{r}",
    ]
    index = [self.pick(ways).format(r=r) for r in names]
    shape = [n * self.pick([1, 1, 1, 2]) for n in (sizes if self.often(0.8) else axes)]
    self.known = before
    over, space = ", ".join("%" + r for r in names), "shared" if shared else "stack"
    m = self.value(f"stage {x} at [{', '.join(index)}] over ({over}) {space} : f32{shape}")
    return self.load(m[1:], shape)

  def reduced(self):
    before = dict(self.known)
    self.known["k"] = self.loop("k", self.groups and self.often(0.4))
    x = self.load("x", self.sizes["x"])
    self.known = before
    return self.value(f"reduce.{self.pick(['add', 'max'])} {x} over (%k) : f32")

  def written(self):
    x = self.load("x", self.sizes["x"])
    if self.often(0.35):
      x = self.value(f"add {x}, {self.staged()} : f32")
    if self.often(0.35):
      x = self.value(f"add {x}, {self.reduced()} : f32")
    if self.often(0.2):
      x = self.value(f"where {self.sum(1)} < {self.number()}, {x}, 1.0 : f32")
    if self.often(0.1):
      x = self.value(f"cast {self.sum(1)} : f32")
    index, guard = self.access(self.sizes["o"])
    lanes = [
      r for r in ("j", "p") if f"%{r} = range {self.ranges[r]}" not in (made.strip() for made in self.lines)
    ]
    self.sizes["o"] += [self.ranges[r] for r in lanes]
    index = index[:-1] + "".join(f", %{r}" for r in lanes) + "]"
    how = ".add" if self.often(0.2) else ""
    self.line(f"store{how} %o{index}, {x}{guard}")
    params = [f"%o: {'inout' if how else 'out'} f32{self.sizes['o']}", f"%x: in {self.kind}{self.sizes['x']}"]
    params += [f"%{name}: in {kind}[{n}]" for name, (kind, n) in self.data.items()]
    order = ", ".join(f"%{r}" for r in self.ranges)
    return "\n".join([f"kernel k({', '.join(params)}) {{", *self.lines, f"  end over ({order})", "}"])


def accepted(seeds, groups=False):
  """{seed: kernel} of those that the verifier lets through and that are soon done."""
  found = {}
  for seed in seeds:
    try:
      k = parse(Writer(seed, groups).written())
    except TextError:
      continue
    if np.prod([rsize(r) for r in all_ranges(k)], dtype=float) <= STEPS:
      found[seed] = kernel(f"k{seed}", results(k), closed(k))
  return found


def wrong(seeds, widths=(1, 8)):
  """The accepted ones of which what is printed goes wrong, with what; how many were accepted."""
  kernels = accepted(seeds)
  if not kernels:
    return [], 0
  order = list(kernels)
  bad = found_wrong([kernels[s] for s in order], widths)
  return [f"seed {order[n]}: {why}\n{text(kernels[order[n]])}" for n, why in bad.items()], len(order)


def hostile_inputs(k, seed):
  """Arrays as the interpreter holds them; whole numbers are those that no index should be."""
  rng, data = np.random.default_rng(seed), {}
  for m in interface(k):
    if m.dtype.kind in "iu":
      ends = np.iinfo(m.dtype.np)
      near = [ends.min, ends.max, ends.min + 1, ends.max - 1, 0, 1, 2, 3, 7, 8]
      data[m.name] = np.array(rng.choice(np.array(near, object), m.shape), m.dtype.np)
    else:
      data[m.name] = rng.integers(0, 2, m.shape).astype(m.dtype.np)
  return data


def wrong_emulated(kernels, dev):
  """What an emulated device says of kernels that it runs: of overruns, and by a trap of indexes that overflow. Whether
  threads race for a cell is theirs to know."""
  printable = {}
  for k in kernels:
    try:
      render_for(dev, {k.arg.what: k})
      printable[k.arg.what] = k
    except RenderError:
      pass
  flags = source.FLAGS[:]
  source.FLAGS[:] = [f for f in flags if f != "-fwrapv"]
  source.FLAGS += ["-fsanitize=signed-integer-overflow", "-fsanitize-undefined-trap-on-error"]
  try:
    device = Emulated(render_for(dev, printable), dev, check=True)
  finally:
    source.FLAGS[:] = flags
  return [f"{dev}: {why}\n{text(k)}" for k in printable.values() if (why := died(device, k))]


def died(device, k):
  """How a process that runs a kernel ends, where that is not well."""
  readable, writable = os.pipe()
  pid = os.fork()
  if pid == 0:
    faulthandler.disable()
    signal.alarm(60)
    status = 0
    try:
      for seed in range(2):
        device.run(k, hostile_inputs(k, seed))
    except DeviceError as e:
      if ": a race: " not in str(e):
        os.write(writable, str(e).encode())
        status = 1
    finally:
      os._exit(status)
  os.close(writable)
  with os.fdopen(readable) as f:
    said = f.read()
  status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
  return said or (f"status {status}" if status else "")


if __name__ == "__main__":
  seeds = range(int(sys.argv[1]), int(sys.argv[1]) + int(sys.argv[2]))
  if sys.argv[3:]:
    kernels = [*accepted(seeds).values(), *accepted(seeds, groups=True).values()]
    found, ran = wrong_emulated(kernels, sys.argv[3]), len(kernels)
  else:
    found, ran = wrong(seeds)
  print("\n\n".join(found))
  print(f"{len(seeds)} kernels, {ran} accepted, {len(found)} wrong")
  sys.exit(bool(found))
