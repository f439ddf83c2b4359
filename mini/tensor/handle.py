"""The handle of a tensor: a graph node, where it was made, and how its values are had.

A Tensor is lazy: operations build nodes (mini/ir/graph.py), `realize` computes them (mini/engine). Tensors are values:
views never alias, and what looks like a mutation (`assign`, `t[i] = v`, `+=`) gives the handle another node.
The operations are in the other files of this package, a family each; every family is a class that builds on the one
before: Handle < Elementwise < Mathematics < Special < Activations < Movement < Reduce < Creation < Random < Indexing <
Sorting < Multiply < Convolution < Pooling < Image < Distance < Normalize < Losses < Autograd <
LinearAlgebra < InPlace < Tensor.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from math import prod
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

import mini.ir.composites  # noqa: F401  (its rows join OPS)
from mini.engine.device import Device
from mini.engine.masked import plain, room
from mini.engine.place import Mixed, device_of, place, shown
from mini.engine.realize import realize
from mini.engine.shards import memory
from mini.given import gradient_inputs
from mini.ir import graph
from mini.ir.interp import evaluate
from mini.ir.ops import OPS
from mini.ir.sizes import Variable, bound, known, varies
from mini.ir.uop import UOp, const, unknown
from mini.tensor.trace import Tracer, local
from mini.types import BY_NUMPY, DType, DTypeError, MiniError, ShapeError, as_dtype, dtypes, promote_types
from runtime.base import DeviceError

if TYPE_CHECKING:
  from mini.tensor import Tensor

Number = (bool, int, float, np.generic)
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_CATEGORY = {"b": 0, "i": 1, "u": 1, "f": 2}


# ---------------------------------------------------------------- where things were made, and errors that say so


def user_line() -> tuple[str, int]:
  """(file, line) of the first caller that is not part of mini."""
  frame = sys._getframe(2)
  while frame.f_code.co_filename.startswith(_HERE) and frame.f_back is not None:
    frame = frame.f_back
  return frame.f_code.co_filename, frame.f_lineno


def described(name: str, x: Any) -> str:
  """A line of an error: an input's name, type, shape and where it was made."""
  if not isinstance(x, Handle):
    return f"  {name}: {x!r}"
  return f"  {name}: {spelled(x)}   made at {x.made}"


def named(inputs: Sequence[Any]) -> dict[str, Any]:
  """Inputs as an error lists them: a, b, c, ..."""
  return dict(zip("abcdefgh", inputs))


def spelled(x: Handle) -> str:
  """f32[3,4]"""
  return f"{x.dtype.short}[{','.join(map(str, x.shape))}]"


def fail(error: type[Exception], message: str, hint: str = "", **inputs: Any) -> NoReturn:
  """Raise `error`: the message, one line for each input, and what would fit."""
  lines = [message, *(described(name, x) for name, x in inputs.items())]
  raise error("\n".join(lines + ([f"  {hint}"] if hint else [])))


# fmt: off
SIGNS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
         "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
         "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
# fmt: on


def mixed(e: Mixed) -> NoReturn:
  """Raise the DeviceError of tensors on several devices that met in one operation:
  what was called, with which tensors."""
  frame: FrameType | None = sys._getframe(1)
  found: tuple[str, dict[str, Handle]] = ("an operation", {})  # the outermost call that was given two of them
  while frame is not None and frame.f_code.co_filename.startswith(_HERE):
    given = arguments(frame)
    if len({p for x in given.values() if (p := place(x._uop))}) > 1:
      found = frame.f_code.co_name, given
    frame = frame.f_back
  name, tensors = found
  bare = name.strip("_")
  sign = SIGNS.get(bare) or SIGNS.get(bare[1:]) if name.startswith("__") else None
  if sign:
    bare, tensors = f"a {sign} b", named(list(tensors.values()))
  homes = {n: p for n, x in tensors.items() if (p := place(x._uop))}
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
  frame: FrameType | None = sys._getframe(1)
  name = ""
  given: dict[str, Any] = {}
  while frame is not None and frame.f_code.co_filename.startswith(_HERE):
    name, given = frame.f_code.co_name.strip("_"), arguments(frame)
    frame = frame.f_back
  fail(ShapeError, f"{name}: {why}", **given)


