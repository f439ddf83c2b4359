"""`python -m mini test-device`: what its table says, that each fault is found in its row alone, and the kept tables."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import golden_sources as golden
import numpy as np
import pytest

from mini import __main__ as command
from mini.engine.buffer import Buffer
from mini.engine.device import Device
from mini.engine.realize import realize
from mini.ir import graph as g
from mini.ir.ops import OPS, Op
from mini.opsuite import cases, compare, report
from mini.opsuite.cases import Case, rows
from mini.opsuite.data import leaf
from mini.types import dtypes
from runtime.base import DeviceError

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "docs" / "devices.md"
needs_cc = pytest.mark.skipif(golden.CC is None, reason="no C compiler found")
needs_cxx = pytest.mark.skipif(golden.CXX is None, reason="no C++ compiler found")

# A device that is the CPU, or an emulated one, but for one row of its language.
TOY = """
from dataclasses import replace
from mini.config import config
from mini.engine.device import Device, disk
from mini.render.c import C
from mini.render.cuda import CUDA
from mini.stats import stats
from runtime import cpu, emulate

def toy(row):
  rows = [row]
  Device.register("TOY", open=lambda index: cpu.open(cache=disk(), counters=stats), language=lambda kernel, info: broken(C(1)))
  Device.register("TOYCUDA", open=lambda index: emulate.open("CUDA", cache=disk(), counters=stats), language=broken(CUDA))

def broken(language):
  return replace(language, rows=(ROW, *language.rows), found={}, words=set())

