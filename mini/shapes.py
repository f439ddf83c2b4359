"""Sizes that are not known, and what is said of them: which are equal, which are sums, and which must have room.

What follows depends on what is said alone, and not on its order: all equal sizes are compared at once, and of several
contradictions the first one in the order of their uses is told. A size about which too little is said is an error.
The texts of the errors are the caller's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class Use(NamedTuple):
  """Who says something of a size."""

  file: str
  line: int
  what: str


class Fact(NamedTuple):
  """A size is `size`, because of `use`."""

  size: Any
  use: Use


class Clash(Exception):
  """A size that would have to be two."""

  def __init__(self, name: Any, first: Fact, second: Fact):
    self.name, self.first, self.second = name, first, second


class Undetermined(Exception):
  """Sizes of which too little is said, and the uses that say something."""

  def __init__(self, names: list[Any], uses: list[Use]):
    self.names, self.uses = names, uses


class Sizes:
  """What is said of sizes, which have names of any kind. `solve` finds them."""

  def __init__(self) -> None:
    self.root: dict[Any, Any] = {}
    self.facts: list[tuple[Any, Fact]] = []
    self.sums: list[tuple[Any, tuple[Any, ...], Use]] = []
    self.rooms: list[tuple[Any, tuple[tuple[Any, int], ...], int, Use]] = []
    self.tight: set[int] = set()  # which rooms have none to spare
    self.strict: set[Any] = set()  # where 1 does not repeat

  # ---------------------------------------------------------------- what is said

  def find(self, name: Any) -> Any:
    """What stands for all sizes that are equal to it."""
    while (up := self.root.setdefault(name, name)) != name:
      name = up
    return name

  def same(self, a: Any, b: Any) -> None:
    """Two sizes are equal."""
    self.root[self.find(a)] = self.find(b)

  def given(self, name: Any, size: Any, use: Use) -> None:
    """A size is known; but what is 1 repeats where another use says more, unless the size is reckoned with."""
    self.find(name)
    self.facts.append((name, Fact(size, use)))

  def sum(self, total: Any, parts: Iterable[Any], use: Use) -> None:
    """A size is the sum of others."""
    self.sums.append((total, tuple(parts), use))

  def exact(self, name: Any) -> None:
    """A size of 1 does not repeat."""
    self.strict.add(name)

  def room(
    self, total: Any, terms: Iterable[tuple[Any, int]], plus: int, use: Use, tight: bool = False
  ) -> None:
    """All indices  sum of factor * index + plus  are below `total`. What nothing else determines of it is as large, the
    total as small, as that allows; if it is tight, it always is."""
    self.rooms.append((total, tuple(terms), plus, use))
    self.tight |= {len(self.rooms) - 1} if tight else set()

  # ---------------------------------------------------------------- what follows

  def solve(self) -> dict[Any, Fact]:
    """Every size by its name, and what it follows from. Clash, Undetermined."""
    reckoned = [(total, *parts) for total, parts, _ in self.sums]
    reckoned += [(total, *(n for n, _ in terms)) for total, terms, *_ in self.rooms]
    strict = {self.find(n) for names in (self.strict, *reckoned) for n in names}
    facts = list(self.facts)
    known = self._agreed(facts, strict)
    while more := self._summed(known) or self._fitting(known) or self._tight(known):
      facts += more
      known = self._agreed(facts, strict)
    for name, fact in facts:  # what is 1 wherever something is said of it
      known.setdefault(self.find(name), fact)
    self._hold(known)
    if missing := [name for name in self.root if self.find(name) not in known]:
      about = {self.find(name) for name in missing}
      spoken = [(u, (t, *ps)) for t, ps, u in self.sums]
      spoken += [(u, (t, *(n for n, _ in terms))) for t, terms, _, u in self.rooms]
      raise Undetermined(missing, sorted({u for u, names in spoken if about & set(map(self.find, names))}))
    return {name: known[self.find(name)] for name in self.root}

  def _agreed(self, facts: list[tuple[Any, Fact]], strict: set[Any]) -> dict[Any, Fact]:
    """The size of each root, from what does not repeat; the first clash."""
    known: dict[Any, Fact] = {}
    clashes = []
    for name, fact in sorted(facts, key=lambda f: (f[1].use, _order(f[1].size))):
      root = self.find(name)
      if fact.size == 1 and root not in strict:
        continue
      first = known.setdefault(root, fact)
      if first.size != fact.size:
        clashes.append(Clash(name, *sorted((first, fact), key=lambda f: _order(f.size))))
    if clashes:
      raise min(clashes, key=lambda c: (c.first.use, c.second.use))
    return known

  def _value(self, name: Any, known: dict[Any, Fact]) -> Any:
    fact = known.get(self.find(name))
    return None if fact is None else fact.size

  def _summed(self, known: dict[Any, Fact]) -> list[tuple[Any, Fact]]:
    """The one size of a sum that is not known."""
    found = []
    for total, parts, use in self.sums:
      missing = [n for n in (total, *parts) if self._value(n, known) is None]
      if len(missing) == 1:
        rest = sum(self._value(n, known) for n in parts if n is not missing[0])
        size = rest if missing[0] is total else self._value(total, known) - rest
        found.append((missing[0], Fact(size, use)))
    return found

  def _fitting(self, known: dict[Any, Fact]) -> list[tuple[Any, Fact]]:
    """The largest sizes that fit, of those that all rooms leave alone."""
    bounds: dict[Any, list[Fact] | None] = {}
    for total, terms, plus, use in self.rooms:
      missing = [(n, f) for n, f in terms if self._value(n, known) is None]
      room = self._value(total, known)
      for name, factor in missing:
        root = self.find(name)
        if room is None or len(missing) > 1:
          bounds[root] = None
        elif (so_far := bounds.setdefault(root, [])) is not None:
          used = plus + sum(f * max(self._value(n, known) - 1, 0) for n, f in terms if n != name)
          so_far.append(Fact(max((room - 1 - used) // factor + 1, min(room, 1)), use))
    return [(root, min(facts, key=lambda f: (f.size, f.use))) for root, facts in bounds.items() if facts]

  def _tight(self, known: dict[Any, Fact]) -> list[tuple[Any, Fact]]:
    """The smallest totals with room for all."""
    least: dict[Any, list[Fact] | None] = {}
    for total, terms, plus, use in self.rooms:
      if terms and self._value(total, known) is None:
        root, sizes = self.find(total), [(self._value(n, known), f) for n, f in terms]
        if any(n is None for n, _ in sizes):
          least[root] = None
        elif (so_far := least.setdefault(root, [])) is not None:
          so_far.append(Fact(reach(sizes, plus), use))
    return [(root, max(facts, key=lambda f: (f.size, f.use))) for root, facts in least.items() if facts]

  def _hold(self, known: dict[Any, Fact]) -> None:
    """Clash where a sum is another, or there is no room."""
    clashes = []
    for total, parts, use in self.sums:
      sizes = [self._value(n, known) for n in (total, *parts)]
      if None not in sizes and sizes[0] != sum(sizes[1:]):
        clashes.append(Clash(total, known[self.find(total)], Fact(sum(sizes[1:]), use)))
      clashes += [
        Clash(n, Fact(size, use), Fact(0, use)) for n, size in zip(parts, sizes[1:]) if (size or 0) < 0
      ]
    for n, (total, terms, plus, use) in enumerate(self.rooms):
      room, needed = self._value(total, known), [(self._value(name, known), f) for name, f in terms]
      if room is not None and all(size is not None for size, _ in needed):
        least = reach(needed, plus)
        if least > max(room, 0) or (n in self.tight and least != room):
          clashes.append(Clash(total, known[self.find(total)], Fact(least, use)))
    if clashes:
      raise min(clashes, key=lambda c: (c.first.use, c.second.use))


def reach(terms: Iterable[tuple[int, int]], plus: int) -> int:
  """How many elements indices go through: one more than the largest; 0 where there is no index."""
  terms = list(terms)
  return 0 if any(n < 1 for n, _ in terms) else 1 + plus + sum(f * (n - 1) for n, f in terms)


def _order(size: Any) -> tuple[bool, Any]:
  """Numbers by size, then what is known only at run time by name."""
  return (False, size) if isinstance(size, int) else (True, repr(size))