def arguments(frame: FrameType) -> dict[str, Handle]:
  """The tensors that a function was called with, by name; those of a list by its name and a number."""
  code = frame.f_code
  count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
  found: dict[str, Handle] = {}
  for name in code.co_varnames[:count]:
    x: Any = frame.f_locals.get(name)
    name = "x" if name == "self" else name
    several = dict(enumerate(x)) if isinstance(x, (list, tuple)) else x if isinstance(x, dict) else {}
    found.update({f"{name}[{n}]": t for n, t in several.items() if hasattr(t, "_uop")})
    if hasattr(x, "_uop"):
      found[name] = x
  return found


# ---------------------------------------------------------------- types and shapes of operands


def scalar_dtype(x: Any) -> DType:
  """The type of a Python number by itself."""
  if isinstance(x, (bool, np.bool_)):
    return dtypes.bool
  return dtypes.default_int if isinstance(x, (int, np.integer)) else dtypes.default_float


def _promoted(a: DType | None, b: DType) -> DType:
  return b if a is None else promote_types(a, b)


def _outranked(strong: DType | None, weak: DType | None) -> DType | None:
  """`weak` counts only where it is of a higher category: bool < integer < float."""
  if strong is None or weak is None:
    return strong or weak
  return promote_types(strong, weak) if _CATEGORY[weak.kind] > _CATEGORY[strong.kind] else strong


def result_type(*operands: Any) -> DType:
  """The type that operands promote to, as PyTorch's `result_type`:
  tensors with axes, then 0-d tensors, then numbers."""
  full: DType | None = None
  scalar: DType | None = None
  number: DType | None = None
  for x in operands:
    if not isinstance(x, Handle):
      number = _promoted(number, scalar_dtype(x))
    elif graph.shape(x._uop):
      full = _promoted(full, x._uop.dtype)
    else:
      scalar = _promoted(scalar, x._uop.dtype)
  found = _outranked(_outranked(full, scalar), number)
  assert found is not None
  return found


def broadcast_shape(*shapes: Sequence[int]) -> tuple[int, ...] | None:
  """The shape that all of them repeat to, or None."""
  out = []
  for axis in range(-max(map(len, shapes), default=0), 0):
    sizes = {s[axis] for s in shapes if len(s) >= -axis} - {1}
    if len(sizes) > 1:
      return None
    out.append(sizes.pop() if sizes else 1)
  return tuple(out)


def sizes_of(sizes: tuple[Any, ...]) -> tuple[int, ...]:
  """Sizes given as one sequence or as several ints."""
  if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
    sizes = tuple(sizes[0])
  try:
    return tuple(bound(n) if type(n) is Variable else int(n.__index__()) for n in sizes)
  except AttributeError:
    raise DTypeError(f"sizes are integers, not {', '.join(map(repr, sizes))}") from None


def needs(u: UOp) -> bool:
  """Does a gradient pass from this node to some tag?"""
  got = u.memo.get("needs")
  if got is None:
    for n in unknown(u, "needs"):
      if "given" in n.memo:
        passes = any(map(needs, gradient_inputs(n)))
      else:
        passes = n.op == "tag" or any(s.memo["needs"] for s in n.src)
      n.memo["needs"] = passes and n.dtype.kind == "f" and n.op != "detach"
    got = u.memo["needs"]
  return got


def tagged(handle: Handle, u: UOp) -> UOp:
  """u as the node of a leaf that gradients are taken of."""
  tag = graph.tag(u)
  tag.memo["owner"] = weakref.ref(handle)
  if handle._hooks is not None:
    tag.memo["hooks"] = handle._hooks
  return tag


def untagged(u: UOp) -> UOp:
  while u.op == "tag":
    u = u.src[0]
  return u


# ---------------------------------------------------------------- data


