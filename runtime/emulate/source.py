"""A rendered source -> C++ for this machine: what is rewritten in it, the launchers that are appended, and compiling.

The text stays as it is, line by line, but for what no macro can turn into C++:

  CUDA    asm("mma.sync..." : "+f"(d), ... : "r"(a), ...);  ->  ptx::mma_sync...(d, ..., a, ...);
  Metal   #include <metal_stdlib>                           ->  nothing: metal.h is there already
  OpenCL  (float4)(a, b, c, d)                              ->  float4(a, b, c, d)
  all     the declaration of an array in shared memory      ->  the same, static, and filled with NaNs for each group
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from typing import NamedTuple

from runtime import host
from runtime.base import Cache, DeviceError
from runtime.compiler import NATIVE, Build, Compiler, find

NAMES = {"CUDA": "CUDA", "METAL": "Metal", "CL": "OpenCL"}
HEADERS = {"CUDA": "cuda.h", "METAL": "metal.h", "CL": "opencl.h"}
MOST_THREADS = 1024  # of a group
FOLDER = os.path.dirname(os.path.abspath(__file__))
# Sums of products may round once, as on devices. No runtime of C++ is needed: the C compiler's command links.
FLAGS = ["-O1", "-std=gnu++17", "-w", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti",
         "-fwrapv", "-fno-strict-aliasing", "-fno-math-errno", "-ffp-contract=fast", "-fsigned-char"]  # fmt: skip
if sys.platform != "darwin":  # so that a kernel called `index` is not the C library's
  FLAGS.append("-Wl,-Bsymbolic")
# The hooks of the sanitizers are in check.h: their own runtimes are left out of the link.
CHECK_FLAGS = ["-DEMULATE_CHECK", "-fsanitize=thread,bounds,alignment", "-nodefaultlibs"]
LIBRARIES = ["-lm"]
CHECK_LIBRARIES = ["-lm", "-lc", "-lgcc"]

# name, parameters, and the threads that it is declared for
KERNEL = {
  "CUDA": r"__global__\s+void\s+(?:__launch_bounds__\((?P<threads>\d+)[^)]*\)\s*)?(?P<name>\w+)",
  "METAL": r"\bkernel\s+void\s+(?P<name>\w+)(?P<threads>)",
  "CL": r"__kernel\s+(?:__attribute__\s*\(\(\s*reqd_work_group_size\s*\(\s*(?P<threads>\d+).*?\)\s*\)\)\s*)?"
  r"void\s+(?P<name>\w+)",
}
PARAMETERS = r"\s*\((?P<parameters>.*?)\)\s*\{"
ATTRIBUTE = re.compile(r"\[\[\s*(\w+)\s*(?:\(\s*\d+\s*\))?\s*\]\]")
ALIGNED = r"__attribute__\s*\(\(.*?\)\)|__align__\s*\(\d+\)"
SHARED = re.compile(
  rf"\b(?:__shared__|threadgroup|__local)\b(?:[^;{{}}=*()]|{ALIGNED})*?"  # no cast, and no pointer
  rf"\b(\w+)\s*(?:\[[^];]*\]\s*)+(?:{ALIGNED})?\s*;"
)
INCLUDE = re.compile(r"^#include <metal_\w+>$", re.MULTILINE)
ASM = re.compile(r'\basm\b\s*(?:volatile\s*)?\(\s*"\s*([\w.]+)[^"]*"(?:"[^"]*"|[^";])*\)\s*;')
OPERAND = re.compile(r'"[=+]?\w"\s*\(((?:[^()]|\([^()]*\))*)\)')
VECTOR = re.compile(r"\(((?:u?(?:char|short|int|long)|float|double)(?:2|4|8|16))\)\s*\(")


class Parameter(NamedTuple):
  """One parameter of a kernel."""

  name: str
  type: str  # "const float *"
  attribute: str  # Metal's, "" in the other languages: what is no buffer is a position, and no argument

  @property
  def is_argument(self) -> bool:
    return self.attribute in ("", "buffer")

  @property
  def is_pointer(self) -> bool:
    return "*" in self.type

  @property
  def has_offset(self) -> bool:
    """Is it OpenCL's X_, whose offset in bytes is the next parameter, X_at?"""
    return self.is_pointer and self.name.endswith("_")


