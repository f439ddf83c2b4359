"""Verdicts as text: a Markdown table for each device, in a file that may hold several and words of its own."""

from __future__ import annotations

import os
import re
from pathlib import Path

from mini.opsuite.cases import Cell, Row
from mini.opsuite.workers import Verdicts, runs_on
from mini.types import DType, dtypes


def title(v: Verdicts) -> str:
  """A device, and the settings that are not the defaults."""
  from mini.config import TABLE, config

  same = {name: TABLE[name].parse(TABLE[name].default) for name in ("EMULATE", "NOOPT", "CHECK", "FAST")}
  others = [
    name for name, value in same.items() if v.setup.settings.get(name, getattr(config, name)) != value
  ]
  words = {"EMULATE": "emulated", "NOOPT": "without recipes", "CHECK": "checked", "FAST": "fast"}
  return ", ".join([v.setup.device, *(words[name] for name in others)])


def cell_text(row: Row, d: DType, v: Verdicts, number: dict[int, int]) -> str:
  """ok, what is wrong, or why there is nothing."""
  if row.unknown:
    return "FAILED"
  cell: Cell = row.cells[d]
  if isinstance(cell, str):
    return cell
  if not any(runs_on(case, v.facts.lacks) for case in cell):
    needed = [n for n in v.facts.lacks if all(not runs_on(case, [n]) for case in cell)]
    return f"no {needed[0]}"
  failed = [(case.layout, why) for case in cell if (why := v.wrong.get(number[id(case)], ""))]
  if not failed:
    return "ok"
  layout, why = failed[0]
  return f"FAILED, {layout}: {why.replace('|', ' ')}"


def counts(v: Verdicts) -> tuple[int, int]:
  """(cases that passed, cases and rows that failed)."""
  failed = sum(map(bool, v.wrong.values())) + sum(bool(r.unknown) for r in v.rows)
  return len(v.wrong) - sum(map(bool, v.wrong.values())), failed


def summary(v: Verdicts) -> str:
  passed, failed = counts(v)
  return f"{passed} passed, {failed} failed"


def failures(v: Verdicts) -> list[str]:
  """A line for each row in which something failed: how much, and the first of it."""
  of_row: dict[str, list[int]] = {}
  for n, case in enumerate(v.cases):
    if n in v.wrong:
      of_row.setdefault(case.row, []).append(n)
  lines = [f"{r.name}: {r.unknown}" for r in v.rows if r.unknown]
  for row, numbers in of_row.items():
    failed = [n for n in numbers if v.wrong[n]]
    if failed:
      first = v.cases[failed[0]]
      why = f"{first.column.name}, {first.layout}: {v.wrong[failed[0]]}"
      lines.append(f"{row}: {len(failed)} of {len(numbers)} failed. {why}")
  return lines


def table(v: Verdicts) -> str:
  """Rows are operations, columns are types."""
  columns = [d for d in dtypes.all if not v.setup.types or d.name in v.setup.types]
  number = {id(case): n for n, case in enumerate(v.cases)}
  lines = [["", *(d.name for d in columns)], ["---"] * (len(columns) + 1)]
  lines += [[row.name, *(cell_text(row, d, v, number) for d in columns)] for row in v.rows]
  return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def section(v: Verdicts) -> str:
  """What a report says of one device. It depends on nothing but the device and the operations."""
  said = [f"Kernels in {v.facts.language}." if v.facts.language else "No kernels: NumPy."]
  said += [f"Subnormal numbers of {', '.join(v.facts.flushes)} become 0."] * bool(v.facts.flushes)
  notes = [f"- {line}" for r in v.rows if r.unknown for line in [f"{r.name}: {r.unknown}"]]
  return "\n".join(
    [f"## {title(v)}", "", " ".join([*said, f"{summary(v)}."]), "", table(v), *[""] * bool(notes), *notes, ""]
  )


SECTION = re.compile(r"^## .*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def write(path: str, reports: list[Verdicts]) -> None:
  """Put the sections of these devices into a file: in place of those that it has, or at its end."""
  text = Path(path).read_text(encoding="utf-8") if os.path.exists(path) else ""
  for v in reports:
    new, head = section(v), f"## {title(v)}\n"
    found = next((m for m in SECTION.finditer(text) if m[0].startswith(head)), None)
    if found:
      rest = text[found.end() :]
      text = text[: found.start()] + new + ("\n" if rest else "") + rest
    else:
      text = text + ("\n" if text else "") + new
  Path(path).write_text(text, encoding="utf-8")
