"""Gradients of tensors: backward(), hooks, grad(f), value_and_grad(f), custom gradients, checkpoints, no_grad.

What a gradient is stands in mini/grad.py, which works on nodes. Here is which nodes: the leaves that require a gradient
carry a `tag` node of their own, which remembers its handle. A gradient is a graph like any other: it can be
differentiated again, and nothing is computed until it is asked for.
"""

from __future__ import annotations

import functools
import reprlib
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mini.changes import Change, During, all_or_nothing
from mini.engine.device_of import device_of, place
from mini.grad import gradient as node_gradient
from mini.grad import gradients, plus
from mini.gradient_rules import gradient_inputs, made_again, with_gradient, without_gradient
from mini.ir import graph
from mini.ir.inline import written_out
from mini.ir.sizes import Variable
from mini.ir.uop import UOp, next_serial
from mini.tensor.errors import checked, fail, function
from mini.tensor.handle import Handle, needs, on_device
from mini.tensor.losses import Losses
from mini.tensor.realize_group import know
from mini.tensor.trace import local
from mini.tensor.views import derive, nodes_of
from mini.types import ArgumentError, DType, DTypeError, MiniError, ShapeError, as_dtype, promote_types

if TYPE_CHECKING:
  from mini.tensor import Tensor


class _Recording:
  """Sets whether gradients are recorded, in this thread, for a block or a decorated function.

  A Ctrl-C that comes where a block ends may keep `__exit__` from beginning, as that of any class in Python: what must
  not be left so is decorated.
  """

  def __init__(self, on: bool):
    self.on = on
    self.before: list[bool] = []

  def __call__(self, f: Callable) -> Callable:
    @functools.wraps(f)
    def inner(*args: Any, **kwargs: Any) -> Any:
      before, local.gradients = local.gradients, self.on
      try:
        return f(*args, **kwargs)
      finally:
        local.gradients = before

    return inner

  def __enter__(self) -> None:
    self.before.append(local.gradients)
    local.gradients = self.on

  def __exit__(self, *exception: object) -> None:
    local.gradients = self.before.pop()


class no_grad(_Recording):
  """A block, or a decorated function, whose results no gradient passes through.

  >>> x = Tensor([1.0], requires_grad=True)
  >>> with no_grad():
  ...   y = x * 2
  >>> y.requires_grad
  False
  """

  def __init__(self) -> None:
    super().__init__(False)


class enable_grad(_Recording):
  """A block inside `no_grad` in which gradients are recorded again."""

  def __init__(self) -> None:
    super().__init__(True)


def tags_of(u: UOp, given: bool = False) -> list[UOp]:
  """The tags that a gradient passes to from u, in the order in which they are met.
  given: also those with a rule of their own."""
  found: list[UOp] = []
  seen, stack = {u}, [u]
  while stack:
    n = stack.pop()
    if n.op == "tag" and (given or "given" not in n.memo):
      found.append(n)
    for s in gradient_inputs(n):
      if s not in seen and needs(s):
        seen.add(s)
        stack.append(s)
  return found


def leaves(u: UOp) -> list[tuple[UOp, Tensor]]:
  """The tags below u that belong to a living handle which wants a gradient, with it."""
  owned = [
    (n, n.memo[key]()) for n in tags_of(u, given=True) for key in ("owner", "retains") if key in n.memo
  ]
  return [(n, handle) for n, handle in owned if handle is not None]


def unrounded(u: UOp, kind: DType) -> UOp:
  """A gradient in a type, without what it was only rounded to on its way."""
  if u.op == "invoke" and u.dtype.itemsize < kind.itemsize:
    u = written_out(u)
  while u.op == "cast" and u.dtype.itemsize < u.src[0].dtype.itemsize <= kind.itemsize:
    u = u.src[0]
  return graph.cast(u, kind)


def depends_on_more(u: UOp, own: set[UOp]) -> bool:
  """Could a gradient be asked for with respect to something else than these tags?"""
  return any(n not in own for n in tags_of(u))