def _array(data: Any, dtype: DType | None) -> tuple[np.ndarray, DType]:
  """What a user hands in, as an array and the type that it gets."""
  if isinstance(data, (bytes, bytearray, memoryview)):
    data = np.frombuffer(data, np.uint8)
  typed = isinstance(data, (np.ndarray, np.generic))
  if (
    not typed
    and not isinstance(data, (bool, int, float, list, tuple, range))
    and not hasattr(data, "__array__")
  ):
    raise DTypeError(
      f"Tensor: no tensor can be made of {type(data).__name__}; give numbers, a (nested) list or an array"
    )
  try:
    # a list with numbers beyond int64 would become one of floats
    exact = dtype is dtypes.uint64 and not typed
    array = np.asarray(data, np.uint64 if exact else None)
  except OverflowError:
    array = np.asarray(data)
  except ValueError:
    raise ShapeError("Tensor: the nested lists do not all have the same length") from None
  if array.dtype.kind not in "biuf" and not typed:
    raise DTypeError(
      "Tensor: the list holds what is no number, or an int beyond 64 bits; Tensor.stack joins tensors"
    )
  if array.size == 0 and not typed:
    return array, dtype or dtypes.default_float
  if dtype is not None:
    return array, dtype
  if typed or array.dtype.kind in "u":
    if array.dtype.newbyteorder("=") not in BY_NUMPY:
      raise DTypeError(
        f"Tensor: NumPy's {array.dtype} has no counterpart here; there are {', '.join(d.name for d in dtypes.all)}"
      )
    return array, BY_NUMPY[array.dtype.newbyteorder("=")]
  return array, {"b": dtypes.bool, "i": dtypes.default_int, "f": dtypes.default_float}[array.dtype.kind]


def default_device() -> str:
  """The device on which new tensors are made."""
  return Device.DEFAULT


def device_named(name: Any) -> Any:
  """The canonical name of a device that a user asks for, which is opened. DeviceError where it cannot be had. Of
  several names: each of them, and of one in a list itself."""
  if isinstance(name, (tuple, list)):
    names = tuple(map(device_named, name))
    if not names or len(set(names)) < len(names):
      raise DeviceError(f"several devices are different ones, not {', '.join(names) or 'none'}")
    return names if len(names) > 1 else names[0]
  if not isinstance(name, str):
    raise DTypeError(f'a device is named, as in "CPU" or "CUDA:1", not {name!r}')
  return Device[name].name


def on_device(u: UOp, device: str) -> UOp:
  """u, or a copy of it, on the device."""
  return u if device_of(u) == device else graph.copy(u, device)


