"""mini: a small, fast tensor library whose every stage is text that can be read."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mini.config import config as _config
from mini.ir.sizes import Variable
from mini.stats import stats
from mini.tensor import Tensor
from mini.tensor.autograd import checkpoint, custom_gradient, enable_grad, grad, no_grad, value_and_grad
from mini.types import DTypeError, MiniError, ShapeError, dtypes

__version__ = "0.1.0"
evaluate = Tensor.realize  # evaluate(a, b, c): now and together, what they share once

_LATER = {"visualize": ("mini.drawing", "visualize"), "inspect": ("mini.drawing", "inspect"),
          "nn": ("mini.nn", None), "autograd": ("mini.autograd", None),
          "special": ("mini.special", None), "distributions": ("mini.distributions", None),
          "signal": ("mini.signal", None), "fft": ("mini.fft", None),
          "linalg": ("mini.tensor.linalg", None), "numpy": ("mini.numpy", None),
          "jit": ("mini.jitted", "jit"), "TinyJit": ("mini.jitted", "jit"),
          "Device": ("mini.engine.device", "Device"), "device": ("mini.tensor.data", "DeviceName"),
          "Generator": ("mini.tensor.random", "Generator"), "Size": ("mini.types", "Size"),
          "set_default_dtype": ("mini.types", "set_default_dtype"),
          "get_default_dtype": ("mini.types", "get_default_dtype"), "Context": ("mini.config", "Context"),
          "recipes": ("mini.config", "recipes"),
          "compile": ("mini.compiled", "compile"), "parse": ("mini.compiled", "parse"),
          "rewrite": ("mini.ir.rules", "rewrite"), "rule": ("mini.extend.rules", "rule"),
          "block": ("mini.tensor.einsum", "block"), "einsum": ("mini.tensor.einsum", "einsum"),
          "optimize": ("mini.nn.optimize", "optimize"),
          "kernel": ("mini.extend.kernel", "kernel"), "op": ("mini.extend.named", "op"),
          "walk": ("mini.extend.walk", "walk"),
          "wrap_as_operation": ("mini.extend.host", "wrap_as_operation"),
          "Unknown": ("mini.lazy_shapes", "Unknown"),
          "Dim": ("mini.named_axes", "Dim"), "compose": ("mini.named_axes", "compose"),
          "autocast": ("mini.tensor.autocast", "autocast"), "quantize": ("mini.quantization", "quantize"),
          **{name: ("mini.tensor.transforms", name)
             for name in ("chain_rule", "gradient", "hessian", "jacobian", "jvp", "vjp", "vmap")}}  # fmt: skip

if TYPE_CHECKING:  # the same names, for editors
  from mini import autograd, distributions, fft, nn, numpy, signal, special
  from mini.compiled import compile, parse
  from mini.config import Context, recipes
  from mini.drawing import inspect, visualize
  from mini.engine.device import Device
  from mini.extend.host import wrap_as_operation
  from mini.extend.kernel import kernel
  from mini.extend.named import op
  from mini.extend.rules import rule
  from mini.extend.walk import walk
  from mini.ir.rules import rewrite
  from mini.jitted import jit
  from mini.jitted import jit as TinyJit
  from mini.lazy_shapes import Unknown
  from mini.named_axes import Dim, compose
  from mini.nn.optimize import optimize
  from mini.quantization import quantize
  from mini.tensor import linalg
  from mini.tensor.autocast import autocast
  from mini.tensor.data import DeviceName as device
  from mini.tensor.einsum import block, einsum
  from mini.tensor.random import Generator
  from mini.tensor.transforms import chain_rule, gradient, hessian, jacobian, jvp, vjp, vmap
  from mini.types import Size, get_default_dtype, set_default_dtype
else:

  def __getattr__(name: str) -> Any:
    """What is imported when it is first asked for."""
    if name not in _LATER:
      raise AttributeError(f"mini has no {name!r}", name=name, obj=sys.modules[__name__])
    module, attribute = _LATER[name]
    found = import_module(module)
    globals()[name] = found if attribute is None else getattr(found, attribute)
    return globals()[name]


def __dir__() -> list[str]:
  return [*globals(), *_LATER]


__all__ = ["DTypeError", "MiniError", "ShapeError", "Tensor", "Variable", "checkpoint", "custom_gradient", "dtypes",
           "enable_grad", "evaluate", "grad", "no_grad", "stats", "value_and_grad", *_LATER]  # fmt: skip

if _config.PROFILE:
  import_module("mini.engine.profile").start()
