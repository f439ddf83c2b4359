"""Tensor graphs: nodes that have a shape. One constructor per operation, each checking what it is given.

Elementwise inputs have equal shapes, or shape () and are repeated; `reduce` and `scan` keep every axis. Tensor adds
broadcasting, promotion and Python's operators; nothing here knows of memory or devices.

  const   arg = a Python number                buffer  arg = (memory or name, shape)    iota  arg = size
  reshape, expand  arg = shape                 permute, flip  arg = axes                pad, shrink  arg = ((a, b), ...)
  reduce  arg = (kind, axes)                   scan    arg = (kind, axis)               cat  arg = axis
  gather  src = (x, index)  arg = axis         scatter  src = (base, index, value)  arg = (kind, axis); set add mul max
  copy    arg = a device's name, or several    shard   arg = (axis, names)                 tag   arg = a number
  call    arg = (function, shape)
"""

from __future__ import annotations

from itertools import count
from math import prod
from typing import Any

from mini.ir.extern import Extern
from mini.ir.ops import OPS, VIEWS, identity, is_elementwise, result_dtype
from mini.ir.sizes import Variable, filled, most
from mini.ir.uop import UOp, alone, const, memory_leaf, unknown, uop
from mini.types import AxisError, DType, DTypeError, ShapeError, dtypes


def shape(u: UOp) -> tuple[int, ...]:
  got = u.memo.get("shape")
  if got is None:
    for n in unknown(u, "shape"):
      n.memo["shape"] = _infer(n)
    got = u.memo["shape"]
  return got


def numel(u: UOp) -> int:
  return prod(shape(u))


def _infer(u: UOp) -> tuple[int, ...]:
  if u.op == "buffer":
    return u.arg[1]
  if u.op == "iota":
    return (u.arg,)
  if u.op == "call":
    return u.arg[1]
  if u.op == "invoke":
    return shape(u.arg.like)
  if not u.src:
    return ()
  s = shape(u.src[0])
  if u.op in VIEWS:
    return shape_of_view(u.op, u.arg, s)
  if u.op == "reduce":
    return tuple(1 if a in u.arg[1] else n for a, n in enumerate(s))
  if u.op == "cat":
    return tuple(sum(shape(x)[a] for x in u.src) if a == u.arg else n for a, n in enumerate(s))
  if u.op == "gather":
    return shape(u.src[1])
  if is_elementwise(u.op):
    return next((shape(x) for x in u.src if shape(x)), ())
  return s


def shape_of_view(op: str, arg: Any, s: tuple[int, ...]) -> tuple[int, ...]:
  """The shape of a view of what has the shape s."""
  if op in ("reshape", "expand"):
    return whole(arg)
  if op == "permute":
    return tuple([s[a] for a in arg])
  if op == "pad":
    return whole(tuple([lo + n + hi for n, (lo, hi) in zip(s, arg)]))
  if op == "shrink":
    return whole(tuple([hi - lo for lo, hi in arg]))
  return s


def whole(sizes: tuple[int, ...]) -> tuple[int, ...]:
  """The sizes. DTypeError, where one is no integer: a kernel of 0.5 or a mean of lengths has come this far."""
  for n in sizes:
    if not hasattr(n, "__index__") and type(n) is not Variable:
      raise DTypeError(f"sizes are integers, not {n!r}")
  return sizes


def fixed(sizes: Any) -> None:
  """ShapeError if one of these sizes is known only at run time: what lies beyond it would come to lie before it."""
  for n in sizes:
    if type(n) is Variable:
      n.refuse()


# ---------------------------------------------------------------- leaves


def buffer(key: Any, s: tuple[int, ...], dtype: DType, device: str = "") -> UOp:
  """Memory that exists, named by any hashable `key`: a Buffer in a live graph, a name in a printed one. The latter says
  on which device it is where a program has several."""
  if hasattr(key, "leaves"):
    return memory_leaf(key, tuple(s), dtype)
  return uop("buffer", dtype, (), (key, tuple(s), device) if device else (key, tuple(s)))


def counter(*sizes: Any) -> DType:
  """The type of what counts up to these sizes: one of 32 bits, which vectors hold more of, unless one is too large."""
  return dtypes.int32 if all(most(n) < 1 << 31 for n in sizes) else dtypes.int64


def iota(n: int, dtype: DType | None = None) -> UOp:
  """0, 1, ..., n-1.   -> dtype[n], or what counts up to n"""
  return uop("iota", dtype or counter(n), (), n)


def full(s: tuple[int, ...], value: float | bool, dtype: DType) -> UOp:
  return expand_to(const(value, dtype), s)


# ---------------------------------------------------------------- views


def reshape(x: UOp, s: tuple[int, ...]) -> UOp:
  s, old = tuple(s), shape(x)
  if s == old:
    return x
  if filled(old, s) != s:
    raise ShapeError(f"reshape: the elements of {old} do not fill {s}")
  while x.op == "reshape":
    x = x.src[0]
  return x if shape(x) == s else _view("reshape", x, s, s)


