"""@jit: a function of tensors, captured once for each shape of its arguments, and then run as one routine.

Here arguments become tensors, and a capture is looked up by what they are. capture.py traces the function,
compiled_function.py runs what came of it.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mini.capture import JitError, memory_of, moved_strides
from mini.compiled_function import Routine
from mini.config import config, settings_here
from mini.engine.device import Device
from mini.engine.sharded import layout
from mini.fast_call import Direct
from mini.gradient_rules import gradient_inputs
from mini.ir.rules import rules_here, users_here
from mini.ir.sizes import Variable
from mini.tensor import Tensor
from mini.tensor.autograd import holds_tensor, mapped, tensors_of
from mini.tensor.errors import function
from mini.tensor.handle import needs
from mini.tensor.trace import local
from mini.types import MiniError, dtypes

CAPTURES = 8  # of one kind of arguments: with gradients and without, in one flat buffer or in several


class Latest(NamedTuple):
  """What a call of plain arguments ran, under these settings and rules."""

  routine: Any
  direct: Direct | None  # where that is all that the routine does
  tensors_alone: bool  # are the arguments?
  settings: Any
  rules: Any


NOTHING_YET = Latest(None, None, True, None, None)


def jit(fn: Callable | None = None, *, most: int | None = None) -> Callable:
  """Capture a function of tensors - part of a training step, or all of it - as one routine.

  Arguments and results are tensors, and nested lists, tuples and dicts of them. A Python number or a NumPy array given
  as an argument is a tensor inside, so new values compile nothing; any other value is part of what a capture is looked
  up by, and so are `model.eval()`, a module's hooks, and modes such as no_grad. What else the function reaches by
  closure is a constant of the capture if it is a Python value; tensors (parameters, optimizer state, the random
  generator) are read anew, and updated where the function assigns to them: in place, unless somebody still holds the
  old value. Results of earlier calls are never overwritten, but for those that are arguments, tensors from outside, or
  views of them: they change with these, as they do without @jit.

  `realize()` inside does nothing; asking for a value inside (`item()`, `numpy()`, `if tensor:`) is a JitError. So are
  an argument that shares memory with what the function updates, and a list or dict of the arguments that it changes.
  Gradients are taken inside, or pass through a call, into arguments and into the parameters that it reaches:
  `forward = jit(model)` trains as the model does. What is passed back is computed in a second captured call, which
  computes anew what it needs of the first. A result has no graph where the function takes gradients or updates
  parameters, as a training step does, where it updates what it would be computed from again, such as a cache, or an
  argument with what has a graph, and on several devices. Of arguments that were computed, such a function just runs.
  most: of captures that are kept, the newest; all of them if None.

  >>> w = Tensor([1.0, 2.0])
  >>> @jit
  ... def step(x, lr):
  ...   w.assign(w - lr * x)
  ...   return (w * x).sum()
  >>> step(Tensor([1.0, 1.0]), 0.5).item(), step(Tensor([1.0, 1.0]), 1.0).item()
  (2.0, 0.0)
  """
  if fn is None:
    return functools.partial(jit, most=most)
  function("jit", fn)
  captured: dict[Any, list[Routine]] = {}
  latest: dict[tuple, Latest] = {}  # by `plain` arguments
  refused: set[Any] = set()  # kinds of arguments of which only leaves can be captured

  @functools.wraps(fn)
  def run(*args: Any, **kwargs: Any) -> Any:
    if local.current is not None or local.samples is not None:
      return fn(*args, **kwargs)
    flat: list[Any] = []
    key = plain((*args, *kwargs.values()) if kwargs else args, flat)
    if key is not None:
      key = (*key, *kwargs) if kwargs else key
      with _lock:
        known = latest.get(key, NOTHING_YET)
        if known.settings is settings_here() and known.rules is users_here():
          ordered = flat if known.tensors_alone else in_their_order(flat)
          if known.direct is not None:
            return known.direct(ordered)
          found = known.routine.find(ordered)
          if known.routine.fits(ordered, found):
            return known.routine(ordered, found)
    return looked_up(args, kwargs, key, flat)

  def looked_up(args: tuple, kwargs: dict, key: tuple | None, flat: list[Any]) -> Any:
    """A call of which more must be asked, or the first of its kind."""
    found: dict[Tensor, int] = {}
    mapped(lambda t: found.setdefault(t, len(found)), (args, kwargs))
    computed = [t for t in found if needs(t._uop) and not t._is_own_tag()]
    through = computed if local.gradients else []
    if not all(map(is_recorded, through)):
      return fn(*args, **kwargs)
    devices = next((t.device for t in found), Device.DEFAULT)
    given = len(found)
    tree = with_numbers((args, kwargs), found, devices, {})
    tensors = list(found)
    with _lock:
      if tensors:
        tensors[0].realize(*tensors[1:])
      kinds = tuple((t.shape, t.dtype, t.requires_grad, placed(t), moved_strides(t)) for t in tensors)
      kind = signature(tree, found), kinds, modes(), devices
      if through and kind in refused:
        return fn(*args, **kwargs)
      routines = captured.setdefault(kind, [])
      routine = next((r for r in routines if r.fits(tensors, r.find(tensors))), None)
      if routine is None:
        numbers = {t for t in tensors[given:] if not t.shape}
        try:
          routine = Routine(fn, tree, tensors, numbers, first(devices))
        except MiniError:
          if not through:
            raise
          refused.add(kind)  # as an update in place of what was computed
          return fn(*args, **kwargs)
        routines.insert(0, routine)
        del routines[CAPTURES:]
        if most is not None and len(captured) > most:
          captured.pop(next(iter(captured)))
          latest.clear()
      changed = {tensors[at] for at in routine.changed_arguments}
      if (through and routine.pullback is None) or not changed.isdisjoint(computed):
        return fn(*args, **kwargs)
      if key is not None:
        leaves = any(t.requires_grad for t in tensors)
        direct = None if config.watched or leaves else Direct.of(routine)
        alone = all(type(t) is Tensor for t in flat)
        latest[key] = Latest(routine, direct, alone, settings_here(), users_here())
      return routine(tensors, routine.find(tensors))

  run.captured = captured  # type: ignore[attr-defined]
  return run


TinyJit = jit
_lock = threading.RLock()
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def modes() -> tuple:
  """What a capture depends on, besides arguments and closures."""
  defaults = dtypes.default_float, dtypes.default_int
  return config.DEV, config.code, local.gradients, local.low, Tensor.training, defaults, rules_here()


# ---------------------------------------------------------------- arguments


INT64 = -(2**63), 2**63 - 1  # an int beyond these has another type
MOST_PARTS = 1 << 16  # of arguments: a list that is in itself has no end
_kinds: dict[tuple, object] = {}


def plain(args: tuple, flat: list[Any]) -> tuple | None:
  """What a capture is looked up by where every argument, and what lists, tuples and dicts hold, is a tensor that is in
  memory and of which nothing else matters, an array or a number, all of which join `flat`; None where more must be
  asked."""
  found: list[Any] = [local.gradients, local.low, Tensor.training, dtypes.default_float, dtypes.default_int]
  todo = [*reversed(args)]
  while todo:
    t = todo.pop()
    if type(t) is Tensor:
      is_leaf = t._is_own_tag()
      u = t._uop.src[0] if is_leaf else t._uop
      kind = u.memo.get("kind")
      if kind is None:
        if u.op != "buffer" or not isinstance(u.arg[0].device, str):
          return None
        kind = u.memo["kind"] = _kinds.setdefault((u.arg[1], u.dtype, u.arg[0].device), object())
      if is_leaf:
        kind = kind, True
      if t._grad is not None or t._trace is not None:
        return None
      if t._base is not None or t._strides is not None:
        kind = kind, moved_strides(t)
    elif type(t) is float or (type(t) is int and INT64[0] <= t <= INT64[1]):
      kind = type(t)
    elif type(t) in (list, tuple, dict):
      if len(found) > MOST_PARTS or (type(t) is dict and not all(type(k) is str for k in t)):
        return None
      found.append((dict, *t) if type(t) is dict else (type(t), len(t)))
      todo += reversed(t.values() if type(t) is dict else t)
      continue
    elif t is None or type(t) in (bool, str):
      found.append((type(t), t))
      continue
    elif type(t) is Variable and t.value is not None and t.value.op == "const":
      kind = replace(t, value=None)
      if any(type(k) is Variable and replace(k, times=t.times, plus=t.plus) == kind for k in found):
        return None  # n and n + 1: they come as one tensor
    elif type(t) is np.ndarray:
      kind = (t.shape, t.dtype)
    elif hasattr(type(t), "_leaf") and t._leaf is not None:  # an array of mini.numpy
      found.append(type(t))
      todo.append(t._leaf)
      continue
    else:
      return None
    found.append(kind)
    flat.append(t)
  return tuple(found) if len({*map(id, flat)}) == len(flat) else None


def in_their_order(args: Sequence[Any]) -> Sequence[Tensor]:
  """The tensors among plain arguments, and then the arrays and numbers as tensors."""
  tensors = [t for t in args if type(t) is Tensor]
  device = tensors[0].device if tensors else Device.DEFAULT
  others = (as_tensor(x, device) for x in args if type(x) is not Tensor)
  return [*tensors, *(part for t in others for part in t._parts())]


def first(devices: Any) -> str:
  return devices if isinstance(devices, str) else devices[0]


def as_tensor(x: Any, device: str) -> Tensor:
  """A number, an array, or the value of a Variable."""
  return Tensor(np.array(x.value.arg, np.int32) if type(x) is Variable else x, device=device)


def with_numbers(tree: Any, found: dict[Tensor, int], device: Any, sizes: dict[Variable, Tensor]) -> Any:
  """The arguments with numbers, arrays and values of Variables as tensors, which join `found`; arrays are whole on each
  of several devices. sizes: the values so far, one for each Variable and value."""
  if isinstance(tree, dict):
    return {k: with_numbers(v, found, device, sizes) for k, v in tree.items()}
  if isinstance(tree, (list, tuple)):
    items = [with_numbers(v, found, device, sizes) for v in tree]
    return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
  if type(tree) is Variable and tree.value is not None:
    same = replace(tree, times=1, plus=0)
    if same not in sizes:
      sizes[same] = as_tensor(tree, first(device))
      found[sizes[same]] = len(found)
    return replace(tree, value=sizes[same])
  if isinstance(tree, (int, float, complex, np.generic, np.ndarray)) and not isinstance(tree, bool):
    t = as_tensor(tree, device if np.ndim(tree) else first(device))
    for part in t._parts():
      found[part] = len(found)
    return t
  return tree


def signature(tree: Any, number: dict[Tensor, int]) -> Hashable:
  """What of the arguments a capture depends on, besides the shapes and types of tensors."""
  if holds_tensor(tree):
    # the same tensor twice is one; axes: of a tensor with names
    return (type(tree), *getattr(tree, "axes", ()), *(number[t] for t in tensors_of(tree)))
  if type(tree) is Variable:
    return (replace(tree, value=None), number.get(tree.value))
  if isinstance(tree, dict):
    return ("dict", *((k, signature(v, number)) for k, v in tree.items()))
  if isinstance(tree, (list, tuple)):
    return (type(tree), *(signature(v, number) for v in tree))
  try:
    hash(tree)
  except TypeError:
    raise JitError(
      f"an argument of a jitted function is a {type(tree).__name__}: give tensors, numbers, lists, tuples, dicts, "
      "or what can be a key of a dict"
    ) from None
  return (type(tree), tree)


def is_recorded(t: Tensor) -> bool:
  """Do gradients pass through t to leaves alone, for `backward()`? (Not to what a function of functions, such as vjp or
  checkpoint, differentiates.)"""
  seen, stack = {t._uop}, [t._uop]
  while stack:
    u = stack.pop()
    if u.op == "tag" and not u.memo.keys() & {"given", "owner"}:
      return False
    below = [s for s in gradient_inputs(u) if s not in seen and "recorded" not in s.memo and needs(s)]
    seen.update(below)
    stack += below
  for u in seen:  # a step of a loop does not look at all of those before it
    u.memo["recorded"] = True
  return True


def placed(t: Tensor) -> Hashable:
  """Where a tensor is, and how it is cut."""
  return t.device if isinstance(t.device, str) else layout(memory_of(t, True))
