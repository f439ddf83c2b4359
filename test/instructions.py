"""What a kernel was compiled to, for tests of speed that need no clock: its instructions, and its innermost loops.

`instructions(fn, *args)` are those of each kernel that a function of tensors launches. They are read with objdump, on
x86 alone: elsewhere the test is skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from typing import NamedTuple

import pytest

from mini import Device, jit
from mini.render.cstyle import link

LINE = re.compile(r"^\s*([0-9a-f]+):\s+(?:bnd |rep\w* |lock )?(\S+)\s*(.*)$")
TARGET = re.compile(r"^([0-9a-f]+) <")


class Instruction(NamedTuple):
  address: int
  name: str
  operands: str

  @property
  def is_fma(self) -> bool:
    return self.name.startswith(("vfmadd", "vfmsub", "vfnmadd", "vfnmsub"))

  @property
  def is_vector(self) -> bool:
    """Of floats, on whole registers: ...ps, ...pd; not ...ss, ...sd."""
    return self.name.endswith(("ps", "pd"))


class Code(list[Instruction]):
  """The instructions of one function."""

  def loops(self) -> list[Code]:
    """Those that have no loop inside, each from where it jumps back to."""
    jumps = [(int(m[1], 16), i.address) for i in self if i.name[0] == "j" and (m := TARGET.match(i.operands))]
    back = [(first, last) for first, last in jumps if first <= last]
    inner = [a for a in back if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in back)]
    return [Code(i for i in self if first <= i.address <= last) for first, last in inner]

  def fmas(self, vector: bool = True) -> int:
    return sum(i.is_fma and i.is_vector == vector for i in self)

  def calls(self) -> list[str]:
    return [i.operands for i in self if i.name.startswith("call")]


def instructions(fn, *args) -> dict[str, Code]:
  """{kernel: its code}, as it is compiled for this machine."""
  if not shutil.which("objdump") or os.uname().machine != "x86_64" or Device.DEFAULT != "CPU":
    pytest.skip("this needs objdump and an x86 CPU")
  f = jit(fn)
  f(*args)
  ((routine,),) = f.captured.values()
  shim, found = Device["CPU"].shim, {}
  for c in dict.fromkeys(c.code for c in routine.program.compiled):
    source = link([(c.source, c.helpers)], c.prelude)
    found[c.name] = disassembled(shim.compiler.start(source).finish(), c.name)
  return found


def disassembled(library: bytes, name: str) -> Code:
  with tempfile.NamedTemporaryFile(suffix=".so") as f:
    f.write(library)
    f.flush()
    command = ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={name}", f.name]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
  lines = [m for m in map(LINE.match, text.splitlines()) if m]
  return Code(Instruction(int(m[1], 16), m[2], m[3]) for m in lines)