def _view(op: str, x: UOp, arg: tuple[Any, ...], s: tuple[int, ...]) -> UOp:
  """A view of x, of this shape."""
  u = uop(op, x.dtype, (x,), arg)
  if "shape" not in u.memo:
    u.memo["shape"] = whole(s)
    if "place" in x.memo:
      u.memo["place"] = x.memo["place"]
  return u


def expand(x: UOp, s: tuple[int, ...]) -> UOp:
  s = tuple(s)
  if len(s) != len(shape(x)) or any(n not in (1, m) for n, m in zip(shape(x), s)):
    raise ShapeError(f"expand: {shape(x)} does not repeat to {s}: only axes of size 1 do")
  if x.op == "expand":
    x = x.src[0]
  return x if shape(x) == s else _view("expand", x, s, s)


def expand_to(x: UOp, s: tuple[int, ...]) -> UOp:
  """Broadcast x to s: ones are put in front, axes of size 1 repeated."""
  return expand(reshape(x, (1,) * (len(s) - len(shape(x))) + shape(x)), s)


def permute(x: UOp, axes: tuple[int, ...]) -> UOp:
  axes = tuple(axes)
  if sorted(axes) != list(range(len(shape(x)))):
    raise ShapeError(f"permute: {axes} is no order of the {len(shape(x))} axes of {shape(x)}")
  if x.op == "permute":
    axes, x = tuple(x.arg[a] for a in axes), x.src[0]
  s = shape(x)
  return x if axes == tuple(range(len(axes))) else _view("permute", x, axes, tuple([s[a] for a in axes]))


def pad(x: UOp, widths: tuple[tuple[int, int], ...]) -> UOp:
  widths = tuple((lo, hi) for lo, hi in widths)
  if len(widths) != len(shape(x)) or any(lo < 0 or hi < 0 for lo, hi in widths):
    raise ShapeError(f"pad: {widths} does not give two sizes >= 0 for each axis of {shape(x)}")
  return x if all(w == (0, 0) for w in widths) else uop("pad", x.dtype, (x,), widths)


def shrink(x: UOp, spans: tuple[tuple[int, int], ...]) -> UOp:
  spans, old = tuple([(lo, hi) for lo, hi in spans]), shape(x)
  fixed([lo for lo, _ in spans])
  if len(spans) != len(old) or not all(0 <= lo <= hi <= n for (lo, hi), n in zip(spans, old)):
    raise ShapeError(f"shrink: {spans} does not lie within {old}")
  s = tuple([hi - lo for lo, hi in spans])
  return x if s == old else _view("shrink", x, spans, s)


def flip(x: UOp, axes: tuple[int, ...]) -> UOp:
  axes = tuple(sorted(axes))
  if any(not 0 <= a < len(shape(x)) for a in axes):
    raise ShapeError(f"flip: {axes} are not all axes of {shape(x)}")
  fixed([shape(x)[a] for a in axes])
  return uop("flip", x.dtype, (x,), axes) if axes else x


# ---------------------------------------------------------------- data


def alu(op: str, *src: UOp) -> UOp:
  """An elementwise operation of the table. Inputs: equal shapes or (); equal types, but for where's condition."""
  kind, s = src[-1].dtype, shape(src[-1])
  for n, x in enumerate(src):
    if x.dtype is not (dtypes.bool if op == "where" and n == 0 else kind):
      raise DTypeError(f"{op}: inputs are {', '.join(x.dtype.name for x in src)}")
    if s and shape(x) not in (s, ()):
      raise ShapeError(f"{op}: shapes {', '.join(str(shape(x)) for x in src)} differ")
    s = s or shape(x)
  u = uop(op, result_dtype(op, (kind,)), src)
  u.memo.setdefault("shape", s)
  return u


def cast(x: UOp, dtype: DType) -> UOp:
  if x.dtype is dtype:
    return x
  return const(x.arg, dtype) if _exact_const(x, dtype) else uop("cast", dtype, (x,))


def _exact_const(x: UOp, dtype: DType) -> bool:
  return x.op == "const" and (
    dtype.kind in "fb"
    or x.dtype.kind != "f"
    or (abs(x.arg) < 2**31 and dtype.kind == "i" and dtype.itemsize >= 4)
  )


def bitcast(x: UOp, dtype: DType) -> UOp:
  if x.dtype.itemsize != dtype.itemsize:
    raise DTypeError(
      f"bitcast: {x.dtype.name} has {x.dtype.itemsize} bytes, {dtype.name} has {dtype.itemsize}"
    )
  return x if x.dtype is dtype else uop("bitcast", dtype, (x,))


def reduce(x: UOp, kind: str, axes: tuple[int, ...]) -> UOp:
  """Add, mul or max over axes, which stay with size 1. Over no elements: the identity of `kind`."""
  axes = tuple(sorted(set(axes)))
  if any(not 0 <= a < len(shape(x)) for a in axes):
    raise ShapeError(f"reduce: {axes} are not all axes of {shape(x)}")
  axes = tuple(a for a in axes if shape(x)[a] != 1)
  if any(shape(x)[a] == 0 for a in axes):
    ones = tuple(1 if a in axes else n for a, n in enumerate(shape(x)))
    return full(ones, identity(kind, x.dtype), x.dtype)
  return uop("reduce", x.dtype, (x,), (kind, axes)) if axes else x


