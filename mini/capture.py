"""A function of tensors, run once while nothing is computed: what it reads, writes and returns.

What becomes of that is a routine (compiled_function.py); tensors report here by way of mini/tensor/trace.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from mini.changes import Change, setting
from mini.engine.buffer import Buffer
from mini.engine.realize import leaf_of, realize
from mini.engine.sharded import Sharded, buffers, layout
from mini.ir.graph import buffer, shape, shape_of_view
from mini.ir.ops import VIEWS
from mini.ir.uop import UOp, alone, toposort, uop
from mini.tensor import Tensor
from mini.tensor.autograd import holds_tensor
from mini.tensor.errors import fail
from mini.tensor.handle import needs, tagged
from mini.tensor.trace import local, outside
from mini.tensor.views import owner_of, packed, repeats, root_of, strides_of
from mini.types import DType, MiniError

MARKS = ("tag", "detach")


class JitError(MiniError):
  """What a traced function must not do."""


# ---------------------------------------------------------------- views of memory


def base(u: UOp) -> UOp:
  """The memory beneath views, or the node that is computed."""
  top = u
  while u.op in VIEWS or u.op in MARKS:
    u = u.src[0]
  if leaf_of(u) is None:  # some view above it may have been computed
    u = top
    while leaf_of(u) is None and (u.op in VIEWS or u.op in MARKS):
      u = u.src[0]
  return u


def leaf_beneath(t: Tensor) -> UOp:
  leaf = leaf_of(base(t._uop))
  assert leaf is not None
  return leaf


def unmarked(u: UOp) -> UOp:
  while u.op in MARKS:
    u = u.src[0]
  return u


def in_order(u: UOp) -> bool:
  """Do its elements stand in memory as they do in the node beneath its views?"""
  return all(op in ("reshape", "shrink") for op, _ in steps_from(base(u), u))


def moved_strides(t: Tensor) -> tuple[int, ...] | None:
  """Those of a tensor whose elements are not in the order of its axes: what `reshape` copies, it copies inside, too."""
  if t._base is None and t._strides is None:
    return None
  found = strides_of(t)
  return None if found == packed(t.shape) else found


Steps = tuple[tuple[str, Any], ...]  # views, the first one first


def steps_from(root: UOp, u: UOp) -> Steps:
  """The views that lead from root to u."""
  steps = []
  while u is not root:
    if u.op not in MARKS:
      steps.append((u.op, u.arg))
    u = u.src[0]
  return tuple(reversed(steps))


def viewed(u: UOp, steps: Steps) -> UOp:
  """A view of memory that comes and goes with a call: nobody looks for its nodes."""
  s, where = shape(u), u.memo["place"]
  for op, arg in steps:
    u, s = alone(op, u.dtype, (u,), arg), shape_of_view(op, arg, s)
    u.memo["shape"], u.memo["place"] = s, where
  return u


def computed_anew(nodes: Sequence[UOp]) -> list[UOp]:
  """What a function computes, without values that equal nodes have outside of it: their memory would be read by every
  call, whatever becomes of the state that they were computed from."""
  memo: dict[UOp, UOp] = {}
  stack = list(nodes)
  while stack:
    u = stack[-1]
    if u.op == "buffer":
      memo[u] = u
    if u in memo:
      stack.pop()
    elif missing := [s for s in u.src if s not in memo]:
      stack += missing
    else:
      src = tuple(memo[s] for s in u.src)
      memo[u] = alone(u.op, u.dtype, src, u.arg) if "leaf" in u.memo or src != u.src else u
      if "labels" in u.memo:
        memo[u].memo["labels"] = u.memo["labels"]
  return [memo[u] for u in nodes]


def kind(t: Tensor) -> tuple:
  """What a routine relies on of a tensor that it gives another value:
  shape, type, what gradients do, and the device."""
  return t.shape, t.dtype, "leaf" if t._is_own_tag() else "graph" if needs(t._uop) else "", t.device


def view_of(t: Tensor) -> tuple:
  """What a routine relies on of a tensor that it reads: also which view of what memory it is."""
  root = base(t._uop)
  leaf = leaf_of(root)
  where = None if leaf is None else (shape(leaf), layout(leaf.arg[0]))
  return *kind(t), steps_from(root, t._uop), where


def shares(a: UOp, b: UOp) -> bool:
  """Does a leaf have memory in common with b?"""
  return a is b or (b.op == "buffer" and not {*buffers(a.arg[0])}.isdisjoint(buffers(b.arg[0])))


def memory_of(t: Tensor, whole: bool) -> Buffer:
  """The memory that a tensor is a view of; or, if `whole`, that holds the tensor alone."""
  return leaf_alone(t).arg[0] if whole else leaf_beneath(t).arg[0]


def leaf_alone(t: Tensor) -> UOp:
  """The node of memory that holds the tensor alone: of a view, a copy."""
  return t._leaf() or realize([unmarked(t._uop)])[0]


# ---------------------------------------------------------------- tracing


class StandIn(Buffer):
  """The memory of an argument while the function is traced: none. A number's device is "": it goes along with any."""

  __slots__ = ()

  def __init__(self, device: str, dtype: DType, size: int):
    self.device, self.dtype, self.size, self.leaves = device, dtype, size, {}

  @staticmethod
  def like(b: Buffer) -> Buffer:
    if isinstance(b, Sharded):
      return Sharded([StandIn.like(p) for p in b.parts], b.outer)
    return StandIn(b.device, b.dtype, b.size)


