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
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from mini.codegen.even import SMALL, WIDE, adapted, alike, in_chains, keeps
from mini.codegen.recipe import RecipeError, apply
from mini.engine.device import Code
from mini.ir.kernel import all_ranges
from mini.ir.uop import UOp, rsize, toposort

Numbers = tuple[int, ...]
Kinds = tuple["int | None", ...]  # of each number the argument that it is, or None where it is written out
MOST_SIZES = 256  # of a kernel: with more of them in its way a compiler does not see what it should
ALONE = 3  # kernels that may show of another what its sizes are
NEAR = 4  # by how much sizes may differ that have one recipe

NUMBER = re.compile(
  r"\b(?:args|[fv][\d_]+)\[\d+\]|\{[\d, ]+\}"  # of an argument, an element of a vector or all of them: no sizes
  r"|\b(\w+) \* (\d+) < (\d+) \? \1 \* \2 : \3\b"  # the place of a tile, the last of which is moved back
  # a size, or what is made of some; 0 is none, nor a negative number, but where a vector begins to count
  r"|(?<![\w.])(?<![\d.]e[-+])([1-9]\d*|(?<=\(int\)\()(?:0|-\d+))(?![\w.])"
)
HEAD = "void KERNEL(void **args, long lo, long hi) {\n"
# from here to the end of its line C asks for numbers that are written out: the order of a shuffle, an alignment, how
# near a prefetch brings what it reads, the size of an array that has initial values
WRITTEN = re.compile(r"SHUFFLE|__attribute__|__asm__|AHEAD|\w+\[\d+\] = \{")
LOOP = re.compile(r"for \(long (\w+) = 0; \w+ < @(\d+);")  # with the place of a number instead of it


class Family:
  """Kernels of one source up to whole numbers."""

  def __init__(self) -> None:
    self.own: dict[Numbers, Code] = {}  # the first ones, which have code of their own
    self.shared: list[tuple[Numbers, Kinds, Code]] = []

  def code(
    self,
    own: Code,
    source: str,
    numbers: Numbers,
    first: int,
    most: int,
    made: Callable[[str], Code],
    always: Collection[int] = (),
    others: Sequence[Numbers] | None = None,
  ) -> tuple[Code, Numbers]:
    """The code of a kernel, and the sizes that it is called with. RecipeError where others do not show which few they
    are.

    own: what it is without sharing, of which `source` is the text with `numbers` in it. first: the number of the first
    argument that is a size. most: as many have code of their own. made: code of a source. Arguments are the numbers
    that differ, also in others, and those in the places of `always`. Those that were the same in each of several sizes
    are one, or a compiler would not see that neighbours are; one size alone does not show it."""
    if max(numbers, default=0) >= 1 << 31:  # no int
      return own, ()
    if most and (numbers in self.own or len(self.own) < most):
      return self.own.setdefault(numbers, own), ()
    for known, kinds, code in self.shared:
      sizes = arguments(known, kinds, numbers)
      if sizes is not None:
        return code, sizes
    seen = [*(others or ()), *self.own, *(known for known, *_ in self.shared), numbers]
    found: dict[Any, int] = {}

    def kind(n: int, values: Numbers) -> int | None:
      if n not in always and len({*values}) == 1:
        return None
      return found.setdefault(values if len(values) > 1 else n, len(found))

    kinds = tuple(itertools.starmap(kind, enumerate(zip(*seen))))
    if others is not None and len(found) > MOST_SIZES:
      raise RecipeError(f"{len(found)} of its numbers may be sizes")
    code = made(general(source, kinds, first))
    self.shared.append((numbers, kinds, code))
    return code, arguments(numbers, kinds, numbers) or ()


def arguments(known: Numbers, kinds: Kinds, numbers: Numbers) -> Numbers | None:
  """What code for known numbers is called with for others; None where it is not for them."""
  found: dict[int, int] = {}
  for a, kind, b in zip(known, kinds, numbers):
    if b != (a if kind is None else found.setdefault(kind, b)):
      return None
  return tuple(found.values())


class General(NamedTuple):
  """A recipe for several sizes."""

  recipe: str
  sums: str  # what it says of them
  sizes: Numbers  # for which it was written


