"""Gradients of tensors: backward(), grad(f), value_and_grad(f), no_grad.

What a gradient is stands in mini/grad.py, which works on nodes. Here is which nodes: the leaves that require a gradient
carry a `tag` node of their own, which remembers its handle. A gradient is a graph like any other: it can be
differentiated again, and nothing is computed until it is asked for.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import TYPE_CHECKING, Any

from mini.grad import gradient as node_gradient
from mini.grad import made_again, plus
from mini.ir import graph
from mini.ir.uop import UOp, next_serial
from mini.tensor.handle import Handle, checked, fail, needs
from mini.tensor.losses import Losses
from mini.tensor.trace import local
from mini.types import DTypeError, MiniError, ShapeError

if TYPE_CHECKING:
  from mini.tensor import Tensor


class _Recording(ContextDecorator):
  """Sets whether gradients are recorded, in this thread, for a block or a decorated function."""

  def __init__(self, on: bool):
    self.on = on
    self.before: list[bool] = []

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


def tags_of(u: UOp) -> list[UOp]:
  """The tags that a gradient passes to from u, in the order in which they are met."""
  found: list[UOp] = []
  seen, stack = {u}, [u]
  while stack:
    n = stack.pop()
    if n.op == "tag":
      found.append(n)
    for s in n.src:
      if s not in seen and needs(s):
        seen.add(s)
        stack.append(s)
  return found


def leaves(u: UOp) -> list[tuple[UOp, Handle]]:
  """The tags below u that belong to a living handle, with it."""
  owned = [(n, n.memo["owner"]()) for n in tags_of(u) if "owner" in n.memo]
  return [(n, handle) for n, handle in owned if handle is not None]


def depends_on_more(u: UOp, own: set[UOp]) -> bool:
  """Could a gradient be asked for with respect to something else than these tags?"""
  return any(n not in own for n in tags_of(u))


class Autograd(Losses):
  """Backward."""

  def backward(
    self, gradient: Tensor | None = None, retain_graph: bool = False, create_graph: bool = False
  ) -> None:
    """Add the gradient of this tensor to `.grad` of every leaf that requires one.

    gradient: what is passed back, in this shape; without it this must have one element. Once the tensor has been computed
    after backward(), its graph is dropped, unless retain_graph is set. create_graph: the gradients can be differentiated.
    ShapeError on more than one element; MiniError if nothing requires a gradient.

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
        f"x.backward(): x has {self.numel()} elements; a loss has one: x.sum() or x.mean() would fit, or give gradient=",
        x=self,
      )
    if gradient is not None and gradient.shape != self.shape:
      fail(
        ShapeError, "x.backward(gradient): the gradient does not have x's shape", x=self, gradient=gradient
      )
    seed = self._seed(gradient)
    found = leaves(self.uop)
    for (_, leaf), g in zip(found, node_gradient(self.uop, seed, [tag for tag, _ in found])):
      if g is not None:
        self._accumulate(leaf, g if create_graph or not needs(g) else graph.detach(g))
    self._spent = not (retain_graph or create_graph)

  def _seed(self, gradient: Tensor | None) -> UOp:
    """What is passed back: 1 where nothing else is given."""
    if gradient is None:
      return graph.full(self.shape, 1, self.dtype)
    seed = graph.cast(gradient.uop, self.dtype)
    checked(graph.alu("add", self.uop, seed))  # as of any operation of the two
    return seed

  def _accumulate(self, leaf: Handle, g: UOp) -> None:
    """leaf.grad += g, remembering where it came from: computing the leaf anew computes this loss with it."""
    before = leaf.grad
    node = g if before is None else plus(before.uop, g)
    fresh = self._new(node) if before is None else before
    fresh.uop = node
    fresh._losses = (*(() if before is None else before._losses[-7:]), weakref.ref(self))
    leaf.grad = fresh

  def gradient(self, *wrt: Tensor, gradient: Tensor | None = None) -> list[Tensor]:
    """The gradients of this tensor with respect to others, which require one; `.grad` stays as it is. They can be differentiated.

    >>> x = Tensor([3.0], requires_grad=True)
    >>> (x * x).sum().gradient(x)
    [Tensor([6.], requires_grad=True)]
    """
    if gradient is None and self.numel() != 1:
      fail(
        ShapeError,
        f"x.gradient(): x has {self.numel()} elements; a loss has one: x.sum() would fit, or give gradient=",
        x=self,
      )
    seed = self._seed(gradient)
    for t in wrt:
      if not needs(t._uop):
        fail(MiniError, "x.gradient(w): w does not require a gradient", x=self, w=t)
    found = node_gradient(self.uop, seed, [t.uop for t in wrt])
    return [t.zeros_like() if g is None else self._new(g) for t, g in zip(wrt, found)]


