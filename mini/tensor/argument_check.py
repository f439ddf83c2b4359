"""What is said of an argument that is not of the kind that a method takes: text for a number, a number for a tensor.

Every public method goes through here, and nothing is looked at unless it fails: then its arguments are held against its
annotations, and the first that does not fit is named. What is of the right kind, and wrong all the same - a shape, a
type, a value - is for the method to say.
"""

from __future__ import annotations

import functools
import inspect
import reprlib
import sys
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

import numpy as np

from mini.ir.sizes import Variable
from mini.tensor.data import Number
from mini.tensor.errors import described, spelled, told
from mini.tensor.handle import Handle
from mini.types import ArgumentError, AxisError, DTypeError, MiniError, RangeError
from runtime.base import DeviceError


def _is_tensor(x: Any) -> bool:
  return isinstance(x, Handle)


def _is_operand(x: Any) -> bool:
  return isinstance(x, (Handle, *Number, Variable, np.ndarray))


def _is_number(x: Any) -> bool:
  return _is_operand(x) and all(n == 1 for n in getattr(x, "shape", ()))


def _is_integer(x: Any) -> bool:
  if isinstance(x, (Handle, np.ndarray)):
    return x.dtype.kind in "iu" and _is_number(x)
  return isinstance(x, Variable) or hasattr(x, "__index__")


def _are(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
  """Does each of a sequence fit?"""
  return lambda x: isinstance(x, (tuple, list, range)) and all(map(fits, x))


def _is_sizes(x: Any) -> bool:
  return _is_integer(x) or _are(lambda n: n is None or _is_integer(n))(x)  # None: as it is


def _is_axes(x: Any) -> bool:
  return x is None or _is_sizes(x)


def _is_text(x: Any) -> bool:
  return isinstance(x, str)


# fmt: off
# what an annotation asks for, in words, and whether something is that; of other annotations nothing is said
KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
  "Tensor":           ("a tensor", _is_tensor),
  "Handle":           ("a tensor", _is_tensor),
  "Operand":          ("a tensor or a number", _is_operand),
  "float":            ("a number", _is_number),
  "Scalar":           ("a number", _is_number),
  "int":              ("an integer", _is_integer),
  "str":              ("a string", _is_text),
  "Sizes":            ("an integer or a sequence of them", _is_sizes),
  "Axes":             ("an axis or a sequence of them", _is_axes),
  "Sequence[int]":    ("a sequence of integers", _are(_is_integer)),
  "Sequence[Sequence[int]]": ("a sequence of sequences of integers", _are(_are(_is_integer))),
  "Spans":            ("a pair of integers for each axis", _are(lambda x: x is None or _are(_is_integer)(x))),
  "Sequence[float]":  ("a sequence of numbers", _are(_is_number)),
  "Sequence[str]":    ("a sequence of strings", _are(_is_text)),
  "Sequence[Tensor]": ("a sequence of tensors", _are(_is_tensor)),
  "tuple[Any, ...]":  ("a sequence of indices", _are(lambda x: True)),
  "Callable":         ("a function", callable),
  "None":             ("None", lambda x: x is None),
}
# fmt: on


def kinds_of(p: inspect.Parameter) -> list[tuple[str, Callable[[Any], bool]]]:
  """What a parameter takes, by its annotation; nothing where that says too little."""
  annotation = "Tensor" if p.name == "self" and p.annotation is p.empty else str(p.annotation)
  found = [KINDS.get(part) for part in annotation.split(" | ")]
  return [kind for kind in found if kind] if all(found) else []


def shown(x: Any) -> str:
  """What was given, in short; of tensors, no values are asked for."""
  if isinstance(x, (tuple, list)):
    return f"[{', '.join(map(shown, x[:3]))}{', ...' if len(x) > 3 else ''}]"
  return spelled(x) if _is_tensor(x) else reprlib.repr(x)


def given_to(p: inspect.Parameter, given: dict[str, Any]) -> list[tuple[str, Any]]:
  """What was given to a parameter, by name: several to one with a star, nothing where it has its default."""
  if p.name not in given or given[p.name] is p.default:
    return []
  if p.kind is p.VAR_KEYWORD:
    return [*given[p.name].items()]
  if p.kind is p.VAR_POSITIONAL:
    return [(p.name, x) for x in given[p.name]]
  return [("x" if p.name == "self" else p.name, given[p.name])]


