"""Compilers that do not optimize, which is most of their time: for tests of what many kernels compute, where others look
at the same kernels, or at kernels of the same kind, as users get them."""

from mini import Device
from mini.engine import realize
from runtime import compiler
from runtime.emulate import source

OPTIMIZED = compiler.BASE_FLAGS
MADE = {}  # what was compiled: by the flags, and the device or the table of programs


def unoptimized(flags):
  return ["-O0", *(flag for flag in flags if not flag.startswith("-O"))]


def compile_with(monkeypatch, flags):
  """Until the test ends, C is compiled with these flags, and what was compiled with others is not found: with
  optimization a product is fused with an addition, so two devices of one program would differ in a last bit."""
  if compiler.BASE_FLAGS != flags:
    for n in range(4):  # tests of several devices open these, and would find what this test compiles
      assert Device[f"CPU:{n}"]
    for d in Device.opened.values():
      monkeypatch.setattr(d, "functions", MADE.setdefault((*flags, d.name), {}))
    for table in ("_programs", "_invoked"):
      monkeypatch.setattr(realize, table, MADE.setdefault((*flags, table), {}))
    monkeypatch.setattr(compiler, "BASE_FLAGS", flags)


def compile_quickly(monkeypatch, device="CPU"):
  """Until the test ends: C, the C++ of emulated devices and, if that is the device, OpenCL."""
  assert Device[device]
  compile_with(monkeypatch, unoptimized(OPTIMIZED))
  monkeypatch.setattr(source, "FLAGS", unoptimized(source.FLAGS))
  if device == "CL":
    shim = Device["CL"].shim
    monkeypatch.setattr(shim, "options", f"{shim.options} -cl-opt-disable")
    monkeypatch.setattr(shim, "key", f"{shim.key}-cl-opt-disable\n")
