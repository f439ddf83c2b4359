"""Golden programs: test/ir/*.mini hold a program, a pass, and the whole text expected after it.

  python test/golden.py            compares          python test/golden.py --accept    writes what came out

Both halves are executed, on inputs laced with inf, nan and -0.0; --accept is refused where the results differ.
"""

import sys
from pathlib import Path

import numpy as np

from mini.engine.launch import interface, interpret
from mini.engine.passes import passes, run_pass, step_pass
from mini.text.parser import parse, parse_file
from mini.text.printer import text
from mini.types import dtypes

FOLDER = Path(__file__).parent / "ir"
EDGES = [0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan]
EXACT = ("simplify",)  # the passes that keep every bit, but for which NaN it is


def laced(program, seed):
  """Inputs for a program: half of the floats are edge values; integers are indices of its shortest axis."""
  rng = np.random.default_rng(seed)
  data = {}
  below = min([n for m in interface(program) for n in m.shape], default=2)
  for m in interface(program):
    if m.where == "out":
      continue
    if m.dtype.kind == "f":
      data[m.name] = np.where(
        rng.random(m.shape) < 0.5, rng.choice(EDGES, m.shape), rng.standard_normal(m.shape)
      ).astype(m.dtype.np)
    else:
      data[m.name] = rng.integers(0, 2 if m.dtype is dtypes.bool else below, m.shape).astype(m.dtype.np)
  return data


def same(a, b, exact):
  if a.dtype.kind != "f":
    return bool((a == b).all())
  signs = not exact or (np.signbit(a) == np.signbit(b))[~np.isnan(a)].all()
  return bool(
    signs and np.allclose(a, b, rtol=0 if exact else 1e-5, atol=0 if exact else 1e-6, equal_nan=True)
  )


def executable(program):
  return program.src[0] if program.op == "uops" else program


def check(path, accept=False):
  """ "ok", "accepted", or what is wrong."""
  head, _, expected = path.read_text().partition("----\n")
  notes = [line[2:].partition(": ") for line in head.splitlines() if line.startswith("# ")]
  name = next(value for key, _, value in notes if key == "pass")
  steps = "\n".join(value for key, _, value in notes if key == "step")
  before = parse_file(head, path.name)
  after = run_pass(step_pass(steps) if steps else passes()[name], before)
  for p, q in zip(before, after):
    for seed in range(4):
      data = laced(p, seed)
      want, got = interpret(p, data), interpret(executable(q), data)
      for (output, a), b in zip(want.items(), got.values()):
        if not same(a, b, name in EXACT):
          return f"{path.name}: {name} changed {output}, for {data}:\n{a}\nbecame\n{b}"
  got_text = "\n".join(map(text, after)) + "\n"
  if any(parse(text(q)) is not q for q in after):
    return f"{path.name}: print then parse gives another program"
  if got_text == expected:
    return "ok"
  if accept:
    path.write_text(f"{head}----\n{got_text}")
    return "accepted"
  return f"{path.name}: expected\n{expected}\ngot\n{got_text}\n(python test/golden.py --accept)"


if __name__ == "__main__":
  results = {p.name: check(p, "--accept" in sys.argv) for p in sorted(FOLDER.glob("*.mini"))}
  for name, result in results.items():
    print(name, result)
  sys.exit(any(r not in ("ok", "accepted") for r in results.values()))
