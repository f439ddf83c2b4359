"""How functions become NumPy's: by name, with NumPy's signatures and errors, and `out=`.

A function here takes what it uses of NumPy's parameters. What it is not made for it says with `AtOnce`, and NumPy
computes that at once, of the values; so it does what needs an order of complex numbers, or their decompositions.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from mini.numpy.array import Lazy, asarray, stored
from mini.numpy.few import at_hand, limit, quietly, shares
from mini.numpy.host import at_once, ours
from mini.numpy.types import asked_again
from mini.tensor import Tensor
from mini.types import DTypeError

Kind = inspect.Parameter
FUNCTIONS: dict[str, Callable[..., Any]] = {}  # of the main namespace
LINALG: dict[str, Callable[..., Any]] = {}
FFT: dict[str, Callable[..., Any]] = {}


FACTORS = 4  # a function may make products of all pairs of elements
VIEWS = ("ravel", "reshape")  # which look at values that are there themselves
WRITES = ("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask")  # to their first argument


class AtOnce(Exception):
  """Of these arguments NumPy computes the function."""


def tensor(x: Any) -> Tensor:
  """Any operand as a tensor of its own type."""
  return x if isinstance(x, Tensor) else x._tensor if isinstance(x, Lazy) else asarray(x)._tensor


def publish(
  module: dict[str, Any], into: dict[str, Callable[..., Any]] = FUNCTIONS, room: Any = np, **others: Any
) -> None:
  """Make NumPy's functions of a module's that have NumPy's names (an underscore at the end does not count), and of
  `others`, in the table and in the module."""
  own = {n: f for n, f in module.items() if inspect.isfunction(f) and f.__module__ == module["__name__"]}
  for n, f in {**own, **others}.items():
    name = n.rstrip("_")
    if not n.startswith("_") and hasattr(room, name):
      module[n] = into[name] = _published(f, name, getattr(room, name))


def _published(f: Callable[..., Any], name: str, theirs: Callable[..., Any]) -> Callable[..., Any]:
  signature, taken = _signature(f, theirs)
  alike = _alike(inspect.signature(f), signature)
  has_out = isinstance(theirs, np.ufunc) or "out" in _parameters(theirs)
  # f's own parameters, as Python binds them
  is_own = taken is None and "out" not in signature.parameters

  @functools.wraps(f)
  def call(*args: Any, **kwargs: Any) -> Any:
    if (
      name not in VIEWS
      and "out" not in kwargs
      and (few := at_hand(*args, *kwargs.values(), most=limit() // FACTORS))
    ):
      try:
        found = quietly(theirs, *few[: len(args)], **dict(zip(kwargs, few[len(args) :])))
        if not shares(found, few):
          return ours(found)
      except Exception:  # noqa: BLE001, S110  what NumPy refuses is refused below, or is not NumPy's
        pass
    if name in WRITES and args and isinstance(args[0], np.ndarray):  # it is one of NumPy's that is written
      return at_once(theirs)(*args, **kwargs)
    try:
      out: Any = None
      numpys: Any = (args, {})
      own = numpys
      if is_own:
        numpys = own = args, kwargs
        if has_out and "out" in kwargs:
          numpys = own = args, {n: x for n, x in kwargs.items() if n != "out"}
          out = kwargs["out"]
          out = out[0] if type(out) is tuple and len(out) == 1 else out
      elif kwargs or len(args) > alike:  # to bind them takes a while
        out = kwargs.get("out") if has_out else None
        given = signature.bind(*args, **{n: x for n, x in kwargs.items() if n != "out" or not has_out})
        out = given.arguments.pop("out", out)
        out = out[0] if type(out) is tuple and len(out) == 1 else out
        numpys = given.args, given.kwargs
        own = numpys if taken is None else ((), _those(given.arguments, taken))
      try:
        result = f(*own[0], **own[1])
      except (AtOnce, DTypeError) as e:
        if isinstance(e, DTypeError) and not any(map(_is_complex, (*numpys[0], *numpys[1].values()))):
          raise
        result = at_once(theirs)(*numpys[0], **numpys[1])
      if out is None:
        return result
      if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        raise TypeError(f"{name}: the result is {result.dtype}, and out= is {out.dtype}")
      return stored(out, tensor(result))
    except Exception as e:  # noqa: BLE001  which one it is NumPy says
      asked_again(theirs, args, kwargs, e)

  call.__name__ = call.__qualname__ = name
  call.__doc__ = f.__doc__ or f"NumPy's `{name}`."
  call.__signature__ = signature  # type: ignore[attr-defined]
  return call


def _parameters(f: Any) -> Any:
  """What is known of its parameters; NumPy's functions in C do not all say."""
  try:
    return inspect.signature(f).parameters
  except (TypeError, ValueError):
    return ()


def _signature(f: Callable[..., Any], theirs: Any) -> tuple[inspect.Signature, frozenset[str] | None]:
  """NumPy's signature, with the parameters that only the standard has, and the names that f takes of it. f's own one
  (and None) where NumPy has none, as for functions in C, calls parameters otherwise, or takes any number of them."""
  own = inspect.signature(f)
  try:
    numpys = inspect.signature(theirs)
  except (TypeError, ValueError):
    return own, None
  many = {p.kind for s in (own, numpys) for p in s.parameters.values()} & {
    Kind.VAR_POSITIONAL,
    Kind.VAR_KEYWORD,
  }
  more = [p for n, p in own.parameters.items() if n not in numpys.parameters]
  if many or any(p.kind is not Kind.KEYWORD_ONLY for p in more):
    return own, None
  return numpys.replace(parameters=[*numpys.parameters.values(), *more]), frozenset(own.parameters)


def _alike(own: inspect.Signature, numpys: inspect.Signature) -> int:
  """As many arguments that have no names are the same parameters in both."""
  at_places = (Kind.POSITIONAL_ONLY, Kind.POSITIONAL_OR_KEYWORD)
  pairs = zip(own.parameters.values(), numpys.parameters.values())
  same = (p.name == q.name and p.kind in at_places and q.kind in at_places for p, q in pairs)
  return sum(itertools.takewhile(bool, same))


def _those(arguments: dict[str, Any], taken: frozenset[str]) -> dict[str, Any]:
  return {n: x for n, x in arguments.items() if n in taken and x is not np._NoValue}


def _is_complex(x: Any) -> bool:
  return (isinstance(x, Lazy) and x.dtype.kind == "c") or (
    isinstance(x, (list, tuple)) and any(map(_is_complex, x))
  )
