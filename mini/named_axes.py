"""Axes that have names: a tensor that is told what its axes are, in the names of PyTorch's named tensors.

`x.rename("batch", "seq")` gives a Named, which has x as its `tensor`. Its methods take axes by name and say which axes
their result has; tensors that meet must have the same names, and nothing is matched by chance. An axis may also have a
label (`Dim`: what its elements are), and a kind: "batch | input -> output" are the axes of a map, which `compose`
chains.

All values are made by Tensor's methods; Tensor itself knows nothing of names.
"""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import prod
from typing import Any, NoReturn

from mini.tensor import Tensor
from mini.tensor.activations import Activations
from mini.tensor.einsum import accumulated, einsum
from mini.tensor.elementwise import Elementwise
from mini.tensor.errors import SIGNS, fail
from mini.tensor.formula import Index, expanded, parsed
from mini.tensor.handle import Handle
from mini.tensor.mathematics import Mathematics
from mini.tensor.promotion import broadcast_shape
from mini.tensor.special import Special
from mini.types import DTypeError, ShapeError

# fmt: off
REDUCING = {"sum", "prod", "mean", "max", "min", "amax", "amin", "any", "all", "var", "std", "norm", "logsumexp",
            "nansum", "nanmean", "count_nonzero", "argmax", "argmin", "median", "nanmedian", "mode"}
ALONG = {"softmax", "log_softmax", "softmin", "cumsum", "cumprod", "logcumsumexp"}
SAME = {"detach", "contiguous", "clone", "cast", "to", "float", "double", "half", "bfloat16", "long", "int", "bool",
        "requires_grad_", "realize"}
VALUES = {"shape", "dtype", "device", "ndim", "numel", "nbytes", "item", "tolist", "numpy", "backward", "grad",
          "requires_grad", "is_leaf", "is_realized", "made"}
# fmt: on
EACH = SAME.union(*(vars(c) for c in (Elementwise, Mathematics, Special, Activations)))


@dataclass(frozen=True)
class Dim:
  """The size of an axis and what its elements are: an axis that has a label goes with no axis of another label.

  >>> image = Tensor.ones(4, 4, 3).rename("h", "w", c=Dim(3, "rgb"))
  >>> (image + image).rename(c=Dim(3, "hsv")).labels
  (None, None, 'hsv')
  """

  size: int
  label: str

  def __repr__(self) -> str:
    return f'Dim({self.size}, "{self.label}")'


@dataclass(frozen=True)
class Axis:
  """What is known of an axis besides its size."""

  name: str | None = None
  kind: str = "output"  # or "batch", "input"
  label: str | None = None


