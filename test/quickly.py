"""Compilers that do not optimize, which is most of their time: for tests of what many kernels compute, where others look
at the same kernels, or at kernels of the same kind, as users get them."""

from mini import Device
from runtime import compiler
from runtime.emulate import source


def compile_quickly(monkeypatch, device="CPU"):
  """Until the test ends: C, the C++ of emulated devices and, if that is the device, OpenCL."""
  for module, name in ((compiler, "BASE_FLAGS"), (source, "FLAGS")):
    plain = [flag for flag in getattr(module, name) if not flag.startswith("-O")]
    monkeypatch.setattr(module, name, ["-O0", *plain])
  if device == "CL":
    shim = Device["CL"].shim
    monkeypatch.setattr(shim, "options", f"{shim.options} -cl-opt-disable")
    monkeypatch.setattr(shim, "key", f"{shim.key}-cl-opt-disable\n")