class Autograd(Losses):
  """Backward."""

  @property
  def grad_dtype(self) -> DType:
    """The type of `.grad`: this tensor's, unless it is set. In a wider one gradients are added up without being rounded
    to the tensor's before. MiniError of what is computed, and where there is a gradient of another type.

    >>> w = Tensor([1.0], dtype="bfloat16", requires_grad=True)
    >>> w.grad_dtype = dtypes.float32
    >>> (w * 3).sum().backward()
    >>> w.grad
    Tensor([3.])
    """
    return self._grad_dtype or self.dtype

  @grad_dtype.setter
  def grad_dtype(self, dtype: Any) -> None:
    kind = as_dtype(dtype)
    if kind.kind != "f":
      fail(DTypeError, f"grad_dtype: a gradient is of a float type, not {kind.name}", x=self)
    if not self.is_leaf:
      fail(MiniError, "grad_dtype: x was computed; that of a leaf can be set", x=self)
    if self._grad is not None and self._grad.dtype is not kind:
      fail(
        MiniError,
        "grad_dtype: there is a gradient of another type; x.grad = None would fit",
        x=self,
        gradient=self._grad,
      )
    self._grad_dtype = kind

  def backward(
    self,
    gradient: Tensor | None = None,
    retain_graph: bool = False,
    create_graph: bool = False,
    inputs: Tensor | Iterable[Tensor] | None = None,
  ) -> None:
    """Add the gradient of this tensor to `.grad` of every leaf that requires one, or of those of `inputs` alone.

    gradient: what is passed back, in this shape; without it this must have one element. Once the tensor has been
    computed after backward(), its graph is dropped, unless retain_graph is set. create_graph: the gradients can be
    differentiated. ShapeError on more than one element; MiniError if nothing requires a gradient.

    >>> w = Tensor([2.0, 3.0], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> w.grad
    Tensor([4., 6.])
    """
    if self.dtype.kind != "f":
      fail(DTypeError, f"x.backward(): only float tensors have gradients, x is {self.dtype.name}", x=self)
    if not needs(self._uop):
      spent = (
        "its graph was dropped after the first backward(): retain_graph=True keeps it" if self._spent else ""
      )
      fail(MiniError, "x.backward(): x depends on no tensor that requires a gradient", hint=spent, x=self)
    if gradient is None and self.numel() != 1:
      fail(
        ShapeError,
        f"x.backward(): x has {self.numel()} elements; a loss has one: "
        "x.sum() or x.mean() would fit, or give gradient=",
        x=self,
      )
    if gradient is not None and gradient.shape != self.shape:
      fail(
        ShapeError, "x.backward(gradient): the gradient does not have x's shape", x=self, gradient=gradient
      )
    if local.current is not None:
      local.current.relies(Hook.changes)
      local.current.differentiates()
    seed = self._seed(gradient)
    found = leaves(self._node)
    if inputs is not None:
      several = [inputs] if isinstance(inputs, Handle) else inputs
      wanted = {part for t in several for part in t._parts()}
      found = [(tag, leaf) for tag, leaf in found if leaf in wanted]
    with During(local, "once", not create_graph):
      gs = node_gradient(self._node, seed, [tag for tag, _ in found])
    given = [
      (leaf, unrounded(at_home(g, tag), leaf.grad_dtype))
      for (tag, leaf), g in zip(found, gs)
      if g is not None
    ]
    before: list[Change] = [(self, "_spent", self._spent)]
    for leaf, _ in given:
      old = leaf._grad
      before.append((leaf, "_grad", old))
      before += [] if old is None else [*nodes_of([old]), (old, "_losses", old._losses)]

    def accumulate() -> None:
      reached = [self._accumulate(leaf, g if create_graph else without_gradient(g)) for leaf, g in given]
      know([*reached, self])
      self._spent = not (retain_graph or create_graph)

    all_or_nothing(before, accumulate)

  def _seed(self, gradient: Tensor | None) -> UOp:
    """What is passed back: 1 where nothing else is given."""
    if gradient is None:
      return graph.full(self.shape, 1, self.dtype)
    seed = graph.cast(gradient._node, self.dtype)
    checked(graph.alu("add", self._node, seed))  # as of any operation of the two
    return seed

  def _accumulate(self, leaf: Handle, g: UOp) -> Tensor:
    """leaf.grad += g, remembering where it came from: computing the leaf anew computes this loss with it."""
    before = leaf.grad
    node = g if before is None else plus(before._node, g)
    fresh = self._new(node) if before is None else before
    if fresh._base is not None:
      with no_grad():
        fresh._bind(node)
    else:
      fresh._node = node
      derive(fresh)
    fresh._losses = (*(() if before is None else before._losses[-7:]), weakref.ref(self))
    leaf.grad = fresh
    return fresh

  def gradient(
    self,
    *wrt: Tensor,
    gradient: Tensor | None = None,
    allow_unused: bool = False,
    materialize_grads: bool = False,
    spacing: Any = 1,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
  ) -> Any:
    """The gradients of this tensor with respect to others, which require one; `.grad` stays as it is.
    They can be differentiated. Without others, PyTorch's `gradient`: the slopes of the numbers along each axis of dim.

    MiniError of one that this tensor does not depend on, such as one that came to require a gradient after it was used;
    with allow_unused its gradient is None, with materialize_grads zeros (PyTorch's `autograd.grad`).

    >>> x = Tensor([3.0], requires_grad=True)
    >>> (x * x).sum().gradient(x)
    [Tensor([6.], requires_grad=True)]

    spacing: between points, or a vector of where they are, or one of these for each axis; edge_order 2: a parabola
    stands at the ends, too.

    >>> Tensor([1.0, 4.0, 9.0, 16.0]).gradient()
    (Tensor([3., 4., 6., 7.]),)
    """
    if not wrt:
      return self._slopes(spacing, dim, edge_order)
    if dim is not None or spacing != 1 or edge_order != 1:
      fail(
        ArgumentError,
        "x.gradient(w): spacing, dim and edge_order are of slopes along axes, without w",
        x=self,
      )
    return pulled_back("x.gradient(w)", {self: gradient}, wrt, allow_unused, materialize_grads)

  def _slopes(self, spacing: Any, dim: Any, edge_order: int) -> tuple[Tensor, ...]:
    spacing = 1 if spacing is None else spacing
    several = isinstance(spacing, (tuple, list))
    if dim is None and several and len(spacing) == 0:
      fail(ArgumentError, "gradient: spacing is empty", x=self)
    axes = self._axes(dim, "gradient")
    steps = list(spacing) if several else [spacing] * len(axes)
    if len(steps) != len(axes) or edge_order not in (1, 2):
      message = f"gradient: {len(steps)} spacings for {len(axes)} axes, and edge_order {edge_order}, 1 or 2"
      fail(ArgumentError, message, x=self)
    return tuple(self._slope(a, h, edge_order) for a, h in zip(axes, steps))

  def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Hook:
    """Call `hook` with the gradient of this tensor whenever one is computed; what it returns, unless that is None,
    takes the gradient's place. `.remove()` of what this returns ends it. (PyTorch's.)

    Of a tensor that was computed, it sees the gradient of what is computed from it from now on.

    >>> w = Tensor([2.0, 3.0], requires_grad=True)
    >>> hook = w.register_hook(lambda g: g * 10)
    >>> w.sum().backward(); w.grad
    Tensor([10., 10.])
    """
    if not needs(self._uop):
      fail(MiniError, "x.register_hook(f): x does not require a gradient", x=self)
    hooks = self._watched().memo.setdefault("hooks", {})
    if self._is_own_tag():
      self._hooks = hooks  # it keeps them when it gets another value
    return Hook(hooks, hook)

  def retain_grad(self) -> None:
    """Have backward() leave a gradient in `.grad` of this tensor, too, though it is no leaf: that of what is computed
    from it from now on.

    >>> w = Tensor([2.0], requires_grad=True)
    >>> y = w * w; y.retain_grad()
    >>> (y * 5).sum().backward(); y.grad
    Tensor([5.])
    """
    if not needs(self._uop):
      fail(MiniError, "x.retain_grad(): x does not require a gradient", x=self)
    if not self._is_own_tag():
      self._watched().memo["retains"] = weakref.ref(self)

  def _watched(self) -> UOp:
    """The node of this tensor, which is no other's, so that it may remember who looks at its gradient."""
    if not self._is_own_tag() and not {"given", "hooks"} <= self._uop.memo.keys():
      self._node = with_gradient(self._node, lambda g, out, x: (g,), self._node)
      self._uop.memo["hooks"] = {}
    return self._uop

  @property
  def retains_grad(self) -> bool:
    """Was it asked to `retain_grad()`?"""
    return "retains" in self._uop.memo


