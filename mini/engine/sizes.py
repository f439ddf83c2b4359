"""Kernels that are the same up to sizes share code, of which sizes are arguments.

A loop over sizes - a cache that grows, rows that become shorter - would run a compiler for each of them, which takes
longer than all that is computed. Two kernels are the same up to sizes where their sources are, but for whole numbers.
One source that takes those as arguments computes what each does: to C it is the same whether a number of type int is
written out or is the value of a variable.

Where there is little to do, all numbers are arguments, from the first size on: what is compiled, and with it the last
bit of a result, does not depend on what was there before. Recipes that are the same for any size (codegen/even.py) have
such kernels differ in numbers alone. Others have code of their own for the first sizes, and their recipes make the most
of each; then the numbers that were seen to differ are arguments.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from mini.engine.device import Code

Numbers = tuple[int, ...]

NUMBER = re.compile(
  r"\b(?:args|[fv][\d_]+)\[\d+\]|\{[\d, ]+\}"  # of an argument, an element of a vector or all of them: no sizes
  r"|\b(\w+) \* (\d+) < (\d+) \? \1 \* \2 : \3\b"  # the place of a tile, the last of which is moved back
  r"|(?<![\w.])(?<![\d.]e[-+])([1-9]\d*)(?![\w.])"  # a size, or what is made of some; 0 is none
)
HEAD = "void KERNEL(void **args, long lo, long hi) {\n"
# from here to the end of its line C asks for numbers that are written out: the order of a shuffle, an alignment, how
# near a prefetch brings what it reads, the size of an array that has initial values
WRITTEN = re.compile(r"SHUFFLE|__attribute__|__asm__|AHEAD|\w+\[\d+\] = \{")


class Family:
  """Kernels of one source up to whole numbers."""

  def __init__(self) -> None:
    self.own: dict[Numbers, Code] = {}  # the first ones, which have code of their own
    self.shared: list[tuple[Numbers, Numbers, Code]] = []  # (numbers, places of arguments among them, code)

  def code(
    self, own: Code, source: str, numbers: Numbers, first: int, most: int, made: Callable[[str], Code]
  ) -> tuple[Code, Numbers]:
    """The code of a kernel, and the sizes that it is called with.

    own: what it is without sharing, of which `source` is the text with `numbers` in it. first: the number of the first
    argument that is a size. most: as many have code of their own; 0: all numbers are arguments. made: code of a
    source."""
    if max(numbers, default=0) >= 1 << 31:  # no int
      return own, ()
    if most and (numbers in self.own or len(self.own) < most):
      return self.own.setdefault(numbers, own), ()
    for known, places, code in self.shared:
      if all(a == b or n in places for n, (a, b) in enumerate(zip(known, numbers))):
        return code, tuple(numbers[n] for n in places)
    others = [*self.own, *(known for known, *_ in self.shared)]
    apart = lambda values: len({*values}) > 1 or not most
    places = tuple(n for n, values in enumerate(zip(*others, numbers)) if apart(values))
    code = made(general(source, places, first))
    self.shared.append((numbers, places, code))
    return code, tuple(numbers[n] for n in places)


def numbers_of(source: str) -> tuple[str, Numbers]:
  """(a source without the whole numbers that may be arguments, those)"""
  found: list[int] = []

  def left_out(n: str) -> str:
    found.append(int(n))
    return "#"

  return replaced(source, left_out), tuple(found)


def general(source: str, places: Numbers, first: int) -> str:
  """The source with variables in these places."""
  names = {place: f"z{k}" for k, place in enumerate(places)}
  count = itertools.count()
  text = replaced(source, lambda n: names.get(next(count), n))
  sizes = "".join(f"  const int z{k} = (long)args[{first + k}];\n" for k in range(len(places)))
  return HEAD + sizes + text.removeprefix(HEAD)


def replaced(source: str, number: Callable[[str], str]) -> str:
  """The source with other words for the numbers that may be arguments. The place of a tile, which stands there again
  and again, has one of them: where it ends depends on its loop alone."""
  places: dict[str, str] = {}

  def word(m: re.Match) -> str:
    loop, n, last, alone = m.groups()
    if loop and m[0] not in places:
      end = number(last)
      places[m[0]] = f"{loop} * {n} < {end} ? {loop} * {n} : {end}"
    return places[m[0]] if loop else number(alone) if alone else m[0]

  lines = []
  for line in source.splitlines(keepends=True):
    written = WRITTEN.search(line)
    end = written.start() if written else len(line)
    lines.append(NUMBER.sub(word, line[:end]) + line[end:])
  return "".join(lines)
