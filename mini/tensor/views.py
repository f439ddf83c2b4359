"""Views: handles that share memory, as users of PyTorch know it, made of values that never change.

A view keeps its base, a handle, and the steps that lead from there to it. A write to a view is another value of its
base, in which the view's elements are replaced, and all views of a base that has got another value are derived from it
anew. So each handle has the node of its value at all times: no graph, trace or program knows of views.

A step is a row of STEPS, and what PyTorch gives as a view: basic indices, `narrow`, `split`, `unbind`, `diagonal`,
`permute`, `view`, `expand`, `detach`, ... What is computed, gathered by a mask or a vector, cloned, or made contiguous
is a copy. So is `reshape` where PyTorch has to copy: strides tell it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from mini.changes import Change
from mini.gradient_rules import constant_in, needs, with_gradient
from mini.ir import graph
from mini.ir.sizes import Size, number, varies
from mini.ir.uop import UOp, const, uop
from mini.tensor.errors import fail
from mini.tensor.trace import local
from mini.types import MiniError, dtypes

if TYPE_CHECKING:
  from mini.tensor.handle import Handle

Sizes = tuple[int, ...]
Steps = tuple[tuple[str, Any], ...]
MOST_PUT = 1 << 20  # elements that are put one by one
How = tuple[Any, Steps] | None  # the steps of the view that it was made of, and then its own


# ---------------------------------------------------------------- parts of axes


def around(s: Sequence[int], axis: int, before: int, after: int) -> tuple[tuple[int, int], ...]:
  """Widths that pad one axis."""
  return tuple((before, after) if a == axis else (0, 0) for a in range(len(s)))


def span(u: UOp, axis: int, start: int, stop: int) -> UOp:
  """Elements start..stop-1 along an axis."""
  return graph.shrink(u, tuple((start, stop) if a == axis else (0, n) for a, n in enumerate(graph.shape(u))))


def strided(u: UOp, axis: int, step: int) -> UOp:
  """Every step-th element along an axis, from the first on."""
  s = graph.shape(u)
  count = -(-s[axis] // step)
  u = graph.pad(u, around(s, axis, 0, count * step - s[axis]))
  u = graph.reshape(u, (*s[:axis], count, step, *s[axis + 1 :]))
  u = graph.shrink(u, tuple((0, 1 if a == axis + 1 else n) for a, n in enumerate(graph.shape(u))))
  return graph.reshape(u, (*s[:axis], count, *s[axis + 1 :]))


def spread(u: UOp, axis: int, step: int, size: int) -> UOp:
  """The inverse of `strided`: zeros between the elements, so that the axis has `size`."""
  s = graph.shape(u)
  u = graph.reshape(u, (*s[: axis + 1], 1, *s[axis + 1 :]))
  u = graph.pad(u, around(graph.shape(u), axis + 1, 0, step - 1))
  u = graph.reshape(u, (*s[:axis], s[axis] * step, *s[axis + 1 :]))
  if s[axis] * step < size:
    return graph.pad(u, around(graph.shape(u), axis, 0, size - s[axis] * step))
  return graph.shrink(u, tuple((0, size if a == axis else n) for a, n in enumerate(graph.shape(u))))


class Cut(NamedTuple):
  """What a slice or an int takes of one axis: elements start, start+step, ...
  (`taken` of them), in reverse if flipped."""

  size: int
  start: int
  step: int
  taken: int
  flipped: bool

  @property
  def is_whole(self) -> bool:
    return self.taken == self.size and not self.flipped


def whole(n: int) -> Cut:
  return Cut(n, 0, 1, n, False)


def cut(u: UOp, cuts: Sequence[Cut]) -> UOp:
  """The elements that the cuts take."""
  ends = [c.start + (c.taken - 1) * c.step + 1 if c.taken != 0 else c.start for c in cuts]
  u = graph.shrink(u, tuple((0, c.size) if c.is_whole else (c.start, end) for c, end in zip(cuts, ends)))
  for a, c in enumerate(cuts):
    if c.is_whole:
      continue
    u = strided(u, a, c.step) if c.step > 1 and c.taken else u
    u = graph.flip(u, (a,)) if c.flipped else u
  return u


def uncut(u: UOp, cuts: Sequence[Cut]) -> UOp:
  """The inverse of `cut`: zeros where nothing was taken."""
  for a, c in enumerate(cuts):
    if c.is_whole:
      continue
    u = graph.flip(u, (a,)) if c.flipped else u
    length = (c.taken - 1) * c.step + 1 if c.taken != 0 else 0
    u = spread(u, a, c.step, length) if c.step > 1 and c.taken else u
    u = graph.pad(u, around(graph.shape(u), a, c.start, c.size - c.start - length))
  return u


def put(u: UOp, cuts: Sequence[Cut], new: UOp) -> UOp:
  """u, with `new` where the cuts take it."""
  if is_small_part(u, new):
    return put_from(u, cuts, new)
  here = uncut(graph.full(graph.shape(new), True, dtypes.bool), cuts)
  return graph.alu("where", here, uncut(new, cuts), u)


def is_small_part(u: UOp, new: UOp) -> bool:
  """Is it few of many elements, as a loop writes them, each time elsewhere? Not where a gradient passes, to which a
  select is dearer than two, nor in what is compiled once."""
  traced = local.current is not None or local.samples is not None
  if traced or varies(graph.shape(u)) or varies(graph.shape(new)) or needs(u) or needs(new):
    return False
  return 0 < graph.numel(new) <= min(graph.numel(u) // 8, MOST_PUT)


def put_from(u: UOp, cuts: Sequence[Cut], new: UOp) -> UOp:
  """`put`, where the place of the first element is an argument of the program: one program serves all places."""
  s = graph.shape(u)
  kind = dtypes.int32 if graph.numel(u) < 1 << 31 else dtypes.int64
  at, stride, start = const(0, kind), graph.numel(u), 0
  for a, c in enumerate(cuts):
    stride //= c.size
    step = -c.step if c.flipped else c.step
    start += stride * (c.start + (c.taken - 1) * c.step if c.flipped else c.start)
    line = graph.cast(graph.iota(c.taken), kind)
    line = graph.reshape(line, tuple(c.taken if b == a else 1 for b in range(len(s))))
    line = graph.expand(line, graph.shape(new))
    at = graph.alu("add", at, graph.alu("mul", line, const(step * stride, kind)))
  at = graph.alu("add", at, uop("const", kind, (), Size(start)))
  flat = (graph.numel(new),)
  found = graph.scatter(
    graph.reshape(u, (graph.numel(u),)), graph.reshape(at, flat), graph.reshape(new, flat), "set", 0
  )
  return graph.reshape(found, s)


def on_diagonal(u: UOp) -> UOp:
  """The diagonal of the last two axes, of one size n, as the last: every n+1-th element.   [.., n, n] -> [.., n]"""
  *s, _, n = graph.shape(u)
  flat = graph.reshape(u, (*s, n * n))
  flat = graph.pad(flat, around(graph.shape(flat), len(s), 0, n))
  return graph.reshape(span(graph.reshape(flat, (*s, n, n + 1)), len(s) + 1, 0, 1), (*s, n))


def off_diagonal(u: UOp) -> UOp:
  """The inverse of `on_diagonal`: zeros elsewhere.   [.., n] -> [.., n, n]"""
  *s, n = graph.shape(u)
  rows = graph.pad(graph.reshape(u, (*s, n, 1)), around((*s, n, 1), len(s) + 1, 0, n))
  return graph.reshape(span(graph.reshape(rows, (*s, n * (n + 1))), len(s), 0, n * n), (*s, n, n))


def from_front(u: UOp, n: int) -> UOp:
  """Indices with the negative ones counted from the end. What is too far below 0 stays as it is, for the error."""
  if u.dtype.kind != "i":
    return u
  if n > dtypes.iinfo(u.dtype).max:
    u = graph.cast(u, dtypes.int64)
  shifted = graph.alu("add", u, number([n], u.dtype))
  zero = const(0, u.dtype)
  from_end = graph.alu("where", graph.alu("lt", shifted, zero), u, shifted)
  return graph.alu("where", graph.alu("lt", u, zero), from_end, u)


# ---------------------------------------------------------------- strides


def packed(s: Sizes) -> Sizes:
  """The strides of a memory in the order of its axes."""
  return tuple(prod(max(n, 1) for n in s[a + 1 :]) for a in range(len(s)))


def reshaped(s: Sizes, strides: Sizes, new: Sizes) -> Sizes | None:
  """The strides of the same memory in another shape; None where it has to be copied. (PyTorch's `computeStride`: axes
  that lie in one another are one, of which the new axes are parts.)"""
  if s == new:
    return strides
  if varies((*s, *new)):
    return packed(new) if strides == packed(s) else None
  if 0 in s:
    return packed(new)
  blocks: list[list[int]] = []  # (elements, stride of the last axis)
  for n, stride in zip(s, strides):
    if n == 1:
      continue
    if blocks and blocks[-1][1] == n * stride:
      blocks[-1] = [blocks[-1][0] * n, stride]
    else:
      blocks.append([n, stride])
  found: list[int] = []
  left, stride = blocks.pop() if blocks else [1, 1]
  for n in reversed(new):
    if left == 1 and n != 1 and blocks:
      left, stride = blocks.pop()
    if left % n:
      return None
    found.append(stride)
    left, stride = left // n, stride * n
  return tuple(reversed(found))


def strides_of(t: Handle) -> Sizes | None:
  """How far neighbours along each axis are apart in the memory of which it is a view. What was computed lies in the
  order of its axes. What a view keeps are those that it has with its base or without, for `reshape` copies it or not
  whether somebody still holds the base or nobody."""
  if t._strides is not None:
    return t._strides
  base = root_of(t)
  return packed(t.shape) if base is None else strides_along(t._how, base._uop, base._strides)


def strides_along(how: How, u: UOp, strides: Sizes | None) -> Sizes | None:
  """Those of a view of a base that has this node and these strides (None: in the order of its axes)."""
  strides = strides or packed(graph.shape(u))
  for kind, arg in steps_of(how):
    found = STEPS[kind].strides(graph.shape(u), strides, arg)
    if found is None:
      return None
    u, strides = STEPS[kind].down(u, arg), found
  return strides


def fits(t: Handle, shape: Sizes) -> bool:
  """Is the memory of a tensor that of another shape, too?"""
  if t._base is None and t._strides is None:
    return True
  strides = strides_of(t)
  return strides is not None and reshaped(t.shape, strides, shape) is not None


def _cut_strides(s: Sizes, strides: Sizes, cuts: Sequence[Cut]) -> Sizes:
  by = ((-c.step if c.flipped else c.step) for c in cuts)
  return tuple(n * k for n, k in zip(strides, by))


def _order_strides(s: Sizes, strides: Sizes, order: Sizes) -> Sizes:
  return tuple(strides[a] for a in order)


def _picked_strides(s: Sizes, strides: Sizes, at: tuple[int, UOp]) -> Sizes:
  return (*strides[: at[0]], *strides[at[0] + 1 :])


def _diagonal_strides(s: Sizes, strides: Sizes, _: None) -> Sizes:
  return (*strides[:-2], strides[-2] + strides[-1])


def _repeated_strides(s: Sizes, strides: Sizes, new: Sizes) -> Sizes:
  own = [0 if n == 1 and m != 1 else k for n, m, k in zip(s, new[len(new) - len(s) :], strides)]
  return (*(0,) * (len(new) - len(s)), *own)


# ---------------------------------------------------------------- the steps


class Step(NamedTuple):
  """A kind of view: what it is of a node; the transpose of that, with zeros elsewhere, in the shape that the node has
  (None where elements repeat, so that they cannot be written); and its strides, None where those are not known."""

  down: Callable[[UOp, Any], UOp]
  up: Callable[[UOp, Any, Sizes], UOp] | None
  strides: Callable[[Sizes, Sizes, Any], Sizes | None]


def detached(u: UOp, *_: Any) -> UOp:
  return graph.detach(u) if needs(u) else u


def _picked(u: UOp, at: tuple[int, UOp]) -> UOp:
  """The element at a 0-d index along an axis, without that axis."""
  axis, _ = at
  s = graph.shape(u)
  return graph.reshape(graph.gather(u, _index(s, at), axis), (*s[:axis], *s[axis + 1 :]))


def _index(s: Sizes, at: tuple[int, UOp]) -> UOp:
  axis, index = at
  room = (*s[:axis], 1, *s[axis + 1 :])
  return graph.expand_to(from_front(index, s[axis]), room)


def _put(u: UOp, at: tuple[int, UOp], value: UOp) -> UOp:
  s = graph.shape(u)
  index = _index(s, at)
  return graph.scatter(u, index, graph.reshape(value, graph.shape(index)), "set", at[0])


def _negated(u: UOp, *_: Any) -> UOp:
  return graph.alu("mul", u, const(-1, u.dtype)) if u.dtype is not dtypes.bool else u


def _ordered(u: UOp, order: Sizes, _: Sizes) -> UOp:
  return graph.permute(u, tuple(order.index(a) for a in range(len(order))))


# fmt: off
STEPS = {
  "same":     Step(lambda u, _: u,              lambda u, _, s: u,                 lambda s, k, _: k),
  "detached": Step(detached,                    detached,                          lambda s, k, _: k),
  "negated":  Step(_negated,                    _negated,                          lambda s, k, _: k),
  "bits":     Step(graph.bitcast,               lambda u, _, s: u,                 lambda s, k, _: k),
  "order":    Step(graph.permute,               _ordered,                          _order_strides),
  "shape":    Step(graph.reshape,               lambda u, _, s: graph.reshape(u, s), reshaped),
  "cut":      Step(cut,                         lambda u, cuts, s: uncut(u, cuts), _cut_strides),
  "diagonal": Step(lambda u, _: on_diagonal(u), lambda u, _, s: off_diagonal(u),   _diagonal_strides),
  "picked":   Step(_picked,                     None,                              _picked_strides),
  "repeated": Step(graph.expand_to,             None,                              _repeated_strides),
  # by a function of nodes, and one of strides
  "computed": Step(lambda u, f: f[0](u),        None,                              lambda s, k, f: f[1](k)),
}
# fmt: on


VALUES = ("detached", "negated", "bits")  # steps at which an element has another value, and stays where it is


def steps_of(how: How) -> list[tuple[str, Any]]:
  """From the base on."""
  found: list[Steps] = []
  while how is not None:
    how, own = how
    found.append(own)
  return [step for steps in reversed(found) for step in steps]


def derived(u: UOp, how: How) -> UOp:
  """The view of a base that has this node."""
  for kind, arg in steps_of(how):
    u = STEPS[kind].down(u, arg)
  return u


def placed(u: UOp, how: How, value: UOp) -> UOp:
  """The node of a base that had this one, once its view is `value`: one select, however many steps there are."""
  steps, path = steps_of(how), [u]
  if steps and steps[0][0] == "cut" and [kind for kind, _ in steps[1:]] in ([], ["shape"]):
    return put(u, steps[0][1], graph.reshape(value, tuple(c.taken for c in steps[0][1])))
  for kind, arg in steps:
    path.append(STEPS[kind].down(path[-1], arg))
  here: UOp | None = None  # where the value is; None: everywhere
  for (kind, arg), before, after in zip(reversed(steps), reversed(path[:-1]), reversed(path)):
    s, up = graph.shape(before), STEPS[kind].up
    if kind == "picked":
      value, here = _put(before, arg, value if here is None else graph.alu("where", here, value, after)), None
      continue
    assert up is not None
    if kind == "bits":
      value = graph.bitcast(value, before.dtype)
    if kind == "diagonal" or kind == "cut" and not all(c.is_whole for c in arg):
      here = graph.full(graph.shape(after), True, dtypes.bool) if here is None else here
    here = here if here is None or kind in VALUES else up(here, arg, s)
    value = up(value, arg, s)
  return value if here is None else graph.alu("where", here, value, u)


def repeats(how: How) -> bool:
  """Are elements of the base in several places of the view, or may they be?"""
  return any(STEPS[kind].up is None and kind != "picked" for kind, _ in steps_of(how))


# ---------------------------------------------------------------- bases and views


def share(view: Handle, base: Handle, steps: Steps) -> None:
  """Make a handle, which has the node, a view of another one, or of what that is a view of."""
  root = base if base._base is None else root_of(base)
  if root is None or root is base:
    root, view._how = base, (None, steps)
  else:
    view._how = base._how, steps
  view._base, views = root, root._views
  if views is None:
    views = root._views = []
  elif not len(views) & (len(views) - 1):
    views[:] = [ref for ref in views if ref() is not None]
  views.append(weakref.ref(view))


def root_of(t: Handle) -> Handle | None:
  """The handle of which it is a view."""
  base = t._base
  if not isinstance(base, weakref.ref):
    return base
  found = base()
  if found is None:
    t._base = t._how = None
  return found


def owner_of(t: Handle) -> Handle:
  """The handle of which it is a view, or itself."""
  base = root_of(t)
  return t if base is None else base


def views_of(base: Handle) -> Iterator[Handle]:
  """Its living views."""
  if base._views:
    for ref in base._views:
      t = ref()
      if t is not None and t._base is not None and root_of(t) is base:
        yield t


def is_only(view: Handle, base: Handle) -> bool:
  """Has its base no other living view? Then alone a view may hold it weakly: two that do would part when it goes."""
  return all(t is view for t in views_of(base))


def nodes_of(tensors: Iterable[Handle]) -> list[Change]:
  """Their nodes, and those of all that shares their memory: what a write to them changes."""
  owners = dict.fromkeys(map(owner_of, tensors))
  return [(t, "_uop", t._uop) for base in owners for t in (base, *views_of(base))]


def derive(base: Handle, writer: Handle | None = None) -> None:
  """Give the views of a base that has got another value theirs. writer: the one that has it already."""
  for t in [*views_of(base)] if base._views else ():
    t._base = base
    if t is not writer:
      t._set(derived(base._uop, t._how))


def write(view: Handle, base: Handle, value: UOp) -> None:
  """Give a view another value, and with it its base."""
  apart = any(kind == "detached" for kind, _ in steps_of(view._how))
  change(base, placed(base._node, view._how, value), local.gradients and not apart)
  change(view, value, local.gradients)
  derive(base, view)


def change(t: Handle, node: UOp, recorded: bool) -> None:
  """Give a handle another value, as gradients see it in PyTorch: what required one goes on to do so. Where a change is
  not recorded (under no_grad, or in `x.data`), they pass as if it were not. A leaf is a leaf."""
  before = t._uop
  if t._is_own_tag():
    pass
  elif recorded:
    node = node if needs(node) else constant_in(node, before)
  else:
    node = with_gradient(node, lambda g, out, x: (g,), before) if needs(before) else detached(node)
  t._set(node)


def base_to_compute(view: Handle) -> Handle | None:
  """The base that is computed with a view: where several views are all of it, they do not keep its graph for it."""
  base = root_of(view)
  if base is None or base.is_realized or needs(base._uop):
    return None
  sizes = [t.numel() for t in views_of(base)]
  return base if len(sizes) > 1 and sum(sizes) >= base.numel() else None


def let_go(view: Handle) -> None:
  """Of a view that has been computed, if it is the only one: the base stays for others alone. Where none has it, nobody
  sees what is written; where it is only a graph, it is not kept for this view's sake. Of several, each keeps it."""
  base = root_of(view)
  if base is None or not is_only(view, base):
    return
  stays = base.is_realized
  view._base = ref = weakref.ref(base)
  node, strides = base._uop, base._strides
  del base
  base = ref()
  if base is None or not stays:
    view._strides = strides_along(view._how, node, strides)
  if base is None:
    view._base = view._how = None
  elif stays:
    view._base = base


