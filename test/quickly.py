"""Compilers that do not optimize, which is most of their time: for tests of what many kernels compute, where others look
at the same kernels, or at kernels of the same kind, as users get them."""

from mini import Device
from runtime import compiler
from runtime.emulate import source

OPTIMIZED = compiler.BASE_FLAGS


def unoptimized(flags):
  return ["-O0", *(flag for flag in flags if not flag.startswith("-O"))]


def compile_quickly(monkeypatch, device="CPU"):
  """Until the test ends: C, the C++ of emulated devices and, if that is the device, OpenCL."""
  monkeypatch.setattr(compiler, "BASE_FLAGS", unoptimized(OPTIMIZED))
  monkeypatch.setattr(source, "FLAGS", unoptimized(source.FLAGS))
  if device == "CL":
    shim = Device["CL"].shim
    monkeypatch.setattr(shim, "options", f"{shim.options} -cl-opt-disable")
    monkeypatch.setattr(shim, "key", f"{shim.key}-cl-opt-disable\n")