class Alike:
  """Kernels of one structure up to sizes."""

  def __init__(self) -> None:
    # the first ones, with code of their own, by that without a name
    self.own: dict[Code, tuple[Code, UOp]] = {}
    self.little: list[UOp] = []  # the last one with so little to do that all sizes have one recipe
    self.alone: list[UOp] = []  # the last ones for which nothing showed what their sizes are
    self.recipes: list[General] = []

  def before(self) -> list[UOp]:
    return [*self.little, *(k for _, k in self.own.values()), *self.alone]

  def with_recipe(self, recipe: str) -> list[tuple[UOp, UOp]]:
    """[(a kernel that was there before, it with this recipe)], of those to which it applies."""
    return [(k, tuned) for k in self.before() if (tuned := attempt(k, recipe))]

  def general(self, k: UOp, own: str, threads: int) -> tuple[str, UOp]:
    """(a recipe that k has with others, k with it). RecipeError where there is none.

    own: the recipe of k alone, of which it keeps in which order sums are added up."""
    sizes = tuple(map(rsize, all_ranges(k)))
    mine, sums = alike(own, [*self.before(), k])
    for g in self.recipes:
      near = all(a <= NEAR * b and b <= NEAR * a for a, b in zip(sizes, g.sizes))
      if near and in_chains(g.sums) == in_chains(sums):
        try:
          recipe = adapted(g.recipe, mine, k, threads)
          if keeps(recipe, sums):
            return recipe, apply(k, recipe)
        except RecipeError:  # it does not cut this size
          pass
    tuned = apply(k, mine)
    self.recipes.append(General(mine, sums, sizes))
    return mine, tuned


def attempt(k: UOp, recipe: str) -> UOp | None:
  try:
    return apply(k, recipe)
  except RecipeError:
    return None


def adds_products(k: UOp) -> bool:
  """Are two products added to each other? Which of them a compiler fuses with the addition may depend on whether sizes
  are written out, and with it the last bit."""

  def is_product(u: UOp) -> bool:
    turned = next((s for s, by in zip(u.src, u.src[::-1]) if by.op == "const" and abs(by.arg) == 1), None)
    return u.op == "mul" and (turned is None or is_product(turned))

  sums = (u for u in toposort(k) if u.op == "add" and u.dtype.kind == "f")
  return any(all(map(is_product, u.src)) for u in sums)


def structure(k: UOp) -> int:
  """A hash of a kernel but for its sizes."""
  order = toposort(k)
  number = {u: n for n, u in enumerate(order)}
  return hash(tuple([(u.op, u.dtype, sizeless(u.arg), *[number[s] for s in u.src]) for u in order]))


def sizeless(arg: Any) -> Any:
  return tuple(map(sizeless, arg)) if isinstance(arg, tuple) else None if type(arg) is int else arg


def numbers_of(source: str) -> tuple[str, Numbers]:
  """(a source without the whole numbers that may be arguments, those)"""
  found: list[int] = []

  def left_out(n: str) -> str:
    found.append(int(n))
    return "#"

  return replaced(source, left_out), tuple(found)


def large(source: str, numbers: Numbers, recipe: str) -> set[int]:
  """The places of numbers that are made of sizes, also if two sizes do not show it: of those that are large, and of the
  ends of loops over tiles."""
  tiles = {
    line.split()[4].rstrip(",").replace(".", "_") for line in recipe.splitlines() if line.endswith(" any")
  }
  count = itertools.count()
  ends = LOOP.findall(replaced(source, lambda n: f"@{next(count)}"))
  inside = {int(n) for r, n in ends if r.removeprefix("u_") in tiles}  # which some loops are called with
  return {n for n, size in enumerate(numbers) if size > SMALL} | inside


def general(source: str, kinds: Kinds, first: int) -> str:
  """The source with variables instead of numbers that are arguments."""
  each = iter(kinds)
  text = replaced(source, lambda n: n if (k := next(each)) is None else f"z{k}")
  count = len({*kinds} - {None})
  sizes = "".join(f"  const int z{k} = (long)args[{first + k}];\n" for k in range(count))
  return HEAD + sizes + text.removeprefix(HEAD)


def replaced(source: str, number: Callable[[str], str]) -> str:
  """The source with other words for the numbers that may be arguments. The place of a tile, which stands there again
  and again, has one of them: where it ends depends on its loop alone."""
  places: dict[str, str] = {}

  def word(m: re.Match) -> str:
    loop, n, last, alone = m.groups()
    if loop and m[0] not in places:
      n, end = number(n) if int(n) > WIDE else n, number(last)
      places[m[0]] = f"{loop} * {n} < {end} ? {loop} * {n} : {end}"
    return places[m[0]] if loop else number(alone) if alone else m[0]

  lines = []
  for line in source.splitlines(keepends=True):
    written = WRITTEN.search(line)
    end = written.start() if written else len(line)
    lines.append(NUMBER.sub(word, line[:end]) + line[end:])
  return "".join(lines)