def scan(x: UOp, kind: str, axis: int) -> UOp:
  """The running add, mul or max along one axis."""
  if not 0 <= axis < len(shape(x)):
    raise ShapeError(f"scan: {axis} is no axis of {shape(x)}")
  return x if shape(x)[axis] in (0, 1) else uop("scan", x.dtype, (x,), (kind, axis))


def gather(x: UOp, index: UOp, axis: int) -> UOp:
  """out[.., i, ..] = x[.., index[.., i, ..], ..].

  Other axes are equal; an index outside is an IndexError at run time, or at once if x has nothing along the axis.
  """
  _check_index("gather", x, index, axis)
  return uop("gather", x.dtype, (x, index), axis)


def scatter(base: UOp, index: UOp, value: UOp, kind: str, axis: int) -> UOp:
  """base with value at index along axis: put there (`set`: the last one wins), or accumulated in order (`add`, `mul`,
  `max`)."""
  _check_index("scatter", base, index, axis)
  if kind == "set":
    fixed(shape(index))
  if shape(value) != shape(index) or value.dtype is not base.dtype:
    raise ShapeError(
      f"scatter: value {value.dtype.short}{list(shape(value))} must be {base.dtype.short}{list(shape(index))}"
    )
  return uop("scatter", base.dtype, (base, index, value), (kind, axis)) if 0 not in shape(index) else base


def _check_index(what: str, x: UOp, index: UOp, axis: int) -> None:
  s, si = shape(x), shape(index)
  if index.dtype.kind not in "iu":
    raise DTypeError(f"{what}: the index is {index.dtype.name}, not an integer type")
  apart = any(n != m for a, (n, m) in enumerate(zip(s, si)) if a != axis)
  if len(s) != len(si) or not 0 <= axis < len(s) or apart:
    raise ShapeError(f"{what}: index {si} and {s} differ in an axis other than {axis}")
  if s[axis] == 0 and 0 not in si:
    raise AxisError(f"{what}: any index is out of bounds for axis {axis} of {s}, which has size 0")


# ---------------------------------------------------------------- marks


def cat(xs: tuple[UOp, ...], axis: int) -> UOp:
  """xs in one memory, one after another along axis."""
  s = shape(xs[0])
  for x in xs[1:]:
    apart = any(n != m for a, (n, m) in enumerate(zip(s, shape(x))) if a != axis)
    if x.dtype is not xs[0].dtype or len(shape(x)) != len(s) or apart:
      raise ShapeError(
        f"cat: {x.dtype.short}{list(shape(x))} does not go with {xs[0].dtype.short}{list(s)} along axis {axis}"
      )
  fixed([shape(x)[axis] for x in xs])
  full_ones = tuple(x for x in xs if shape(x)[axis])
  return uop("cat", xs[0].dtype, full_ones, axis) if len(full_ones) > 1 else (*full_ones, xs[0])[0]


def copy(x: UOp, device: str | tuple[str, ...]) -> UOp:
  """x on another device; with several names, all of it on each."""
  return uop("copy", x.dtype, (x,), device)


def shard(x: UOp, axis: int, devices: tuple[str, ...]) -> UOp:
  """x in parts along axis, one on each of the devices:
  of equal sizes, or, where they do not divide, the first ones larger by 1."""
  if not 0 <= axis < len(shape(x)):
    raise ShapeError(f"shard: {axis} is no axis of {shape(x)}")
  fixed(shape(x)[axis : axis + 1])
  if not 1 < len(devices) == len(set(devices)) <= shape(x)[axis]:
    raise ShapeError(f"shard: axis {axis} of {shape(x)} does not fall into parts for {', '.join(devices)}")
  return uop("shard", x.dtype, (x,), (axis, tuple(devices)))


def stage(x: UOp) -> UOp:
  """x in memory of its own."""
  return x if x.op in ("stage", "buffer", "cat") else uop("stage", x.dtype, (x,))


def detach(x: UOp) -> UOp:
  if x.op == "detach":
    return x
  u = uop("detach", x.dtype, (x,))
  u.memo["needs"] = False  # gradient_rules.py: what is beneath it need not be looked at
  return u


_tags = count(1)


def tag(x: UOp) -> UOp:
  """x as a node like no other, so that a gradient can be taken with respect to it and to nothing else of equal
  value."""
  return alone("tag", x.dtype, (x,), next(_tags))


def call(f: Extern, xs: tuple[UOp, ...], s: tuple[int, ...], dtype: DType) -> UOp:
  """f of arrays with the values of xs, which gives one of this shape and type. They are on the host."""
  for x in xs:
    fixed(shape(x))
  return uop("call", dtype, xs, (f, tuple(s)))


def after(x: UOp, first: UOp) -> UOp:
  """x as another node, for what is to be computed from it a second time, and not before `first` has been computed."""
  return uop("after", x.dtype, (x, first))


assert all(
  op.family in ("leaf", "mark", "composite") or op.name in globals() or is_elementwise(op.name)
  for op in OPS.values()
)