# ---------------------------------------------------------------- functions


def mapped(f: Callable[[Any], Any], tree: Any) -> Any:
  """f of every tensor in nested lists, tuples and dicts; all else stays."""
  if isinstance(tree, Handle):
    return f(tree)
  if isinstance(tree, dict):
    return {k: mapped(f, v) for k, v in tree.items()}
  if isinstance(tree, tuple) and hasattr(tree, "_fields"):
    return type(tree)(*(mapped(f, v) for v in tree))
  return type(tree)(mapped(f, v) for v in tree) if isinstance(tree, (list, tuple)) else tree


def value_and_grad(
  f: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
  """A function that returns f's value and its gradient with respect to the arguments `argnums`.

  f returns a tensor of one element (has_aux: and something else, handed on). An argument may be nested lists, tuples and
  dicts of tensors: the gradient has the same form. Only the arguments count, not what f gets at otherwise.

  >>> value_and_grad(lambda x: (x * x).sum())(Tensor([1.0, 2.0]))
  (Tensor(5.), Tensor([2., 4.]))
  """
  several = argnums if isinstance(argnums, tuple) else (argnums,)

  @functools.wraps(f)
  def both(*args: Any, **kwargs: Any) -> Any:
    tags: list[Handle] = []

    def tagged(t: Handle) -> Handle:
      if t.dtype.kind != "f":
        fail(DTypeError, f"grad: only float tensors have gradients, this one is {t.dtype.name}", x=t)
      tags.append(Handle._new(graph.tag(t.uop)))
      return tags[-1]

    with enable_grad():
      inside = [mapped(tagged, a) if i in several else a for i, a in enumerate(args)]
      out = f(*inside, **kwargs)
      value, aux = out if has_aux else (out, None)
      if not isinstance(value, Handle) or value.numel() != 1 or value.dtype.kind != "f":
        fail(
          ShapeError,
          "grad: the function must return a float tensor of one element; its sum() or mean() would fit",
          value=value,
        )
      seed = graph.full(value.shape, 1, value.dtype)
      found = iter(zip(tags, node_gradient(value.uop, seed, [t._uop for t in tags])))
      open_ended = depends_on_more(value.uop, {t._uop for t in tags})

      def settled(u: UOp) -> Handle:
        return Handle._new(u if open_ended or not needs(u) else graph.detach(u))

      def result(t: Handle) -> Handle:
        tag, g = next(found)
        return settled(graph.full(tag.shape, 0, tag.dtype) if g is None else g)

      grads = tuple(mapped(result, args[i]) for i in several)
      value = settled(value.uop)
    gradients = grads if isinstance(argnums, tuple) else grads[0]
    return ((value, aux) if has_aux else value), gradients

  return both


def checkpoint(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
  """fn(*args), of which the gradient keeps no value but the results: it computes the others again when it needs them.

  Less memory for more work: of n equal layers, each in a checkpoint, only what passes from one to the next is kept, and the
  values within one layer. fn runs once; random numbers in it, such as dropout's, are the same again. Gradients are bitwise
  those without a checkpoint. Checkpoints nest. With a function alone, a function that does this on each call.
  (PyTorch's torch.utils.checkpoint.checkpoint.)

  >>> w = Tensor([2.0, 3.0], requires_grad=True)
  >>> mini.checkpoint(lambda x: (x * w) * (x * w), Tensor([1.0, 1.0])).sum().backward()
  >>> w.grad
  Tensor([4., 6.])
  """
  if not args and not kwargs:
    return functools.wraps(fn)(functools.partial(_checkpoint, fn))
  return _checkpoint(fn, *args, **kwargs)


def _checkpoint(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
  def marked(t: Handle) -> Handle:  # so that what is made of it is new, whatever was made of t before
    return Handle._new(graph.tag(t.uop)) if needs(t.uop) else t

  inside, named = mapped(marked, (args, kwargs))
  start = next_serial()
  result = fn(*inside, **named)
  found: list[UOp] = []
  mapped(lambda t: found.append(t.uop), result)
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