class Hook:
  """A hook of a tensor, until it is removed."""

  changed = 0  # how often hooks of any tensor came or went

  @staticmethod
  def changes() -> int:
    """What was captured before the last of them is captured again."""
    return Hook.changed

  def __init__(self, hooks: dict[Any, Callable[[UOp], UOp]], f: Callable[[Tensor], Tensor | None]):
    self.hooks, self.f = hooks, f
    hooks[self] = self.on_node
    Hook.changed += local.current is None

  def on_node(self, g: UOp) -> UOp:
    new = self.f(Handle._new(g))
    if new is None:
      return g
    if not isinstance(new, Handle) or new.shape != graph.shape(g):
      fail(ShapeError, f"a hook returns None or a gradient of shape {graph.shape(g)}", got=new)
    return graph.cast(new._node, g.dtype)

  def remove(self) -> None:
    """End it."""
    self.hooks.pop(self, None)
    Hook.changed += local.current is None


# ---------------------------------------------------------------- functions


def holds_tensor(x: Any) -> bool:
  """Is it a tensor, or one in other clothes: an array of mini.numpy?"""
  return isinstance(x, Handle) or hasattr(type(x), "_mapped")


def mapped(f: Callable[[Any], Any], tree: Any) -> Any:
  """f of every tensor in nested lists, tuples and dicts, of a complex one of both of its parts; all else stays."""
  if holds_tensor(tree):
    return tree._mapped(f)
  if type(tree) is Variable and isinstance(tree.value, Handle):
    return replace(tree, value=f(tree.value)._uop)
  if isinstance(tree, dict):
    return {k: mapped(f, v) for k, v in tree.items()}
  if isinstance(tree, tuple) and hasattr(tree, "_fields"):
    return type(tree)(*(mapped(f, v) for v in tree))
  return type(tree)(mapped(f, v) for v in tree) if isinstance(tree, (list, tuple)) else tree


