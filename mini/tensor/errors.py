"""Errors that say what was asked, what each input was and where it was made, and what would fit.

An input is known by the line where it was `made`: the handle (handle.py) builds on this file.
"""

from __future__ import annotations

import os
import reprlib
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from mini.engine.device_of import Mixed, place, shown
from mini.ir import graph
from mini.ir.uop import UOp
from mini.types import DTypeError, ShapeError
from runtime.base import DeviceError

if TYPE_CHECKING:
  from mini.tensor.handle import Handle

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def user_line() -> tuple[str, int]:
  """(file, line) of the first caller that is not part of mini."""
  frame = sys._getframe(2)
  while frame.f_code.co_filename.startswith(_HERE) and frame.f_back is not None:
    frame = frame.f_back
  return frame.f_code.co_filename, frame.f_lineno


def described(name: str, x: Any) -> str:
  """A line of an error: an input's name, type, shape and where it was made."""
  if not hasattr(x, "made"):
    return f"  {name}: {x!r}"
  return f"  {name}: {spelled(x)}   made at {x.made}"


def named(inputs: Sequence[Any]) -> dict[str, Any]:
  """Inputs as an error lists them: a, b, c, ..."""
  return dict(zip("abcdefgh", inputs))


def spelled(x: Handle) -> str:
  """f32[3,4]"""
  return f"{x.dtype.short}[{','.join(map(str, x.shape))}]"


def told(error: type[Exception], message: str, hint: str = "", **inputs: Any) -> Exception:
  """An `error`: the message, one line for each input, and what would fit."""
  lines = [message, *(described(name, x) for name, x in inputs.items())]
  return error("\n".join(lines + ([f"  {hint}"] if hint else [])))


def fail(error: type[Exception], message: str, hint: str = "", **inputs: Any) -> NoReturn:
  """Raise what is `told`."""
  raise told(error, message, hint, **inputs)


def function(what: str, f: Any) -> None:
  """TypeError where a function is asked for, and f is none."""
  if not callable(f):
    raise TypeError(f"{what}: {reprlib.repr(f)} is no function")


# fmt: off
SIGNS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
         "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
         "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
# fmt: on


def calls() -> Iterator[FrameType]:
  """The functions of mini that are running, from the caller outwards; the gate (argument_check.py) is none of them."""
  frame: FrameType | None = sys._getframe(1)
  while frame is not None and frame.f_code.co_filename.startswith(_HERE):
    if frame.f_code.co_name != "gated":
      yield frame
    frame = frame.f_back


def home_of(x: Handle) -> Any:
  """Where a tensor is."""
  return place(x._parts()[0]._uop)


def mixed(e: Mixed) -> NoReturn:
  """Raise the DeviceError of tensors on several devices that met in one operation:
  what was called, with which tensors."""
  found: tuple[str, dict[str, Handle]] = ("an operation", {})  # the outermost call that was given two of them
  for frame in calls():
    given = arguments(frame)
    if len({p for x in given.values() if (p := home_of(x))}) > 1:
      found = called(frame), given
  bare, tensors = found
  if bare.startswith("a "):
    tensors = named(list(tensors.values()))
  homes = {n: p for n, x in tensors.items() if (p := home_of(x))}
  home = next(iter(homes.values()), e.places[0])
  lines = [
    f"{bare}: its inputs are on {' and on '.join(dict.fromkeys(map(shown, (home, *homes.values(), *e.places))))}"
  ]
  for n, x in tensors.items():
    lines.append(f"  {n}: {spelled(x)} on {shown(homes.get(n, 'any device'))}   made at {x.made}")
  home = next((p for p in homes.values() if isinstance(p, tuple)), home)
  way = f'to("{home}")' if isinstance(home, str) else f"shard({home})"
  moved = [f"{n}.{way}" for n, p in homes.items() if p != home]
  if moved:
    lines.append(f"  {' and '.join(moved)} would fit")
  raise DeviceError("\n".join(lines)) from None


def refused(why: str) -> NoReturn:
  """Raise the ShapeError of what goes with no size that is known only at run time:
  what was called, with which tensors."""
  name = ""
  given: dict[str, Any] = {}
  for frame in calls():
    name, given = called(frame), arguments(frame)
  fail(ShapeError, f"{name}: {why}", **given)


def called(frame: FrameType) -> str:
  """What a running function is called: `sum`, or `a + b`, as one that is made of a row (operators.py) says itself."""
  if "what" in frame.f_code.co_freevars:
    return frame.f_locals["what"]
  name = frame.f_code.co_name
  bare = name.strip("_")
  sign = SIGNS.get(bare) or SIGNS.get(bare[1:]) if name.startswith("__") else None
  return f"a {sign} b" if sign else bare


def arguments(frame: FrameType) -> dict[str, Handle]:
  """The tensors that a function was called with, by name; those of a list by its name and a number."""
  code = frame.f_code
  count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
  found: dict[str, Handle] = {}
  for name in code.co_varnames[:count]:
    x: Any = frame.f_locals.get(name)
    name = "x" if name == "self" else name
    several = dict(enumerate(x)) if isinstance(x, (list, tuple)) else x if isinstance(x, dict) else {}
    found.update({f"{name}[{n}]": t for n, t in several.items() if hasattr(t, "made")})
    if hasattr(x, "made"):
      found[name] = x
  return found


def checked(node: UOp) -> None:
  """Every operation's result comes here: DeviceError, if its inputs are on several devices; DTypeError of a complex
  type, which no node has."""
  if node.dtype.kind == "c":
    raise DTypeError(f"no tensor is made in {node.dtype.name} here: Tensor.complex(real, imag) would fit")
  graph.shape(node)
  try:
    place(node)
  except Mixed as e:
    mixed(e)
