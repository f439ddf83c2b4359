"""Kernels that are the same up to sizes share code: from the second size on, sizes are arguments of it.

A loop over sizes - a cache that grows, rows that become shorter - would run a compiler for each of them, which takes
longer than all that is computed. Two kernels are the same up to sizes where their sources are, but for whole numbers.
One source that takes those which differ as arguments computes what each does: to C it is the same whether a number of
type int is written out or is the value of a variable.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from mini.engine.device import Code

Numbers = tuple[int, ...]

NUMBER = re.compile(r"(?<![\w.])(?<![\d.]e[-+])(\d+)(?![\w.])")
HEAD = "void KERNEL(void **args, long lo, long hi) {\n"
ARRAY = re.compile(r" *[\w ]+ \w+\[z\d+\]( __attribute__\(\(aligned\(\d+\)\)\))?;\n")
# where C asks for a number that is written out: the order of a shuffle, how near a prefetch brings what it reads
WRITTEN = re.compile(r"SHUFFLE|__attribute__|__asm__|AHEAD.*, z\d+\)")


class Family:
  """Kernels of one source up to whole numbers."""

  def __init__(self) -> None:
    self.own: dict[Numbers, Code] = {}  # of those with code of their own
    self.shared: list[
      tuple[Numbers, Numbers, Code]
    ] = []  # (numbers, places of those that are arguments, code)

  def code(
    self, own: Code, source: str, numbers: Numbers, first: int, most: int, made: Callable[[str], Code]
  ) -> tuple[Code, Numbers]:
    """The code of a kernel, and the sizes that it is called with.

    own: what it is without sharing, of which `source` is the text with `numbers` in it. first: the number of the first
    argument that is a size. most: as many have code of their own. made: code of a source."""
    if numbers in self.own:
      return self.own[numbers], ()
    narrow = is_narrow(numbers)
    for known, places, code in self.shared if narrow else ():
      if all(a == b or n in places for n, (a, b) in enumerate(zip(known, numbers))):
        return code, tuple(numbers[n] for n in places)
    others = [known for known in (*self.own, *(known for known, *_ in self.shared)) if is_narrow(known)]
    places = tuple(n for n, values in enumerate(zip(*others, numbers)) if len({*values}) > 1)
    text = general(source, places, first) if len(self.own) >= most and narrow else None
    if text is None:
      self.own[numbers] = own
      return own, ()
    code = made(text)
    self.shared.append((numbers, places, code))
    return code, tuple(numbers[n] for n in places)


def is_narrow(numbers: Numbers) -> bool:
  return max(numbers, default=0) < 1 << 31


def numbers_of(source: str) -> tuple[str, Numbers]:
  """(a source without its whole numbers, those)"""
  return NUMBER.sub("#", source), tuple(map(int, NUMBER.findall(source)))


def general(source: str, places: Numbers, first: int) -> str | None:
  """The source with variables in these places; None where one of them has to be written out."""
  names = {place: f"z{k}" for k, place in enumerate(places)}
  count = itertools.count()
  lines = []
  for line in source.splitlines(keepends=True):
    made = NUMBER.sub(lambda m: names.get(next(count), m[0]), line)
    if made != line and WRITTEN.search(made) and not ARRAY.fullmatch(made):
      return None
    lines.append(made)
  text = "".join(lines)
  if not text.startswith(HEAD):
    return None
  sizes = "".join(f"  const int z{k} = (long)args[{first + k}];\n" for k in range(len(places)))
  return HEAD + sizes + text.removeprefix(HEAD)