def rebuilt(tree: Any, tensors: Iterable[Handle]) -> Any:
  """The tree, with others in the place of its tensors, in their order."""
  rest = iter(tensors)
  return mapped(lambda _: next(rest), tree)


def tensors_of(tree: Any) -> list[Tensor]:
  """The tensors in nested lists, tuples and dicts, of a complex one its parts."""
  return [part for several in parts_of(tree) for part in several]


def parts_of(tree: Any) -> list[list[Tensor]]:
  """Of each tensor in nested lists, tuples and dicts the parts: two of a complex one, else itself."""
  if isinstance(tree, dict):
    tree = tuple(tree.values())
  if isinstance(tree, (list, tuple)):
    return [several for v in tree for several in parts_of(v)]
  found: list[Tensor] = []
  mapped(found.append, tree)
  return [found] if found else []


def given_tensors(what: str, tree: Any) -> list[Tensor]:
  """The same, of an argument that must hold some. DTypeError."""
  found = tensors_of(tree)
  if not found:
    fail(DTypeError, f"{what}: {reprlib.repr(tree)} holds no tensor")
  return found


def chosen(what: str, args: tuple[Any, ...], argnums: int | tuple[int, ...]) -> tuple[Any, ...]:
  """The arguments of these numbers."""
  several = argnums if isinstance(argnums, tuple) else (argnums,)
  for n in several:
    if not -len(args) <= n < len(args):
      fail(
        ArgumentError, f"{what}: argnums is {argnums}, but the function was called with {len(args)} arguments"
      )
  return tuple(args[n] for n in several)