def misfit(
  name: str, method: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> Exception | None:
  """The error of the first argument that is not of the kind that its annotation says; None if all are."""
  signature = inspect.signature(method)
  try:
    given = signature.bind(*args, **options).arguments
  except TypeError:  # too many, too few, or of another name: Python has said so
    return None
  for p in signature.parameters.values():
    kinds = kinds_of(p)
    for what, x in given_to(p, given):
      if kinds and not any(fits(x) for _, fits in kinds):
        words = " or ".join(words for words, _ in kinds if words != "None")
        tensors = {"x" if n == "self" else n: t for n, t in given.items() if _is_tensor(t)}
        return told(DTypeError, f"{name}: {what} is {shown(x)}, not {words}", **tensors)
  return None


CLASSES = (
  ((TypeError, AttributeError), DTypeError),
  (IndexError, AxisError),
  (OverflowError, RangeError),
  (Exception, ArgumentError),
)
# an assertion is a fault of ours, whatever the arguments are
PASSED = (AssertionError, MiniError, DeviceError, MemoryError, NotImplementedError, StopIteration, Warning)
LIBRARY = sys.stdlib_module_names | {"mini", "runtime", "numpy"}


def unexpected(name: str, args: tuple[Any, ...], options: dict[str, Any], e: Exception) -> Exception | None:
  """What is said of arguments of the right kinds at which a method fails from inside: which they were, and how.
  None of an error that is meant for the user: ours, of the call itself, or of a function of the user's."""
  module, frame = type(e).__module__, e.__traceback__ and e.__traceback__.tb_next
  if isinstance(e, PASSED) or module.partition(".")[0] not in ("builtins", "numpy") or frame is None:
    return None
  while frame is not None:
    if frame.tb_frame.f_globals.get("__name__", "").partition(".")[0] not in LIBRARY:
      return None
    frame = frame.tb_next
  given = [*zip("abcdefgh", args), *options.items()]
  lines = [described(n, x) if _is_tensor(x) else f"  {n}: {shown(x)}" for n, x in given]
  kind = next(ours for theirs, ours in CLASSES if isinstance(e, theirs))
  error = kind("\n".join([f"{name}: it does not take these arguments: {e or type(e).__name__}", *lines]))
  error.__cause__ = e
  return error


def gate(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
  """The method, which says what is wrong with its arguments where it fails."""
  find, otherwise, refusal = misfit, unexpected, DeviceError  # seen from the globals of the method

  def takes_keepdim() -> bool:
    return "keepdim" in inspect.signature(method).parameters

  def gated(*args: Any, **options: Any) -> Any:
    try:
      return method(*args, **options)
    except Exception as e:
      if "keepdims" in options and takes_keepdim():  # NumPy's name, which PyTorch takes, too
        options["keepdim"] = options.pop("keepdims")
        return gated(*args, **options)
      wrong = find(name, method, args, options)
      if wrong is None and isinstance(e, refusal):  # its text says it all: where it was found helps nobody
        raise e.with_traceback(None) from None
      wrong = wrong or otherwise(name, args, options, e)
      if wrong is None:
        raise
      raise wrong from wrong.__cause__

  # with the globals of the method, by which doctest knows whose it is
  own = FunctionType(gated.__code__, method.__globals__, name, None, gated.__closure__)
  return functools.update_wrapper(own, method)


def guard_functions(names: Iterable[str], module: dict[str, Any]) -> None:
  """Put the public functions of a module behind the gate, given its globals."""
  for name in names:
    if inspect.isfunction(module[name]):
      module[name] = gate(name, module[name])


def guard(family: type) -> None:
  """Put the public methods of a class behind the gate."""
  for name, method in list(vars(family).items()):
    if name.startswith("_"):
      continue
    if isinstance(method, staticmethod):
      setattr(family, name, staticmethod(gate(name, method.__func__)))
    elif inspect.isfunction(method):
      setattr(family, name, gate(name, method))