class Kernel(NamedTuple):
  """What the head of a kernel says."""

  parameters: list[Parameter]
  least: int  # threads of a group
  most: int


def kernels(source: str, language: str) -> dict[str, Kernel]:
  """Those of a source, by name."""
  found = {}
  for m in re.finditer(KERNEL[language] + PARAMETERS, source, re.DOTALL):
    parameters = [_parameter(p) for p in m["parameters"].split(",") if p.strip()]
    most = int(m["threads"] or MOST_THREADS)
    # OpenCL's is the number of threads, CUDA's the largest
    found[m["name"]] = Kernel(parameters, most if language == "CL" and m["threads"] else 1, most)
  return found


def _parameter(text: str) -> Parameter:
  attribute = ATTRIBUTE.search(text)
  text = ATTRIBUTE.sub("", text).strip()
  name = re.search(r"\w+$", text)
  if not name:
    raise DeviceError(f"a kernel's parameter has no name: {text}")
  return Parameter(name[0], text[: name.start()].strip(), attribute[1] if attribute else "")


def rewrite(source: str, language: str) -> str:
  """The source as C++, with a launcher for each kernel."""
  text = SHARED.sub(r"static \g<0> EMULATE_SHARED(\1)", source)
  if language == "CUDA":
    text = ASM.sub(_call, text)
  if language == "METAL":
    text = INCLUDE.sub("", text)
  if language == "CL":
    text = VECTOR.sub(r"\1(", text)
  return "\n".join([text, *(_launcher(name, k) for name, k in kernels(source, language).items()), ""])


def _call(m: re.Match[str]) -> str:
  """An instruction as a call; on as many lines, so that errors name the right one."""
  call = f"ptx::{m[1].replace('.', '_')}({', '.join(OPERAND.findall(m[0]))});"
  return call + "\n" * (m[0].count("\n") - call.count("\n"))


def _launcher(name: str, kernel: Kernel) -> str:
  """The line that makes a kernel known (core.h)."""
  values: list[str] = []
  records: list[str] = []
  for p in kernel.parameters:
    if p.is_argument:
      element = f"sizeof(*({p.type})0)" if p.is_pointer else "0"
      values.append(f"*({p.type} *)args[{len(records)}]")
      called = p.name[:-1] if p.has_offset else p.name
      records.append(f'{{"{called}", sizeof({p.type}), alignof({p.type}), {element}}}')
    else:
      values.append(f"emulate::position_{p.attribute}()")
  table = ", ".join(records) or "{}"
  call = f"{name}({', '.join(values)})"
  return f"EMULATE_KERNEL({name}, {call}, {kernel.least}, {kernel.most}, {len(records)}, {table})"


# ---------------------------------------------------------------- compiling


def compiler(cc: str = "", kept: Cache | None = None) -> Compiler:
  """A C++ compiler: that of the command `cc`, or the first of c++, g++, clang++ and the ziglang wheel that works."""
  return find(cc, kept, language="c++")


def key(compiler: Compiler, source: str, language: str, check: bool) -> str:
  """What decides the bytes of the library."""
  return "\n".join(["emulated", compiler.key(source), *_flags(check), _headers(language)])


@cache
def _headers(language: str) -> str:
  names = ("core.h", "types.h", "check.h", HEADERS[language])
  return "".join(host.read(os.path.join(FOLDER, name)) for name in names)


def start(compiler: Compiler, source: str, language: str, check: bool) -> Build:
  """Begins to compile; `finish()` gives the bytes of a shared library."""
  compiler.check()
  include = ["-include", os.path.join(FOLDER, HEADERS[language])]
  libraries = CHECK_LIBRARIES if check else LIBRARIES
  command = [*compiler.command, *_flags(check), *include, "-x", "c++", "-", "-x", "none", *libraries]
  return Build(command, rewrite(source, language))


def _flags(check: bool) -> list[str]:
  return [*FLAGS, NATIVE, *(CHECK_FLAGS if check else [])]


def build(source: str, language: str, cc: str = "", check: bool = False) -> bytes:
  """The shared library of a source, in bytes. DeviceError with the compiler's words."""
  return start(compiler(cc), source, language, check).finish()