def with_chosen(args: tuple[Any, ...], argnums: int | tuple[int, ...], new: Sequence[Any]) -> list[Any]:
  """The arguments, with new ones of these numbers."""
  out = list(args)
  for n, x in zip(argnums if isinstance(argnums, tuple) else (argnums,), new):
    out[n] = x
  return out


def pulled_back(
  what: str,
  outs: Mapping[Any, Tensor | None],
  wrt: Sequence[Handle],
  allow_unused: bool = False,
  materialize_grads: bool = False,
) -> list[Any]:
  """The gradients of several tensors, each with what is passed back to it (None: 1 to its one element), added up."""
  if local.current is not None:
    local.current.differentiates()
  seeds = []
  outs = {p: h for y, g in outs.items() for p, h in zip(y._parts(), halves(what, y, g))}
  for y, g in outs.items():
    if y.dtype.kind != "f":
      fail(DTypeError, f"{what}: only float tensors have gradients, this one is {y.dtype.name}", y=y)
    if g is None and y.numel() != 1:
      about = (
        f"{what}: y has {y.numel()} elements; a loss has one: y.sum() would fit, or give what is passed back"
      )
      fail(ShapeError, about, y=y)
    if g is not None and g.shape != y.shape:
      fail(ShapeError, f"{what}: what is passed back does not have the shape of y", y=y, gradient=g)
    seeds.append(y._seed(g))
  parts = [p for t in wrt for p in t._parts()]
  for t in parts:
    if not needs(t._uop):
      fail(MiniError, f"{what}: w does not require a gradient", w=t)
  with During(local, "once", False):
    found = gradients([y._node for y in outs], seeds, [t._node for t in parts])
  known = dict(zip(parts, found))
  unused = [t for t in wrt if all(known[p] is None for p in t._parts())]
  if unused and not (allow_unused or materialize_grads):
    fail(
      MiniError,
      f"{what}: y does not depend on w, as it was when y was computed",
      "allow_unused=True gives None for it, materialize_grads=True zeros",
      w=unused[0],
    )
  of_parts = [*map(Handle._new, filled(known.values(), [t._node for t in known]))]
  know(of_parts)
  own = dict(zip(known, of_parts))
  gone = [] if materialize_grads else unused
  return [None if any(t is u for u in gone) else t._mapped(own.__getitem__) for t in wrt]


def halves(what: str, y: Handle, g: Any) -> Sequence[Any]:
  """What is passed back to each part of y."""
  if not y._complex:
    return (g,)
  if g is None:
    fail(
      MiniError,
      f"{what}: a loss is real, y is complex",
      "give what is passed back, or take its real part",
      y=y,
    )
  return g.to(y.dtype)._parts()


def tagged_inputs(what: str, tree: Any) -> tuple[Any, list[UOp]]:
  """The same tree, each tensor of it as one that a gradient is taken with respect to; and the nodes of these."""
  tags: list[UOp] = []

  def tagged(t: Handle) -> Handle:
    if t.dtype.kind != "f":
      fail(DTypeError, f"{what}: only float tensors have gradients, this one is {t.dtype.name}", x=t)
    tags.append(graph.tag(t._node))
    return Handle._new(tags[-1])

  return mapped(tagged, tree), tags


def settled(us: Sequence[UOp], tags: Sequence[UOp], made_of: Sequence[UOp]) -> list[Tensor]:
  """Results without the way to these tags, unless there is one to others: then a gradient may be taken again.

  made_of: nodes that depend on whatever the results depend on
  """
  own = set(tags)
  keep = any(depends_on_more(u, own) for u in made_of)
  return [Handle._new(u if keep or not needs(u) else graph.detach(u)) for u in us]


def filled(found: Iterable[UOp | None], like: Iterable[UOp]) -> list[UOp]:
  """Gradients of these nodes, of which those that are missing are 0."""
  return [at_home(graph.full(graph.shape(t), 0, t.dtype) if g is None else g, t) for g, t in zip(found, like)]


