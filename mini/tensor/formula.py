"""The syntax of einsum: which axes the operands and the result of a formula have. What it means stands in einsum.py.

  "ij,jk->ik"                        a name is a letter, as in NumPy and PyTorch, and blanks mean nothing
  "batch seq, seq d => batch d"      where the arrow is =>, names are words, and blanks stand between them
  "row col += row k, k col"          so they are where the result is accumulated: += *= max= min= |= &=

An axis is

  i          a name: an index that is the same wherever its name stands
  ...        as many axes as there are, aligned at the last one; ..rows.. are such axes with a name of their own
  3          element 3 of it; -1, behind a blank, is the last one
  2*o+k+1    the element at an index that is reckoned from others
  a^b        the elements of a, and behind them those of b
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from mini.types import ShapeError

Label = str | tuple[str, int]  # of the axes of a row: its name, and -1 for the last one
SIGNS = {"+=": "sum", "*=": "prod", "max=": "max", "min=": "min", "|=": "any", "&=": "all"}


class Index(NamedTuple):
  """An axis of which the element  sum of factor * label + plus  is taken."""

  terms: tuple[tuple[Label, int], ...]
  plus: int = 0

  @property
  def label(self) -> Label | None:
    """The name of an axis that has no more than one."""
    return self.terms[0][0] if len(self.terms) == 1 and self.terms[0][1] == 1 and not self.plus else None


class Join(NamedTuple):
  """An axis of parts that stand one behind another."""

  parts: tuple[Label, ...]


class Row(NamedTuple):
  """Any number of axes."""

  name: str


Axis = Index | Join
Term = tuple[Axis, ...]


class Formula(NamedTuple):
  inputs: tuple[tuple[Axis | Row, ...], ...]
  output: tuple[Axis | Row, ...] | None  # None: not said
  reduce: str  # of an accumulating one; else ""
  texts: tuple[str, ...]  # of the inputs


def name_of(label: Label) -> str:
  """A label as an error calls it."""
  if isinstance(label, str):
    return f"axis {label}"
  return f"an axis of {f'the row {label[0]}' if label[0] else 'the ellipsis'}"


def labels_of(axes: Sequence[Axis]) -> Iterator[Label]:
  """The names in a term, those of parts too."""
  for axis in axes:
    yield from axis.parts if isinstance(axis, Join) else (label for label, _ in axis.terms)


# ---------------------------------------------------------------- text


@lru_cache(1024)
def parsed(formula: str) -> Formula:
  """ShapeError where it is no formula."""
  found = re.search(r"->|=>|(?:\+|\*|\||&|\bmax|\bmin)=(?!>)", formula)
  sign = found.group() if found else ""
  sides = (formula[: found.start()], formula[found.end() :]) if found else (formula, "")
  left, right = sides[::-1] if sign in SIGNS else sides
  words = sign not in ("", "->")
  texts = tuple(text.strip() for text in left.split(","))
  inputs = tuple(_term(text, words) for text in texts)
  return Formula(inputs, _term(right, words) if found else None, SIGNS.get(sign, ""), texts)


def _pattern(name: str) -> re.Pattern[str]:
  piece = rf"(?:\d+\*{name}|{name}|\d+)"
  return re.compile(
    rf"(?P<row>\.\.\.|\.\.\w+\.\.)|(?P<join>{name}(?:\^{name})+)|(?P<sum>{piece}(?:\+{piece})*|(?<!\S)-\d+)"
  )


LETTERS, WORDS = _pattern(r"[^\W\d_]"), _pattern(r"[^\W\d]\w*")


def _term(text: str, words: bool) -> tuple[Axis | Row, ...]:
  axes: list[Axis | Row] = []
  for chunk in text.split():
    at = 0
    while at < len(chunk):
      found = (WORDS if words else LETTERS).match(chunk, at)
      if found is None or (words and found.end() < len(chunk)):
        raise ShapeError(
          f"{(chunk if words else chunk[at:])!r} is no axis; an axis is named by a {'word' if words else 'letter'}"
        )
      at = found.end()
      axes.append(_axis(found))
  if sum(isinstance(a, Row) for a in axes) > len({a for a in axes if isinstance(a, Row)}):
    raise ShapeError(f"{text.strip()!r} has the same row twice")
  return tuple(axes)


def _axis(found: re.Match[str]) -> Axis | Row:
  if found["row"]:
    return Row(found["row"].strip("."))
  if found["join"]:
    parts = tuple(found["join"].split("^"))
    if len({*parts}) < len(parts):
      raise ShapeError(f"{found['join']!r} has a part twice")
    return Join(parts)
  factors: Counter[Label] = Counter()
  plus = 0
  for piece in found["sum"].split("+"):
    times, star, name = piece.rpartition("*")
    if name.lstrip("-").isdigit():
      plus += int(name)
    else:
      factors[name] += int(times) if star else 1
  if 0 in factors.values():
    raise ShapeError(f"{found['sum']!r} has a name times 0")
  return Index(tuple(factors.items()), plus)


# ---------------------------------------------------------------- rows


def expanded(formula: Formula, ndims: Sequence[int], target: int | None = None) -> tuple[list[Term], Term]:
  """The axes of each input, of so many, and of the result (of `target`, if it is told), without rows.

  Rows are aligned at their last axis. Where nothing is said of the result, it has the names that stand once, sorted.
  ShapeError where the numbers of axes do not fit.
  """
  if len(formula.inputs) != len(ndims):
    raise ShapeError(f"names the axes of {len(formula.inputs)} operands, and there are {len(ndims)}")
  known = list(zip(formula.inputs, ndims, formula.texts))
  if target is not None and formula.output is not None:
    known.append((formula.output, target, "the result"))
  longest = _ranks(known)
  inputs = [_spelled(term, ndim, longest) for term, ndim, _ in known][: len(ndims)]
  if formula.output is None:
    counts = Counter(label for term in inputs for label in labels_of(term))
    once = sorted(n for n, c in counts.items() if c == 1 and isinstance(n, str))
    names: list[Label] = [*sorted(n for n in counts if not isinstance(n, str)), *once]
    return inputs, tuple(Index(((n, 1),)) for n in names)
  for a in formula.output:
    if isinstance(a, Row) and a.name not in longest and a.name:
      raise ShapeError(f"the result has a row {a.name}, which no operand has")
  return inputs, _spelled(formula.output, target, longest)


def _ranks(known: Sequence[tuple[tuple[Axis | Row, ...], int, str]]) -> dict[str, int]:
  """How many axes each row has: the most that are left for it where it stands alone, or beside rows that are known."""
  longest: dict[str, int] = {}
  todo = list(known)
  while todo:
    ready = [
      (t, n, s) for t, n, s in todo if len([a for a in t if isinstance(a, Row) and a.name not in longest]) < 2
    ]
    if not ready:
      raise ShapeError(f'how many axes each row of "{todo[0][2]}" has cannot be told')
    alone = [item for item in ready if sum(isinstance(a, Row) for a in item[0]) < 2] or ready
    found: dict[str, int] = {}
    for term, ndim, text in alone:
      rows = [a.name for a in term if isinstance(a, Row)]
      named = len(term) - len(rows)
      rest = ndim - named - sum(longest[r] for r in rows if r in longest and len(rows) > 1)
      if rest < 0 or (rest and not rows) or (rest and len(rows) > 1 and all(r in longest for r in rows)):
        raise ShapeError(f'"{text}" names {named} axes of an operand that has {ndim}')
      for r in rows:
        if r not in longest or len(rows) == 1:
          found[r] = max(rest, found.get(r, 0), longest.get(r, 0))
    longest.update(found)
    todo = [item for item in todo if item not in alone]
  return longest


def _spelled(term: tuple[Axis | Row, ...], ndim: int | None, longest: dict[str, int]) -> Term:
  """With the axes of its rows; a single row of an operand has what is left for it."""
  rows = [a.name for a in term if isinstance(a, Row)]
  out: list[Axis] = []
  for a in term:
    if isinstance(a, Row):
      single = ndim is not None and len(rows) == 1
      rank = ndim - len(term) + 1 if single and ndim is not None else longest.get(a.name, 0)
      out += [Index((((a.name, n), 1),)) for n in range(-rank, 0)]
    else:
      out.append(a)
  return tuple(out)
