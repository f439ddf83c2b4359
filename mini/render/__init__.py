"""From kernels to source text, for every device."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mini.ir.uop import UOp

# device: (module, its Language); C's depends on the machine's vectors
LANGUAGES = {"CL": ("opencl", "OPENCL"), "CUDA": ("cuda", "CUDA"), "METAL": ("metal", "METAL")}
NAMES = {"CPU": "c", "CL": "opencl", "CUDA": "cuda", "METAL": "metal"}  # of languages, as text calls them


def language_for(dev: str, kernel: UOp, width: int) -> Any:
  """The Language of a kernel on a device; on a processor it has vectors of `width` elements,
  or as many as the recipe has."""
  if dev == "CPU" or (dev == "CL" and width):
    return import_module(f"mini.render.{NAMES[dev]}").fitting(kernel, width)
  module, name = LANGUAGES[dev]
  return getattr(import_module(f"mini.render.{module}"), name)


def render_for(dev: str, kernels: dict[str, UOp], width: int | None = None) -> str:
  """The source of kernels, by name, in the language of a device: CPU, CL, CUDA or METAL.

  width: elements of a processor's vectors, of which C has 8 where it is not said; OpenCL is for a GPU then, and with 0.
  RenderError where the language lacks a type or has too few parameters.
  """
  from mini.render import cstyle

  width = 8 * (dev == "CPU") if width is None else width
  made = [cstyle.Renderer(k, language_for(dev, k, width), name) for name, k in kernels.items()]
  prelude = max((r.lang.prelude for r in made), key=len, default="")  # that of vectors has the other in it
  return cstyle.link([(r.source(), r.helpers.items()) for r in made], prelude)