# ---------------------------------------------------------------- other memory


def check_writable(t: Handle, what: str) -> None:
  """MiniError, if this cannot be changed in place."""
  base = root_of(t)
  leaf = t if base is None or t._is_own_tag() else base if needs(t._uop) else None
  if local.gradients and leaf is not None and leaf._is_own_tag():
    is_leaf = "a leaf" if leaf is t else "a view of a leaf"
    fail(
      MiniError,
      f"{what}: a is {is_leaf} that requires a gradient; do it under no_grad(), or with a.assign(...)",
      a=t,
    )
  if base is not None and repeats(t._how):
    fail(
      MiniError,
      f"{what}: the elements of a are not one to one elements of the tensor that it is a view of",
      "a.clone() has memory of its own",
      a=t,
      base=base,
    )


def check_traceless(t: Handle) -> None:
  """MiniError of a tensor from outside a jitted function: whose memory it shares may not depend on tracing it."""
  if local.current not in (None, t._trace):
    fail(MiniError, "inside a jitted function, a tensor that shares its memory gets another one", x=t)


def apart(t: Handle) -> Handle | None:
  """Share memory with no other handle from now on. Its views keep a base that has the value: that."""
  views = [*views_of(t)]
  if views or t._base is not None:
    check_traceless(t)
  strides, t._base, t._how, t._views, t._strides = t._strides, None, None, None, None
  if not views:
    return None
  base = t._at(t._uop, t._where)
  base._strides = strides
  base._views = [weakref.ref(v) for v in views]
  for v in views:
    v._base = base
  return base


def become(t: Handle, view: Handle) -> None:
  """In place, what a view of this tensor is."""
  strides, how, view._base = strides_of(view), view._how, None
  if root_of(t) is not None:
    check_traceless(t)
    t._how = how
  elif (base := apart(t)) is not None:
    assert how is not None
    share(t, base, how[1])
  t._strides = strides
  t._set(view._node)


def set_data(t: Handle, value: Handle) -> None:
  """Share memory with another tensor of this type."""
  if value is not t:
    apart(t)
    node = value._node
    t._set(graph.detach(node) if needs(node) else node)
    if local.current in (None, t._trace):  # a trace leaves no traces: inside, it is a copy
      share(t, value, (("detached", None),))
