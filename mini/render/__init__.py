"""From kernels to source text, for every device."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mini.ir.uop import UOp

# device: (module, its Language); C's depends on the machine's vectors
LANGUAGES = {"CL": ("opencl", "OPENCL"), "CUDA": ("cuda", "CUDA"), "METAL": ("metal", "METAL")}
NAMES = {"CPU": "c", "CL": "opencl", "CUDA": "cuda", "METAL": "metal"}  # of languages, as text calls them


def language_for(dev: str, kernel: UOp, width: int) -> Any:
  """The Language of a kernel on a device; on the CPU it has vectors of `width` elements,
  or as many as the recipe has."""
  if dev == "CPU":
    from mini.render.c import fitting

    return fitting(kernel, width)
  module, name = LANGUAGES[dev]
  return getattr(import_module(f"mini.render.{module}"), name)


def render_for(dev: str, kernels: dict[str, UOp], width: int = 8) -> str:
  """The source of kernels, by name, in the language of a device: CPU, CL, CUDA or METAL.

  width: elements of the CPU's vectors. RenderError where the language lacks a type or has too few parameters.
  """
  if dev == "CPU":
    from mini.render.c import render

    return render(kernels, width)
  from mini.render import cstyle

  module, name = LANGUAGES[dev]
  return cstyle.render(kernels, getattr(import_module(f"mini.render.{module}"), name))
