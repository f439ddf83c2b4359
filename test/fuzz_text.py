"""Mutated programs: whatever the text, the reader gives a program or a TextError, soon, and what it gives is
in bounds.

python test/fuzz_text.py FIRST COUNT      prints the seed and the text of what goes wrong
"""

import random
import re
import sys
import time
from pathlib import Path

import numpy as np

from mini.engine.launch import interface, interpret
from mini.text.parser import TextError, parse_file
from mini.text.printer import text
from mini.text.verifier import nbytes

SLOW_SECONDS = 2.0
SMALL_BYTES = 1 << 20  # programs up to this size are executed, too
NUMBERS = [
  "0",
  "1",
  "-1",
  "2",
  "3",
  "7",
  "64",
  "255",
  "1e9",
  "-0.0",
  "nan",
  "inf",
  "99999999999999999999",
  "4611686018427387904",
]
WORDS = ["%", "%0", "%1", "%i", "%x", "*", "//", "+", "-", "<", ">=", "&&", "(", ")", "[", "]", "{", "}", ":", ",", "if", "over",
         "load", "store", "store.add", "reduce.add", "scan.max", "stage", "stack", "at", "along", "range", "vec", "par",
         "unroll", "end",
         "cast", "add", "where", "min(", "idx(", "f32", "bool", "i32", "f16", "bf16", "var", "kernel", "graph",
         "return", "run", "arena",
         "# c", '"', "\n", "\t", "\0", "é", "} end source", "true", "f32(1)", "..", "=",
         "%n = var \"n\" 1..4\n"]  # fmt: skip


def corpus():
  """The golden programs, both halves."""
  halves = [
    half
    for p in sorted((Path(__file__).parent / "ir").glob("*.mini"))
    for half in p.read_text().split("----\n")
  ]
  return [h for h in halves if h.strip()]


def mutant(rng, sources):
  """One of the sources after a few edits of its tokens, lines or characters."""
  t = rng.choice(sources)
  for _ in range(rng.choice([1, 1, 1, 2, 4])):
    tokens = re.findall(r"%?[\w.]+|\s+|.", t) or [""]
    at = rng.randrange(len(tokens))
    kind = rng.randrange(9)
    if kind == 0:
      tokens[at] = rng.choice(NUMBERS)
    elif kind == 1:
      numbers = [n for n, w in enumerate(tokens) if re.fullmatch(r"\d+", w)]
      tokens[rng.choice(numbers) if numbers else at] = rng.choice(NUMBERS)
    elif kind == 2:
      tokens[at] = rng.choice(WORDS)
    elif kind == 3:
      tokens.insert(at, rng.choice(WORDS + NUMBERS))
    elif kind == 4:
      del tokens[at : at + rng.choice([1, 1, 2, 9])]
    elif kind == 5:
      other = rng.randrange(len(tokens))
      tokens[at], tokens[other] = tokens[other], tokens[at]
    elif kind == 6:
      tokens[at] *= rng.choice([2, 50, 5000])
    elif kind == 7:
      lines = t.split("\n")
      lines.insert(rng.randrange(len(lines)), rng.choice(rng.choice(sources).split("\n")))
      tokens = ["\n".join(lines)]
    else:
      names = [n for n, w in enumerate(tokens) if w.startswith("%")]
      if names:
        tokens[rng.choice(names)] = tokens[rng.choice(names)]
    t = "".join(tokens)
  return t


def run(program):
  """The program on zeros and ones: the interpreter checks every index that it uses."""
  p = program.src[0] if program.op == "uops" else program
  data = {m.name: np.ones(m.shape, m.dtype.np) for m in interface(p) if m.where != "out"}
  try:
    interpret(p, data)
  except IndexError:  # a gather or scatter outside its axis: what the user is told
    pass


def check(seed, sources):
  """None, or what went wrong."""
  t = mutant(random.Random(seed), sources)
  start = time.perf_counter()
  try:
    programs = parse_file(t, f"mutant {seed}")
  except TextError as e:
    first = str(e).split("\n")[0]
    if not re.match(rf"mutant {seed}:\d+:\d+: .", first):
      return f"seed {seed}: an error without a place: {first}\n{t}"
    programs = []
  except Exception as e:  # noqa: BLE001
    return f"seed {seed}: {type(e).__name__}: {e}\n{t}"
  if time.perf_counter() - start > SLOW_SECONDS:
    return f"seed {seed}: took {time.perf_counter() - start:.1f} s\n{t[:2000]}"
  for p in programs:
    printed = text(p)
    if parse_file(printed) != [p]:
      return f"seed {seed}: print and parse are not inverse\n{t}\n{printed}"
    if p.op == "source" or nbytes(p if p.op != "uops" else p.src[0]) > SMALL_BYTES or steps(p) > 1 << 20:
      continue
    try:
      run(p)
    except Exception as e:  # noqa: BLE001
      return f"seed {seed}: running it: {type(e).__name__}: {e}\n{t}"
  return None


def steps(program):
  """An upper bound of the elements of a graph, and of the iterations of a program's kernels."""
  from mini.engine.passes import kernels_of
  from mini.ir.graph import numel
  from mini.ir.kernel import all_ranges
  from mini.ir.uop import rsize, toposort

  if program.op == "graph":
    return sum(map(numel, toposort(*program.src)))
  total = 0
  for k in kernels_of(program):
    n = 1
    for r in all_ranges(k):
      n *= rsize(r)
    total += n
  return total


if __name__ == "__main__":
  found, first, count = 0, int(sys.argv[1]), int(sys.argv[2])
  programs = corpus()
  for seed in range(first, first + count):
    wrong = check(seed, programs)
    if wrong:
      found += 1
      print(wrong)
  print(f"{count} mutants, {found} wrong")
  sys.exit(found > 0)