ROW = %r
toy(ROW)
"""


def suite(*words, status=None, **environ):
  """(what `python -m mini test-device` printed, line by line; its exit status is `status`)."""
  done = subprocess.run(
    [sys.executable, "-m", "mini", "test-device", *words],
    capture_output=True, text=True, check=False, env={**os.environ, **environ}, cwd=ROOT,
  )  # fmt: skip
  assert status is None or done.returncode == status, done.stdout + done.stderr
  return (done.stdout + done.stderr).splitlines()


def failed_rows(lines):
  """The rows that failed, by what was printed."""
  return {re.split("[,:]", line.split(": ", 1)[1])[0] for line in lines[:-1]}


def toy_with(tmp_path, row):
  path = tmp_path / "toy.py"
  path.write_text(TOY % (row,))
  return str(path)


# ---------------------------------------------------------------- rows


def test_every_operation_has_rows():
  """And each of them something to compute, or a reason why not."""
  table = rows()
  assert not [r.name for r in table if r.unknown]
  assert {r.name.split()[0] for r in table} == {*OPS} - {"invoke"}  # which no device sees
  for r in table:
    assert list(r.cells) == list(dtypes.all)
    assert all(
      cell and (isinstance(cell, str) or all(c.column is d for c in cell)) for d, cell in r.cells.items()
    )
  layouts = {c.layout for r in table for cell in r.cells.values() if not isinstance(cell, str) for c in cell}
  assert {"contiguous", "strided", "broadcast", "one element", "no element", "everything"} <= layouts


def test_a_new_operation_is_a_new_row(monkeypatch):
  monkeypatch.setitem(OPS, "cube", Op("cube", "composite", 1, "same", lambda x: x * x * x))
  monkeypatch.setitem(OPS, "sort", Op("sort", "data", 1, "same", None))
  table = {r.name: r for r in rows()}
  assert len(table["cube"].cells[dtypes.int8]) > 2
  assert "the op suite does not know how to call it: sort, of family data" in table["sort"].unknown


@pytest.mark.full
@needs_cc
def test_an_operation_that_no_language_spells_fails_and_no_other(tmp_path):
  path = tmp_path / "more.py"
  path.write_text(
    "from mini.ir.ops import OPS, Op\n"
    "OPS['cube'] = Op('cube', 'composite', 1, 'same', lambda x: x * x * x)\n"
    "OPS['sort'] = Op('sort', 'data', 1, 'same', None)\n"
  )
  lines = suite("CPU", "--from", str(path), "--types", "float32", "--rows", "cube,sort,abs", status=1)
  assert failed_rows(lines) == {"cube", "sort"}
  assert any("C has no spelling for cube of float32" in line for line in lines)


# ---------------------------------------------------------------- faults


@needs_cc
@pytest.mark.parametrize(("row", "column"), [
  (("pow", "unsigned", "1"),           "uint16"),   # wrong results
  pytest.param(("floor", "float", "{0}"),          "float32", marks=pytest.mark.full),
  pytest.param(("mod", "unsigned", "({0} $ {1})"), "uint16",  marks=pytest.mark.full),  # does not compile
  pytest.param(("atan", "float", None),            "float32", marks=pytest.mark.full),  # no spelling
])  # fmt: skip
def test_a_broken_spelling_fails_in_its_row_alone(row, column, tmp_path, request):
  """Among all rows; in a quick run among some."""
  path = toy_with(tmp_path, row)
  some = () if request.config.option.full else ("--rows", "pow,add,mod,max,gather,reduce max")
  lines = suite("TOY", "--from", path, "--types", column, *some, status=1)
  assert failed_rows(lines) == {row[0]}, lines
  assert re.fullmatch(r"\d+ passed, \d failed", lines[-1]) and (some or int(lines[-1].split()[0]) > 99)


@pytest.mark.full
@needs_cxx
def test_a_broken_spelling_of_cuda(tmp_path):
  path = toy_with(tmp_path, ("max", "i32", "({0} < {1} ? {0} : {1})"))
  lines = suite("TOYCUDA", "--from", path, "--types", "int32", status=1)
  assert failed_rows(lines) == {"max", "reduce max", "scan max", "scatter max"}  # they are spelled by it


@pytest.mark.full
@needs_cc
def test_a_crash_is_one_failed_case(tmp_path):
  path = toy_with(tmp_path, ("floor", "f32", "*(volatile float *)8"))
  lines = suite("TOY", "--from", path, "--types", "float32", "--rows", "floor,ceil,abs,add", status=1)
  assert failed_rows(lines) == {"floor"}
  assert lines[0] == "TOY: floor: 4 of 4 failed. float32, contiguous: the process crashed: SIGSEGV"
  assert lines[-1] == "13 passed, 4 failed"


@needs_cc
def test_a_device_that_only_this_process_knows(monkeypatch, capsys):
  from mini.config import DEVICES
  from mini.engine.device import KINDS
  from mini.render.c import C
  from runtime import cpu

  monkeypatch.setattr("mini.config.DEVICES", [*DEVICES])
  monkeypatch.setitem(KINDS, "MINE", None)
  del KINDS["MINE"]
  Device.register("MINE", open=lambda index: cpu.open(), language=C(1))
  assert command.main(["test-device", "MINE", "--types", "int16", "--rows", "add,copy"]) == 0
  assert re.fullmatch(r"\d+ passed, 0 failed", capsys.readouterr().out.splitlines()[-1])


# ---------------------------------------------------------------- what is compared


@pytest.mark.parametrize(("op", "kind", "got", "want", "fine"), [
  ("sqrt", dtypes.float32,  1 + 2**-23,    1.0,      False),
  ("exp",  dtypes.float32,  1 + 2**-22,    1.0,      True),
  ("exp",  dtypes.float32,  1 + 2**-20,    1.0,      False),
  ("exp",  dtypes.bfloat16, 1 + 2**-7,     1.0,      True),
  ("exp",  dtypes.float32,  0.0,           2.0**-148, True),
  ("exp",  dtypes.float32,  float("inf"),  3.4e38,   False),
  ("mul",  dtypes.float32,  0.0,           -0.0,     False),
  ("max",  dtypes.float32,  0.0,           -0.0,     True),
  ("mul",  dtypes.float32,  float("nan"),  -np.nan,  True),
  ("mul",  dtypes.float32,  float("nan"),  1.0,      False),
  ("add",  dtypes.int8,     1,             2,        False),
])  # fmt: skip
def test_how_far_a_result_may_be_off(op, kind, got, want, fine):
  case = Case(op, kind, "contiguous", g.alu(op, *[leaf("edges", (1,), kind)] * OPS[op].arity), op)
  x, y = np.array([got], kind.np), np.array([want], kind.np)
  assert (compare.wrong(x, y, case, compare.ulps(case, "C"), False) == "") is fine


def test_what_is_allowed_depends_on_the_language():
  case = Case("exp", dtypes.float32, "", g.alu("exp", leaf("edges", (1,), dtypes.float32)), "exp")
  assert [compare.ulps(case, name) for name in ("C", "CUDA", "OpenCL", "Metal", "Toy C")] == [2, 2, 3, 4, 4]
  assert {op for op in compare.ACCURACY} <= set(OPS)
  whole = cases.Case(
    "reduce add", dtypes.float32, "", g.reduce(leaf("signs", (9,), dtypes.float32), "add", (0,)), "order"
  )
  assert compare.ulps(whole, "CUDA") == 0


@needs_cc
def test_equal_results_of_a_program_over_two_devices():
  x = g.buffer(Buffer.of(np.arange(6, dtype=np.float32), dtypes.float32, "CPU"), (2, 3), dtypes.float32)
  y = g.permute(x, (1, 0))
  roots = [g.copy(g.flip(y, (0,)), "CPU:1"), g.flip(g.detach(y), (0,)), g.flip(g.tag(y), (0,))]
  for u in realize(roots):
    np.testing.assert_array_equal(u.arg[0].numpy(), [2, 5, 1, 4, 0, 3])


# ---------------------------------------------------------------- the command, and the report


def test_bad_commands(capsys):
  for words, why in [
    ([], "python -m mini test-device NAME"), (["INTERP", "--types", "float33"], "no type 'float33'"),
    (["INTERP", "--rows", "addd"], "no row addd"), (["DEBUGG=1", "INTERP"], "no setting DEBUGG"),
  ]:  # fmt: skip
    with pytest.raises(command.BadCommand, match=re.escape(why)):
      command.main(["test-device", *words])
  lines = suite("WARP", status=1)
  assert "no device 'WARP'" in lines[-1]


@pytest.mark.full
def test_a_report_keeps_what_is_not_its_own(tmp_path):
  path = tmp_path / "devices.md"
  words = ["--rows", "abs,exp", "--types", "int8,float32", "--report", str(path)]
  assert suite("INTERP", *words, status=0) == ["12 passed, 0 failed"]
  first = path.read_text()
  assert "| exp | floats only | ok |\n| abs | ok | ok |\n" in first
  path.write_text(f"# Devices\n\nWords.\n\n{first}\n## Others\n\nMore words.\n")
  suite("INTERP", *words, status=0)
  assert path.read_text() == f"# Devices\n\nWords.\n\n{first}\n## Others\n\nMore words.\n"


def kept(name):
  found = next(
    (m[0] for m in report.SECTION.finditer(KEPT.read_text()) if m[0].startswith(f"## {name}\n")), None
  )
  assert found, f"{KEPT} has no section of {name}"
  return found.strip()


@pytest.mark.parametrize(("name", "words"), [
  pytest.param("CPU", ["CPU"], marks=[needs_cc, pytest.mark.full]),
  pytest.param("CL", ["CL"], marks=pytest.mark.full),
  pytest.param("CUDA, emulated", ["EMULATE=1", "CUDA"], marks=[needs_cxx, pytest.mark.full]),
  pytest.param("METAL, emulated", ["EMULATE=1", "METAL"], marks=[needs_cxx, pytest.mark.full]),
])  # fmt: skip
def test_the_kept_tables_are_those_of_now(name, words, tmp_path):
  """`python -m mini test-device CPU CL EMULATE=1 CUDA METAL --report docs/devices.md` makes them anew."""
  if name == "CL":
    try:
      Device["CL"]
    except DeviceError as e:
      pytest.skip(str(e))
  path = tmp_path / "table.md"
  lines = suite(*words, "--report", str(path))
  assert path.exists(), lines
  assert path.read_text().strip() == kept(name), lines