def at_home(g: UOp, x: UOp) -> UOp:
  """A gradient where x is: what is nowhere in particular would be computed on the default device."""
  return g if place(g) or type(place(x)) is not str else on_device(g, device_of(x))


def value_and_grad(
  f: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
  """A function that returns f's value and its gradient with respect to the arguments `argnums`.

  f returns a tensor of one element (has_aux: and something else, handed on). An argument may be nested lists, tuples
  and dicts of tensors: the gradient has the same form. Only the arguments count, not what f gets at otherwise.

  >>> value_and_grad(lambda x: (x * x).sum())(Tensor([1.0, 2.0]))
  (Tensor(5.), Tensor([2., 4.]))
  """

  function("grad", f)

  @functools.wraps(f)
  def both(*args: Any, **kwargs: Any) -> Any:
    several = chosen("grad", args, argnums)
    with enable_grad():
      inside, tags = tagged_inputs("grad", several)
      out = f(*with_chosen(args, argnums, inside), **kwargs)
      value, aux = out if has_aux else (out, None)
      scalar = tensors_of(value)[0] if holds_tensor(value) else None
      if scalar is None or scalar.numel() != 1 or value.dtype.kind != "f":
        fail(
          ShapeError,
          "grad: the function must return a float tensor of one element; its sum() or mean() would fit",
          value=value,
        )
      seed = graph.full(scalar.shape, 1, scalar.dtype)
      found = filled(node_gradient(scalar._node, seed, tags), tags)
      scalar, *parts = settled([scalar._node, *found], tags, [scalar._node])
    value, of_each = rebuilt(value, [scalar]), rebuilt(several, parts)
    return ((value, aux) if has_aux else value), of_each if isinstance(argnums, tuple) else of_each[0]

  return both


def checkpoint(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
  """fn(*args), of which the gradient keeps no value but the results: it computes the others again when it needs them.

  Less memory for more work: of n equal layers, each in a checkpoint, only what passes from one to the next is kept, and
  the values within one layer. fn runs once; random numbers in it, such as dropout's, are the same again. Gradients are
  bitwise those without a checkpoint. Checkpoints nest. With a function alone, a function that does this on each call.
  (PyTorch's torch.utils.checkpoint.checkpoint.)

  >>> w = Tensor([2.0, 3.0], requires_grad=True)
  >>> mini.checkpoint(lambda x: (x * w) * (x * w), Tensor([1.0, 1.0])).sum().backward()
  >>> w.grad
  Tensor([4., 6.])
  """
  function("checkpoint", fn)
  if not args and not kwargs:
    return functools.wraps(fn)(functools.partial(_checkpoint, fn))
  return _checkpoint(fn, *args, **kwargs)


def _checkpoint(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
  def marked(t: Handle) -> Handle:  # so that what is made of it is new, whatever was made of t before
    return Handle._new(graph.tag(t._node)) if needs(t._node) else t

  inside, named = mapped(marked, (args, kwargs))
  start = next_serial()
  with During(local, "again", True):
    result = fn(*inside, **named)
  found: list[UOp] = []
  mapped(lambda t: found.append(t._node), result)
  made_again(found, start)
  return result


def grad(
  f: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
  """A function that returns the gradient of f; with has_aux, (gradient, what else f returned).

  >>> grad(grad(lambda x: x * x * x))(Tensor(2.0)).item()
  12.0
  """
  both = value_and_grad(f, argnums, has_aux)

  @functools.wraps(f)
  def only(*args: Any, **kwargs: Any) -> Any:
    value, gradients = both(*args, **kwargs)
    return (gradients, value[1]) if has_aux else gradients

  return only


def custom_gradient(backward: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
  """A decorator: f with this gradient, and not that of its operations.

  backward(g, out, *args, **kwargs) gets the gradient of what f returned, what f returned, and f's arguments; it returns
  a gradient for each tensor among the arguments, in their order, or None for one that gets none; a complex one for a
  complex argument. Where f returns several tensors, g and out have its form. backward is linear in g; made of tensor
  operations it can be differentiated and vectorized. To tensors that f reaches otherwise, no gradient passes.
  ShapeError where a gradient is not like its argument.

  >>> @mini.custom_gradient(lambda g, out, x: g)  # as if it were the identity
  ... def rounded(x):
  ...   return x.round()
  >>> mini.grad(lambda x: (rounded(x) * 3).sum())(Tensor([0.2, 0.7]))
  Tensor([3., 3.])
  """

  def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
      given = args, kwargs
      inputs = [t._node for t in tensors_of(given)]
      if not (local.gradients and any(map(needs, inputs))):
        return f(*args, **kwargs)
      inside, named = rebuilt(given, (Handle._new(graph.detach(u) if needs(u) else u) for u in inputs))
      result = f(*inside, **named)
      outs = tensors_of(result)
      smooth = [t for t in outs if t.dtype.kind == "f"]
      if not smooth:
        return result
      value = joined(smooth)

      def rule(g: UOp, out: UOp, *src: UOp) -> tuple[UOp | None, ...]:
        with enable_grad():
          again, keywords = rebuilt(given, map(Handle._new, src))
          whole = (parts(u, smooth) for u in (g, out))
          cotangents, values = (rebuilt(result, among(result, p)) for p in whole)
          found = backward(cotangents, values, *again, **keywords)
        return checked_gradients(f, found, src, parts_of(given))

      return rebuilt(result, among(result, parts(with_gradient(value, rule, *inputs), smooth)))

    return call

  return decorate


def joined(tensors: Sequence[Handle]) -> UOp:
  """Several float tensors as one node, in the widest of their types; one tensor as it is."""
  if len(tensors) == 1:
    return tensors[0]._node
  kind = functools.reduce(promote_types, (t.dtype for t in tensors))
  return graph.cat(tuple(graph.reshape(graph.cast(t._node, kind), (t.numel(),)) for t in tensors), 0)


def parts(u: UOp, like: Sequence[Handle]) -> list[Tensor]:
  """What was joined, apart again."""
  if len(like) == 1:
    return [Handle._new(u)]
  found, start = [], 0
  for t in like:
    piece = graph.shrink(u, ((start, start + t.numel()),))
    found.append(Handle._new(graph.cast(graph.reshape(piece, t.shape), t.dtype)))
    start += t.numel()
  return found


def among(tree: Any, smooth: Sequence[Handle]) -> list[Handle]:
  """The tensors of a tree, with these in the place of the float ones."""
  rest = iter(smooth)
  return [next(rest) if t.dtype.kind == "f" else t for t in tensors_of(tree)]


def checked_gradients(
  f: Callable[..., Any], found: Any, inputs: Sequence[UOp], given: Sequence[Sequence[Tensor]]
) -> tuple[UOp | None, ...]:
  """What a given rule returned for tensors of these parts, as nodes: one for each input."""
  name = getattr(f, "__name__", "f")
  whole = tuple(found) if isinstance(found, (tuple, list)) else (found,)
  if len(whole) != len(given):
    fail(
      MiniError,
      f"custom_gradient: backward of {name} returned {len(whole)} gradients for {len(given)} tensors",
    )
  several: list[Any] = []
  for g, t in zip(whole, given):
    several += g._parts() if isinstance(g, Handle) else (g,) * len(t)
    if isinstance(g, Handle) and len(g._parts()) != len(t):
      kinds = "a complex gradient for a real" if g._complex else "a real gradient for a complex"
      fail(MiniError, f"custom_gradient: backward of {name} returned {kinds} tensor")
  for g, u in zip(several, inputs):
    if g is not None and (not isinstance(g, Handle) or g.shape != graph.shape(u)):
      about = f"custom_gradient: backward of {name} returned a gradient that does not have the shape of its argument"
      fail(ShapeError, about, gradient=g, argument=Handle._new(u))
  return tuple(None if g is None else graph.cast(g._node, u.dtype) for g, u in zip(several, inputs))