class Handle:
  """What every tensor has: a node, a type, a shape, values. Users see it as `Tensor`."""

  __array_priority__ = 1000  # so that array + tensor is a tensor
  _final: type[Tensor]  # the Tensor class, set where that is defined
  _uop: UOp
  _grad: Tensor | None = None
  _where: tuple[str, int]
  _losses: tuple[weakref.ref, ...] = ()  # of a gradient: the losses that it came from
  _hooks: dict[Any, Callable[[UOp], UOp]] | None = None  # of a leaf: what its gradient goes through
  _trace: Tracer | None = None  # the trace in which it was made
  _spent: bool = False  # backward() has been called: a realize may drop the graph

  def __init__(self, data: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False):
    kind = as_dtype(dtype) if dtype is not None else None
    device = None if device is None else device_named(device)
    if isinstance(data, Handle):
      node = graph.cast(data.uop, kind or data.dtype)
    elif isinstance(data, UOp):
      node = data
    elif type(data) is Variable:
      node = data.node
    else:
      array, kind = _array(data, kind)
      node = graph.buffer(memory(array, kind, device or default_device()), array.shape, kind)
    if device is not None:
      node = on_device(node, device)
    self._settle(node, user_line())
    if requires_grad:
      self.requires_grad_()

  def _settle(self, node: UOp, where: tuple[str, int]) -> None:
    if "place" not in node.memo:
      checked(node)
    self._uop, self._where = node, where
    if local.current is not None:
      self._trace = local.current

  @staticmethod
  def _new(node: UOp) -> Tensor:
    """A handle of a node: what every operation returns."""
    t = object.__new__(Handle._final)
    if not local.gradients and needs(node):
      node = graph.detach(node)
    t._settle(node, user_line())
    return t

  @staticmethod
  def _at(node: UOp, where: tuple[str, int]) -> Tensor:
    """A handle of a node, made at a line that is known."""
    t = object.__new__(Handle._final)
    t._settle(node, where)
    return t

  # ---------------------------------------------------------------- the node

  @property
  def uop(self) -> UOp:
    """The graph node (mini/ir/graph.py)."""
    if local.current is not None:
      local.current.read(self)
    elif self._trace is not None:
      self._trace.escaped(self)
    return self._uop

  @uop.setter
  def uop(self, node: UOp) -> None:
    checked(node)
    if local.current is not None:
      local.current.rebind(self)
    self._uop = node

  @property
  def grad(self) -> Tensor | None:
    """What backward() has accumulated."""
    if local.current is not None:
      local.current.gradient(self, looks=True)
    return self._grad

  @grad.setter
  def grad(self, value: Tensor | None) -> None:
    if local.current is not None:
      local.current.gradient(self, looks=False)
    self._grad = value

  @property
  def made(self) -> str:
    """The user's line that made this tensor: "train.py:12"."""
    file, line = self._where
    near = os.path.relpath(file) if os.path.isabs(file) and file.startswith(os.getcwd() + os.sep) else file
    return f"{near}:{line}"

  # ---------------------------------------------------------------- what it is

  @property
  def shape(self) -> tuple[int, ...]:
    """The sizes of its axes.

    >>> Tensor([[1, 2, 3]]).shape
    (1, 3)
    """
    return graph.shape(self._uop)

  @property
  def dtype(self) -> DType:
    """The type of its elements."""
    return self._uop.dtype

  @property
  def device(self) -> str:
    """The name of the device that it is on, or, if nothing of it is in memory yet, on which it would be computed; of a
    tensor on several (`shard`), their names."""
    return device_of(self._uop)

  @property
  def ndim(self) -> int:
    """The number of axes; `dim()` is the same."""
    return len(self.shape)

  @property
  def nbytes(self) -> int:
    """The size of its elements in memory."""
    return self.numel() * self.dtype.itemsize

  def dim(self) -> int:
    """The number of axes."""
    return len(self.shape)

  def numel(self) -> int:
    """The number of elements.

    >>> Tensor.zeros(2, 3).numel()
    6
    """
    return prod(self.shape)

  def element_size(self) -> int:
    """Bytes of an element."""
    return self.dtype.itemsize

  def size(self, dim: int | None = None) -> Any:
    """The shape, or one of its sizes.

    >>> Tensor.zeros(2, 3).size(-1)
    3
    """
    return self.shape if dim is None else self.shape[self._axis(dim, "size")]

  def is_floating_point(self) -> bool:
    """Is the type one of the float types?"""
    return self.dtype.kind == "f"

  def __len__(self) -> int:
    if not self.shape:
      fail(ShapeError, "len(x): a 0-d tensor has no length", x=self)
    return self.shape[0]

  def _axis(self, axis: Any, what: str, ndim: int | None = None) -> int:
    """A non-negative axis from one that may count from the end."""
    n = self.ndim if ndim is None else ndim
    if not hasattr(axis, "__index__") or isinstance(axis, bool):
      fail(DTypeError, f"{what}: an axis is an integer, not {axis!r}", x=self)
    if not -max(n, 1) <= axis < max(n, 1):
      fail(ShapeError, f"{what}: there is no axis {axis}: x has {n} axes", x=self)
    return int(axis) % max(n, 1)

  def _axes(self, axis: Any, what: str) -> tuple[int, ...]:
    """Axes from None (all), one or several."""
    if axis is None:
      return tuple(range(self.ndim))
    axes = tuple(self._axis(a, what) for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    if len(set(axes)) != len(axes):
      fail(ShapeError, f"{what}: an axis appears twice in {axis}", x=self)
    return axes if self.ndim else ()

  # ---------------------------------------------------------------- values

  def realize(self, *others: Handle) -> Tensor:
    """Compute this tensor, and `others` with it, now and together.

    The gradients of a loss keep it in mind: where a parameter is realized, so is the loss of its gradient.
    """
    tensors: list[Handle] = [self, *others]
    if local.current is not None:
      local.current.realize(tensors)
      return self  # type: ignore[return-value]
    for t in tensors:
      if t._trace is not None:
        t._trace.escaped(t)
    tensors += [
      loss for t in tensors if t._grad is not None for ref in t._grad._losses if (loss := ref()) is not None
    ]
    tensors = [
      t for t in dict.fromkeys(tensors) if t._uop.op != "buffer"
    ]  # what else has a graph, or none is needed
    pending = [t for t in tensors if not t.is_realized]
    nodes = list(dict.fromkeys(untagged(t._uop) for t in pending))
    found: dict[UOp, UOp] = {}
    if nodes:
      try:
        found.update(zip(nodes, realize(nodes)))
        for node, leaf in found.items():
          if place(node):
            node.memo["leaf"] = leaf
      except IndexError as e:
        if "out of bounds" not in str(e):
          raise
        raise IndexError("\n".join([str(e), *(described("in", t) for t in pending[:3])])) from None
    for t in tensors:
      t._keep_leaf(found)
    return self  # type: ignore[return-value]

  def _leaf(self) -> UOp | None:
    node = untagged(self._uop)
    return node if node.op == "buffer" else node.memo.get("leaf")

  @property
  def is_realized(self) -> bool:
    """Are the values in memory?"""
    return self._is_part() or self._leaf() is not None

  def _is_part(self) -> bool:
    """Is this a parameter that lies, with others, in one flat buffer (mini/nn/optim.py)? There it stays."""
    if self._uop.op != "tag":
      return False
    node = untagged(self._uop)
    while node.op in ("reshape", "shrink"):
      node = node.src[0]
    return node.op == "buffer" and self._is_own_tag()

  def _keep_leaf(self, found: dict[UOp, UOp]) -> None:
    """Forget the graph, unless gradients will pass through it. found: leaves of what was computed just now."""
    if self._is_part():
      return
    leaf = found.get(untagged(self._uop)) or self._leaf()
    assert leaf is not None
    if self._is_own_tag():
      if self._uop.src[0] is not leaf:
        self._tag(leaf)
    elif self._uop is not leaf and (self._spent or not needs(self._uop)):
      self._uop = leaf

  def numpy(self) -> np.ndarray:
    """The values as a NumPy array of its own; bfloat16 as float32.

    >>> Tensor([1, 2]).numpy()
    array([1, 2])
    """
    return self._values("x.numpy()")

  def _values(self, what: str) -> np.ndarray:
    """numpy(), in the name of what was called."""
    if local.current is not None:
      local.current.value(self, what)
    self.realize()
    leaf = self._leaf()
    if leaf is None:
      array = evaluate([plain(untagged(self._uop))], lambda u: u.arg[0].numpy())[0].copy()
    else:
      array = leaf.arg[0].numpy().reshape(room(self.shape))
    return array[tuple(slice(known(n)) for n in self.shape)].copy() if varies(self.shape) else array

  def item(self) -> Any:
    """The value of a tensor of one element, as a Python number.

    >>> Tensor([[3.5]]).item()
    3.5
    """
    return self._number("x.item()", "x.tolist() gives all of them")

  def tolist(self) -> Any:
    """The values as nested lists; a number where there are no axes.

    >>> Tensor([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    return self._values("x.tolist()").tolist()

  def data(self) -> memoryview:
    """The values as a memoryview of a copy."""
    return np.ascontiguousarray(self._values("x.data()")).data

  def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    array = self._values("np.asarray(x)")
    return array if dtype is None else array.astype(dtype)

  def __reduce__(self) -> tuple:  # of pickle and copy: the values
    device = self.device if isinstance(self.device, str) else None
    return _rebuilt, (self.numpy(), self.dtype, self._is_own_tag(), device)

  def __repr__(self) -> str:
    about = (
      ""
      if self.dtype in (dtypes.default_float, dtypes.default_int, dtypes.bool)
      else f", dtype={self.dtype.name}"
    )
    about += ", requires_grad=True" if self.requires_grad else ""
    if local.current is not None:
      return f"Tensor({spelled(self)} being traced)"
    array = self.numpy()
    text = np.array2string(array, separator=", ", prefix="Tensor(")
    if not array.size:
      about = f", shape={self.shape}" + about
    return f"Tensor({text}{about})"

  def _repr_html_(self) -> str:
    """What notebooks show: what it is, and its values."""
    from html import escape  # only notebooks need it

    about = f"Tensor, {self.dtype.name}, shape {self.shape}, on {shown(self.device)}"
    values = "" if local.current is not None else np.array2string(self.numpy(), separator=", ")
    return f"<div>{escape(about)}<pre>{escape(values)}</pre></div>"

  def __format__(self, spec: str) -> str:
    return format(self.item(), spec) if spec else repr(self)

  def _number(self, what: str, hint: str = "x.sum() or x.mean() makes one of them") -> Any:
    if self.numel() != 1:
      fail(ShapeError, f"{what}: x has {self.numel()} elements, not one", hint, x=self)
    return self._values(what).item()

  def __bool__(self) -> bool:
    return bool(self._number("bool(x)", "x.any() or x.all() makes one of them"))

  def __int__(self) -> int:
    return int(self._number("int(x)"))

  def __float__(self) -> float:
    return float(self._number("float(x)"))

  def __index__(self) -> int:
    if self.dtype.kind not in "iu":
      fail(DTypeError, f"a {self.dtype.name} tensor is no index", x=self)
    return int(self._number("index(x)"))

  __hash__ = object.__hash__

  def __iter__(self) -> Iterator[Tensor]:
    if not self.shape:
      fail(ShapeError, "iter(x): a 0-d tensor has no elements to go through", x=self)
    return (self[i] for i in range(self.shape[0]))  # type: ignore[index]

  # ---------------------------------------------------------------- rebinding

  def assign(self, x: Any) -> Tensor:
    """Give this handle the value of x, which has the same shape; x is cast to this type and copied to this device.

    A leaf that requires a gradient stays one: no gradient passes to x.

    >>> t = Tensor([1.0, 2.0])
    >>> t.assign(t * 2).tolist()
    [2.0, 4.0]
    """
    value = x if isinstance(x, Handle) else Handle._final(x, dtype=self.dtype, device=self.device)
    if value.shape != self.shape:
      fail(ShapeError, f"a.assign(b): a has shape {self.shape}, b has {value.shape}", a=self, b=value)
    return self._bind(on_device(graph.cast(value.uop, self.dtype), self.device))

  def _bind(self, node: UOp) -> Tensor:
    """Give this handle a node; a leaf that requires a gradient stays one."""
    if self._is_own_tag():
      self._tag(graph.detach(node) if needs(node) else node)
    else:
      self.uop = node
    return self  # type: ignore[return-value]

  def replace(self, x: Tensor) -> Tensor:
    """Give this handle the value of x, whatever its shape, type and device."""
    self.uop = x.uop
    return self  # type: ignore[return-value]

  def _not_a_leaf(self, what: str) -> None:
    if self._is_own_tag() and local.gradients:
      fail(
        MiniError,
        f"{what}: a is a leaf that requires a gradient; do it under no_grad(), or with a.assign(...)",
        a=self,
      )

  def _update(self, value: Handle, what: str, shaped: bool = True) -> Tensor:
    """What is done in place: the handle is bound to the new value, of the same type and, if shaped, shape."""
    self._not_a_leaf(what)
    if shaped and value.shape != self.shape:
      fail(ShapeError, f"{what}: the result has shape {value.shape} and does not fit into a", a=self)
    if _CATEGORY[value.dtype.kind] > _CATEGORY[self.dtype.kind]:
      fail(
        DTypeError,
        f"{what}: the result is {value.dtype.name} and cannot be kept in a, which is {self.dtype.name}",
        a=self,
      )
    return self._bind(graph.cast(value.uop, self.dtype))

  # ---------------------------------------------------------------- gradients: what a handle knows of them

  def _is_own_tag(self) -> bool:
    owner = self._uop.memo.get("owner") if self._uop.op == "tag" else None
    return owner is not None and owner() is self

  def _tag(self, node: UOp) -> None:
    """Make this handle a leaf that gradients are taken of."""
    self.uop = tagged(self, node)

  @property
  def requires_grad(self) -> bool:
    """Is a gradient passed to this tensor? True for a leaf that asked for it, and for what depends on one."""
    return needs(self._uop)

  @requires_grad.setter
  def requires_grad(self, on: bool) -> None:
    self.requires_grad_(on)

  @property
  def is_leaf(self) -> bool:
    """Does it stand at the beginning of a graph, as far as gradients are concerned?"""
    return self._is_own_tag() or not needs(self._uop)

  def requires_grad_(self, requires_grad: bool = True) -> Tensor:
    """Make this a leaf whose gradient backward() accumulates in `.grad`; or no longer.

    DTypeError if it is not of a float type.

    >>> x = Tensor([1.0, 2.0]).requires_grad_()
    >>> (x * x).sum().backward()
    >>> x.grad
    Tensor([2., 4.])
    """
    if requires_grad and self.dtype.kind != "f":
      fail(
        DTypeError, f"requires_grad: only float tensors have gradients, this one is {self.dtype.name}", x=self
      )
    if requires_grad and not needs(self._uop):
      self._tag(self._uop)
    elif not requires_grad and self._is_own_tag():
      self.uop = untagged(self._uop)
    elif not requires_grad and needs(self._uop):
      fail(
        MiniError,
        "requires_grad_(False): x depends on a tensor that requires a gradient; use x.detach()",
        x=self,
      )
    return self  # type: ignore[return-value]

  def detach(self) -> Tensor:
    """The same values, to which no gradient is passed.

    >>> Tensor([1.0], requires_grad=True).detach().requires_grad
    False
    """
    return self._new(graph.detach(self.uop) if needs(self._uop) else self.uop)

  # ---------------------------------------------------------------- nodes from operands

  def _alu(self, op: str, *src: UOp) -> Tensor:
    return self._new(graph.alu(op, *src))

  def _coerced(self, x: Any) -> Any:
    """x as an operand: a tensor or a number; NotImplemented if it is neither."""
    if isinstance(x, (Handle, *Number)):
      return x
    if type(x) is Variable:
      return Handle._final(x)
    return Handle._final(x, device=self.device) if isinstance(x, np.ndarray) else NotImplemented


def checked(node: UOp) -> None:
  """Every operation's result comes here: DeviceError, if its inputs are on several devices."""
  try:
    place(node)
  except Mixed as e:
    mixed(e)


def _rebuilt(array: np.ndarray, dtype: DType, requires_grad: bool, device: str | None = None) -> Tensor:
  return Handle._final(array, dtype=dtype, device=device, requires_grad=requires_grad)


def nodes(what: str, operands: Sequence[Any], dtype: DType | None = None, **names: Any) -> list[UOp]:
  """The operands of an elementwise operation as nodes of one type and one shape; () stays () and is repeated."""
  if dtype is None:
    try:
      dtype = result_type(*operands)
    except DTypeError as e:
      fail(DTypeError, f"{what}: {e}", **named(operands))
  found = [graph.cast(x.uop, dtype) if isinstance(x, Handle) else const(x, dtype) for x in operands]
  return broadcast(what, found, operands)


def broadcast(what: str, found: list[UOp], operands: Sequence[Any]) -> list[UOp]:
  """Nodes repeated to their common shape; () stays ()."""
  shapes = {s for u in found if (s := graph.shape(u))}
  if len(shapes) < 2:
    return found
  common = broadcast_shape(*shapes)
  if common is None:
    tensors = {n: x for n, x in zip("abcd", operands) if isinstance(x, Handle)}
    fail(
      ShapeError,
      f"{what}: the shapes {' and '.join(str(x.shape) for x in tensors.values())} do not repeat to a common one",
      hint=fitting(list(tensors.values())),
      **tensors,
    )
  return [graph.expand_to(u, common) if graph.shape(u) else u for u in found]


def fitting(tensors: list[Handle]) -> str:
  """What would make two shapes repeat to a common one, if something simple does."""
  if len(tensors) != 2:
    return ""
  a, b = (x.shape for x in tensors)
  for name, s, other in (("b", b, a), ("a", a, b)):
    if len(s) == 2 and broadcast_shape(s[::-1], other) is not None:
      return f"{name}.T would fit"
    if s and broadcast_shape((*s, 1), other) is not None:
      return f"{name}.unsqueeze(-1) would fit"
  return ""


def wide(x: DType) -> DType:
  """The type in which sums of this type are taken."""
  return dtypes.float32 if x in (dtypes.float16, dtypes.bfloat16) else x


assert "tag" in OPS