class Trace:
  """One run of a function in which nothing is computed; tensors report here (mini/tensor/trace.py).

  It begins with `begin`, and ends with `end`: then all tensors from outside are as they were.
  """

  def __init__(self) -> None:
    self.outer: dict[Tensor, UOp] = {}  # tensors from outside that were read -> the node that each came with
    self.written: dict[Tensor, UOp] = {}  # the same of tensors that got another node before they were read
    self.rebound: dict[Tensor, None] = {}
    self.grads: dict[Tensor, tuple[Tensor | None, bool]] = {}  # -> (.grad at first, did it matter)
    self.takes_gradients = False
    self.goes_on = False  # is the gradient of what was traced made just now?
    self.settings: dict[Callable[[], Hashable], Hashable] = {}
    self.leaves: set[int] = set()  # serials of the memory of `outer`
    self.changed: list[Change] = [(local, "current", None)]  # what is to be set back
    self.end = setting(self.changed)

  def begin(self) -> None:
    local.current = self  # type: ignore[assignment]

  def forget(self) -> None:
    """What was read and written, once it is known elsewhere: tensors that were made here live on, in rules."""
    for found in (self.outer, self.written, self.rebound, self.grads, self.changed):
      found.clear()  # type: ignore[attr-defined]

  def stand_in(self, t: Tensor, is_number: bool) -> Tensor:
    """What the function gets in the place of an argument."""
    b = StandIn("", t.dtype, 1) if is_number else StandIn.like(memory_of(t, True))
    s = Tensor._at(buffer(b, t.shape, t.dtype), t._where)
    if t.requires_grad:
      s.requires_grad_()
    s._grad = t._grad
    s._strides = moved_strides(t)
    self.enter(s)
    return s

  def enter(self, t: Tensor) -> None:
    self.changed.append((t, "_uop", t._uop))
    self.outer[t] = t._uop
    self.leaves.add(leaf_beneath(t).serial)

  def check_arguments(self, stand_ins: dict[Tensor, Tensor]) -> None:
    """JitError for an argument that is also reached from outside, itself or by its memory, where it would matter that
    these are two tensors."""
    outside = {*self.outer, *self.written, *self.grads} - {*stand_ins.values()}
    changed = {owner_of(t) for t in self.rebound} | {
      owner_of(t) for t, s in stand_ins.items() if s in self.rebound
    }
    seen = Counter([*map(owner_of, outside), *map(owner_of, stand_ins)])
    for t, s in stand_ins.items():
      if s in self.rebound and root_of(t) is not None and repeats(t._how):
        fail(
          JitError, "x is an argument of a jitted function, which updates it, and holds elements twice", x=t
        )
      is_shared = owner_of(t) in changed and seen[owner_of(t)] > 1
      if is_shared or (t.requires_grad and t in outside):
        fail(
          JitError,
          "x is an argument of a jitted function that also reaches it from outside, "
          "and updates it or takes its gradient",
          "do either, not both",
          x=t,
        )

  # ---------------------------------------------------------------- what tensors report

  def read(self, t: Tensor) -> None:
    if t._trace is self or t in self.outer or t in self.written:
      return
    inner = leaf_of(base(t._uop))
    if (t._trace is not None and t._trace.goes_on) or (inner and isinstance(inner.arg[0], StandIn)):
      return  # of the function whose gradient this is
    with outside():
      if t._trace is not None:
        t._trace.escaped(t)
      if leaf_of(unmarked(t._uop)) is not None or leaf_of(base(t._uop)) is None:
        t.realize()
      node = unmarked(t._uop)
      if node.op == "buffer" and any(shares(node, unmarked(u)) for u in self.outer.values()):
        own = node.arg[0].copy()  # of two zeros, which will become different
        t._set(buffer(own, t.shape, t.dtype))
    if needs(t._uop) and not t._is_own_tag():
      if local.gradients:
        fail(
          JitError,
          "no gradient passes into a jitted function, and x depends on a tensor that requires one",
          "x.detach() would do",
          x=t,
        )
      self.enter(t)
      t._uop = uop("detach", t.dtype, (t._uop,))
    else:
      self.enter(t)
    root = base(t._uop)
    leaf = leaf_of(root)
    if (
      leaf is not None and leaf is not root
    ):  # a value that was computed: the memory, and not how it came about
      for op, arg in steps_from(root, t._uop):
        leaf = uop(op, leaf.dtype, (leaf,), arg)
      t._uop = tagged(t, leaf) if t._is_own_tag() else leaf

  def rebind(self, t: Tensor) -> None:
    if t._trace is not self:
      if t not in self.outer and t not in self.written:
        self.changed.append((t, "_uop", t._uop))
        self.written[t] = t._uop
      self.rebound[t] = None

  def gradient(self, t: Tensor, looks: bool) -> None:
    if t._trace is not self and t not in self.grads:
      self.changed.append((t, "_grad", t._grad))
      self.grads[t] = t._grad, looks

  def differentiates(self) -> None:
    self.takes_gradients = True

  def relies(self, on: Callable[[], Hashable]) -> None:
    self.settings.setdefault(on, on())

  def has_changed(self, tensors: Iterable[Tensor]) -> bool:
    return any(t in self.rebound for t in tensors)

  def realize(self, tensors: list[Tensor]) -> None:
    """Nothing: results are computed when the routine runs."""

  def value(self, t: Tensor, what: str) -> NoReturn:
    leaf = None if t._complex else leaf_of(t._uop)
    if leaf is not None and isinstance(leaf.arg[0], StandIn) and not leaf.arg[0].device:
      fail(
        JitError,
        f"{what} inside a jitted function: x was given as a number, which may be another in each call",
        "what does not change comes by closure or functools.partial; a size that does is a mini.Variable",
        x=t,
      )
    fail(
      JitError,
      f"{what} inside a jitted function: a traced tensor has no value yet; return it and ask outside",
      x=t,
    )

  def escaped(self, t: Tensor) -> None:
    if self.goes_on:
      return
    if any(u.serial in self.leaves for u in toposort(t._uop)):
      fail(
        JitError,
        "x was made inside a jitted function and has no value outside",
        "let the function return it, or assign it to a tensor that was there before",
        x=t,
      )
    t._trace = None


# ---------------------------------------------------------------- arguments and results


class Place(NamedTuple):
  """How a call finds a tensor: the tensor itself, the n-th argument, or the gradient of either."""

  of: Tensor | int
  grad: bool = False

  @property
  def is_argument(self) -> bool:
    return isinstance(self.of, int) and not self.grad

  def find(self, args: Sequence[Tensor]) -> Tensor:
    of, grad = self
    t = args[of] if type(of) is int else of
    return t._grad if grad else t  # type: ignore[return-value,union-attr]


SLOT = object()  # where a tensor stands in what a function returned


def filled(tree: Any, tensors: Iterator[Tensor]) -> Any:
  """The function's result with new tensors in its slots."""
  if tree is SLOT:
    return next(tensors)
  if holds_tensor(tree):  # a complex one, or an array, with slots
    return tree._mapped(lambda slot: filled(slot, tensors))
  if isinstance(tree, dict):
    return {k: filled(v, tensors) for k, v in tree.items()}
  if isinstance(tree, (list, tuple)):
    items = [filled(v, tensors) for v in tree]
    return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
  return tree