class Named:
  """A tensor whose axes have names; `x.rename(...)` and `x.refine_names(...)` make one.

  Methods take names where Tensor's take axes. Elementwise operations need the same names at the same place from the
  right, as in PyTorch; an axis without a name goes with any. What no name can be followed through is not there: ask
  `x.tensor`, or x.rename(None).

  >>> x = Tensor([[1.0, 2.0], [3.0, 4.0]]).rename("batch", "seq")
  >>> x.sum("seq").names, x.sum("seq").tolist()
  (('batch',), [3.0, 7.0])
  >>> (x - x.mean("batch")).align_to("seq", "batch").names
  ('seq', 'batch')
  """

  __array_priority__ = 1001

  def __init__(self, tensor: Tensor, axes: Sequence[Axis]):
    self.tensor, self.axes = tensor, tuple(axes)
    names = [n for n in self.names if n is not None]
    if len({*names}) < len(names):
      self._wrong(f"an axis has a name twice: {', '.join(names)}")

  def _mapped(self, f: Callable[[Any], Any]) -> Any:
    """f of its tensor, or of what stands for that, with these names; without, where it has another number of axes."""
    new = self.tensor._mapped(f) if hasattr(type(self.tensor), "_mapped") else f(self.tensor)
    return new if isinstance(new, Handle) and new.ndim != len(self.axes) else Named(new, self.axes)

  @property
  def names(self) -> tuple[str | None, ...]:
    """The name of each axis, or None."""
    return tuple(a.name for a in self.axes)

  @property
  def labels(self) -> tuple[str | None, ...]:
    """The label of each axis, or None."""
    return tuple(a.label for a in self.axes)

  @property
  def kinds(self) -> tuple[str, ...]:
    """Whether each axis is batch, input or output."""
    return tuple(a.kind for a in self.axes)

  def __repr__(self) -> str:
    return f"{self.tensor!r}.rename({', '.join(map(repr, self.names))})"

  def _spelled(self) -> str:
    sizes = [
      "=".join(filter(None, (a.name, str(n)))) + (f" {a.label}" if a.label else "")
      for a, n in zip(self.axes, self.tensor.shape)
    ]
    return f"{self.tensor.dtype.short}[{', '.join(sizes)}]   made at {self.tensor.made}"

  def _wrong(self, message: str, error: type[Exception] = ShapeError) -> NoReturn:
    raise error(f"{message}\n  x: {self._spelled()}")

  def _axis(self, axis: Any, what: str) -> int:
    if isinstance(axis, str):
      if axis not in self.names:
        self._wrong(f"{what}: no axis is called {axis!r}")
      return self.names.index(axis)
    return self.tensor._axis(axis, what)

  def _of(self, kind: str) -> list[int]:
    """The axes of a kind."""
    return [n for n, a in enumerate(self.axes) if a.kind == kind]

  def _axes(self, axes: Any, what: str) -> Any:
    """Axes by name or number as numbers; None stays."""
    if isinstance(axes, (tuple, list)):
      return tuple(self._axis(a, what) for a in axes)
    return None if axes is None else self._axis(axes, what)

  # ---------------------------------------------------------------- names

  def rename(self, *names: Any, **others: Any) -> Any:
    """Other names: one for each axis, or old="new"; old=Dim(n, label) gives a label. rename(None): the bare tensor."""
    if names == (None,) and not others:
      return self.tensor
    axes = list(renamed(self.tensor, names, {})) if names else list(self.axes)
    for old, new in others.items():
      a = self._axis(old, "rename")
      axes[a] = labelled(self, axes[a], new, a) if isinstance(new, Dim) else replace(axes[a], name=new)
    return Named(self.tensor, axes)

  def refine_names(self, *names: str | None) -> Named:
    """Names for axes that have none; ShapeError if one has another already. "..." are those that stay."""
    given = self._filled(names, "refine_names")
    for old, new in zip(self.names, given):
      if None not in (old, new) and old != new:
        self._wrong(f"refine_names: an axis is {old!r}, and not {new!r}; rename gives it another name")
    return Named(self.tensor, [replace(a, name=a.name or n) for a, n in zip(self.axes, given)])

  def _filled(self, names: Sequence[Any], what: str) -> list[Any]:
    """Names, with those of x for an ellipsis."""
    at = next((n for n, name in enumerate(names) if name in ("...", Ellipsis)), None)
    found = [*names]
    if at is not None:
      rest = len(self.axes) - len(names) + 1
      found[at : at + 1] = self.names[at : at + rest] if rest >= 0 else []
    if len(found) != len(self.axes):
      self._wrong(f"{what}: {len(names)} names for {len(self.axes)} axes")
    return found

  def align_to(self, *names: Any) -> Named:
    """In this order; a name that x does not have is an axis of size 1, "..." all that are not named.

    >>> Tensor.ones(2, 3).rename("a", "b").align_to("b", "new", "a").shape
    (3, 1, 2)
    """
    rest = [n for n in self.names if n not in names]
    order = [m for n in names for m in (rest if n in ("...", Ellipsis) else [n])]
    if missing := [n for n in self.names if n is None or n not in order]:
      self._wrong(f"align_to: the axis {missing[0]!r} is not among {', '.join(map(str, order))}")
    there = [self.names.index(n) for n in order if n in self.names]
    moved = self.tensor.permute(there) if there else self.tensor
    axes = [self.axes[self.names.index(n)] if n in self.names else Axis(n) for n in order]
    return Named(moved.reshape([self.size(n) if n in self.names else 1 for n in order]), axes)

  def align_as(self, other: Named) -> Named:
    """`align_to` the names of another tensor."""
    return self.align_to(*other.names)

  # ---------------------------------------------------------------- movement by name

  def size(self, dim: Any = None) -> Any:
    """The shape, or the size of an axis."""
    return self.tensor.shape if dim is None else self.tensor.shape[self._axis(dim, "size")]

  def permute(self, *dims: Any) -> Named:
    """All axes in another order."""
    order = self._axes(dims, "permute")
    return Named(self.tensor.permute(order), [self.axes[a] for a in order])

  def transpose(self, dim0: Any, dim1: Any) -> Named:
    """With two axes exchanged."""
    order = [*range(len(self.axes))]
    a, b = self._axes((dim0, dim1), "transpose")
    order[a], order[b] = b, a
    return self.permute(*order)

  def select(self, dim: Any, index: int) -> Named:
    """One element of an axis, which is gone then."""
    a = self._axis(dim, "select")
    return Named(self.tensor.select(a, index), [x for b, x in enumerate(self.axes) if b != a])

  def flatten(self, dims: Sequence[Any], name: str) -> Named:
    """Axes that stand side by side as one.

    >>> Tensor.ones(2, 3, 4).rename("a", "b", "c").flatten(["b", "c"], "d").names
    ('a', 'd')
    """
    found = self._axes(tuple(dims), "flatten")
    if not found or list(found) != [*range(found[0], found[0] + len(found))]:
      self._wrong(f"flatten: {', '.join(map(str, dims))} do not stand side by side, in this order")
    first, last = found[0], found[-1]
    new = Axis(name, self.axes[first].kind)
    return Named(self.tensor.flatten(first, last), [*self.axes[:first], new, *self.axes[last + 1 :]])

  def unflatten(self, dim: Any, sizes: Sequence[tuple[str, int]]) -> Named:
    """An axis as several, each a (name, size)."""
    a = self._axis(dim, "unflatten")
    if prod(n for _, n in sizes) != self.tensor.shape[a]:
      self._wrong(f"unflatten: {' * '.join(str(n) for _, n in sizes)} is not the size of {dim!r}")
    new = [Axis(name, self.axes[a].kind) for name, _ in sizes]
    return Named(self.tensor.unflatten(a, [n for _, n in sizes]), [*self.axes[:a], *new, *self.axes[a + 1 :]])

  def __getitem__(self, index: Any) -> Named:
    """Elements and spans of the first axes; a span is what it was, but for its label."""
    index = index if isinstance(index, tuple) else (index,)
    if not all(isinstance(i, (int, slice)) for i in index):
      self._wrong(
        f"x[{', '.join(map(repr, index))}]: integers and slices index a tensor with names", IndexError
      )
    axes = []
    for a, i in zip_longest(self.axes, index[: len(self.axes)], fillvalue=slice(None)):
      if isinstance(a, Axis) and isinstance(i, slice):
        axes.append(a if i == slice(None) else replace(a, label=None))
    return Named(self.tensor[index], axes)

  # ---------------------------------------------------------------- what Tensor's methods give

  def _reduced(self, method: str, dim: Any, keepdim: bool, options: dict[str, Any]) -> Any:
    axes = self._axes(dim, method)
    options = {**options, **({"keepdim": True} if keepdim else {})}
    found = getattr(self.tensor, method)(dim=axes, **options)
    gone = range(len(self.axes)) if axes is None else axes if isinstance(axes, tuple) else (axes,)
    left = self.axes if keepdim else [x for a, x in enumerate(self.axes) if a not in gone]
    return type(found)(*(Named(t, left) for t in found)) if isinstance(found, tuple) else Named(found, left)

  def _each(self, what: str, call: Callable[..., Any], args: Sequence[Any], options: dict[str, Any]) -> Any:
    """An elementwise operation: names are unified, and those of the result."""
    tensors = [x for x in (*args, *options.values()) if isinstance(x, (Named, Tensor))]
    axes = unified(what, tensors)
    found = call(*map(bare, args), **{n: bare(x) for n, x in options.items()})
    shape = broadcast_shape(*(bare(x).shape for x in tensors))
    if not isinstance(found, Tensor) or found.shape != shape:
      self._wrong(f"{what}: names cannot be followed through it; ask x.tensor", AttributeError)
    return Named(found, axes)

  def __getattr__(self, name: str) -> Any:
    if name in VALUES:
      return getattr(self.tensor, name)
    if name in REDUCING:
      return lambda dim=None, keepdim=False, **options: self._reduced(name, dim, keepdim, options)
    if name in ALONG:
      return lambda dim, **options: Named(
        getattr(self.tensor, name)(self._axes(dim, name), **options), self.axes
      )
    if name in EACH:
      return lambda *args, **options: self._each(name, getattr(Tensor, name), (self, *args), options)
    raise AttributeError(f"a tensor with names has no {name}: x.rename(None).{name} would fit")

  @staticmethod
  def _einsum(formula: str, operands: Sequence[Any], options: dict[str, Any]) -> Named:
    """einsum by name: each operand's axes are those of the formula, in whatever order it has them."""
    ordered, axes, output = in_order(formula, operands)
    return Named(einsum(formula, *ordered, **options), [axes.get(n, Axis(n)) for n in output])  # type: ignore[arg-type]

  @staticmethod
  def _accumulated(target: Tensor, formula: str, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    ordered, _, _ = in_order(formula, operands)
    return accumulated(target, formula, ordered, options.pop("op"), options)


def in_order(formula: str, operands: Sequence[Any]) -> tuple[list[Tensor], dict[str, Axis], list[str]]:
  """Operands with their axes in the order of a formula, what is known of each axis, and the names of the result."""
  inputs, output = expanded(parsed(formula), [bare(x).ndim for x in operands])
  names = [[a.label for a in term if isinstance(a, Index)] for term in (*inputs, output)]
  if any(
    not isinstance(a, Index) or not isinstance(a.label, str) for term in (*inputs, output) for a in term
  ):
    raise ShapeError(f'einsum("{formula}"): axes that have names are found by name alone')
  terms: list[list[str]] = [list(map(str, term)) for term in names]
  axes: dict[str, Axis] = {}
  for x, term in zip(operands, terms):
    if isinstance(x, Named):
      if sorted(map(str, x.names)) != sorted(term):
        there = ", ".join(map(str, x.names))
        x._wrong(f'einsum("{formula}"): "{" ".join(term)}" does not name the axes {there}')
      for n in term:
        a = x.axes[x.names.index(n)]
        axes[n] = met(f'einsum("{formula}")', operands, axes.get(n, a), a)
  return (
    [x.align_to(*t).tensor if isinstance(x, Named) else x for x, t in zip(operands, terms)],
    axes,
    terms[-1],
  )


def bare(x: Any) -> Any:
  """Without names."""
  return x.tensor if isinstance(x, Named) else x


def _operator(name: str, turned: bool) -> Callable[..., Any]:
  apply = getattr(operator, f"__{name}__")
  sign = f"a {SIGNS[name]} b"
  if turned:
    return lambda self, other: self._each(sign, apply, (other, self), {})
  return lambda self, other: self._each(sign, apply, (self, other), {})


def _sign(name: str) -> Callable[..., Any]:
  apply = getattr(operator, name)
  return lambda self: self._each(name, apply, (self,), {})


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
  setattr(Named, f"__{_name}__", _operator(_name, False))
  setattr(Named, f"__r{_name}__", _operator(_name, True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "xor"):
  setattr(Named, f"__{_name}__", _operator(_name, False))
for _name in ("neg", "abs", "invert"):
  setattr(Named, f"__{_name}__", _sign(_name))


# ---------------------------------------------------------------- names of one tensor, and of several


def renamed(x: Tensor, names: Sequence[Any], others: dict[str, Any]) -> tuple[Axis, ...]:
  """The axes of a tensor, from what `rename` was given: names, or a text with kinds, and name=Dim for the last ones."""
  told = len(names) == 1 and isinstance(names[0], str) and not names[0].isidentifier()
  axes = spelled_out(names[0]) if told else [Axis(n) for n in names]
  axes += [Axis(n) for n in others]
  plain = Named(x, [Axis()] * x.ndim)
  if len(axes) != x.ndim:
    plain._wrong(f"rename: {len(axes)} names for {x.ndim} axes")
  for a in axes:
    if a.name is not None and not (isinstance(a.name, str) and a.name.isidentifier()):
      plain._wrong(f"rename: {a.name!r} is no name", DTypeError)
  first = len(axes) - len(others)
  labels = [labelled(plain, a, d, first + n) for n, (a, d) in enumerate(zip(axes[first:], others.values()))]
  return (*axes[:first], *labels)


def spelled_out(text: str) -> list[Axis]:
  """The axes of "batch | input -> output"; without a sign, all are outputs."""
  batch, _, rest = text.rpartition("|")
  into, _, out = rest.rpartition("->")
  kinds = (("batch", batch), ("input", into), ("output", out))
  return [Axis(name, kind) for kind, names in kinds for name in names.split()]


def labelled(x: Named, axis: Axis, dim: Any, at: int) -> Axis:
  if not isinstance(dim, Dim):
    x._wrong(f"rename: {axis.name} is Dim(size, label), not {dim!r}", DTypeError)
  if dim.size != x.tensor.shape[at]:
    x._wrong(f"rename: {axis.name} has size {x.tensor.shape[at]}, and is not {dim!r}")
  return replace(axis, label=dim.label)


def unified(what: str, tensors: Sequence[Any]) -> tuple[Axis, ...]:
  """The axes of what several tensors give element by element, aligned at the last one."""
  axes = [x.axes if isinstance(x, Named) else (Axis(),) * x.ndim for x in tensors]
  out: list[Axis] = []
  for back in range(1, max(map(len, axes)) + 1):
    found = Axis()
    for given in axes:
      if back <= len(given):
        found = met(what, tensors, found, given[-back])
    out.insert(0, found)
  return tuple(out)


def met(what: str, tensors: Sequence[Any], a: Axis, b: Axis) -> Axis:
  """Two axes as one; ShapeError that says both, if they are not the same."""
  for is_, other, shown in ((a.name, b.name, "an axis"), (a.label, b.label, f"the axis {a.name}")):
    if None not in (is_, other) and is_ != other:
      lines = [f"{what}: {shown} is {is_!r}, and {other!r} where it meets that"]
      for letter, x in zip("abcdefgh", tensors):
        named = x if isinstance(x, Named) else Named(x, [Axis()] * x.ndim)
        lines.append(f"  {letter}: {named._spelled()}")
      raise ShapeError("\n".join(lines))
  return Axis(a.name or b.name, a.kind if a.name else b.kind, a.label or b.label)


# ---------------------------------------------------------------- maps


def compose(m: Named, x: Named) -> Named:
  """m after x: the inputs of m are contracted with the outputs of x, in order; batch axes of one name go together.

  m: [batch | k -> o]   x: [batch | i -> k]   ->   [batch | i -> o]

  A vector is a map without inputs. ShapeError where there are not as many inputs as outputs, or their sizes or labels
  differ.

  >>> m = Tensor([[1.0, 2.0], [3.0, 4.0]]).rename("k -> o")
  >>> compose(m, Tensor([[1.0, 10.0]]).rename("b | k"))
  Tensor([[31., 42.]]).rename('b', 'o')
  """
  for name, t in (("m", m), ("x", x)):
    if not isinstance(t, Named):
      about = f"compose(m, x): {name} is {reprlib.repr(t)}, not a tensor with names"
      fail(DTypeError, about, "t.rename('in -> out') makes a map of a tensor t")
  into, end = m._of("input"), x._of("output")
  if len(into) != len(end):
    m._wrong(f"compose(m, x): m has {len(into)} inputs, and x {len(end)} outputs: {x._spelled()}")
  for a, b in zip(into, end):
    met("compose(m, x)", (m, x), replace(m.axes[a], name=None), replace(x.axes[b], name=None))
  batch: dict[str | None, Axis] = {}
  for axis in [t.axes[a] for t in (m, x) for a in t._of("batch")]:
    batch[axis.name] = met("compose(m, x)", (m, x), batch.get(axis.name, axis), axis)
  words = []
  for letter, t, inner in (("m", m, into), ("x", x, end)):
    found = [f"b_{a.name}" if a.kind == "batch" else f"{letter}{n}" for n, a in enumerate(t.axes)]
    for n, a in enumerate(inner):
      found[a] = f"k{n}"
    words.append(found)
  begin, out = x._of("input"), m._of("output")
  result = [*(f"b_{n}" for n in batch), *(words[1][a] for a in begin), *(words[0][a] for a in out)]
  formula = f"{' '.join(words[0])}, {' '.join(words[1])} => {' '.join(result)}"
  axes = [*batch.values(), *(x.axes[a] for a in begin), *(m.axes[a] for a in out)]
  return Named(einsum(formula, m.tensor, x.tensor), axes)  # type: ignore[arg-type]
