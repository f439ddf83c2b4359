"""Functions of functions: vjp, jvp, jacobian, hessian, vmap; and gradients of tensors that touch nothing.

All are graphs made of graphs, so they nest in any order, with each other, with `grad`, `checkpoint` and under `jit`.
Forward mode is reverse mode twice: a gradient is linear in what is passed back, so its gradient with respect to that is
the derivative in a direction; what is computed is the forward pass alone, and a rule of an operation stands in one
place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from mini.grad import gradients
from mini.ir import graph
from mini.ir.graph import shape
from mini.ir.uop import UOp
from mini.tensor import Tensor
from mini.tensor.autograd import (
  chosen,
  enable_grad,
  filled,
  given_tensors,
  pulled_back,
  rebuilt,
  settled,
  tagged_inputs,
  tensors_of,
  with_chosen,
)
from mini.tensor.batching import Samples, spread_out
from mini.tensor.errors import described, fail, function
from mini.tensor.handle import Handle
from mini.types import ArgumentError, DTypeError, MiniError, ShapeError, dtypes

Function = Callable[..., Any]
Argnums = int | tuple[int, ...]


# ---------------------------------------------------------------- gradients of tensors


def gradient(
  ys: Any, xs: Any, grad_outputs: Any = None, allow_unused: bool = False, materialize_grads: bool = False
) -> Any:
  """The gradients of one or several tensors, added up, with respect to others; `.grad` stays as it is.

  xs: a tensor, or nested lists, tuples and dicts of tensors that require a gradient; the result has its form
  grad_outputs: what is passed back to each of ys, in its shape; None where that has one element: 1
  The result can be differentiated again. MiniError of an x that no y depends on; with allow_unused its gradient is
  None, with materialize_grads zeros.

  >>> x = Tensor([1.0, 2.0], requires_grad=True)
  >>> mini.gradient((x * x).sum(), x).tolist()
  [2.0, 4.0]
  """
  outs = tensors_of(ys)
  given: list[Tensor | None] = [None] * len(outs)
  if isinstance(grad_outputs, Handle) or grad_outputs is None:
    given[:1] = [grad_outputs]  # type: ignore[list-item]
  else:
    given = list(grad_outputs)
  if len(given) != len(outs):
    fail(ShapeError, f"gradient: {len(outs)} tensors and {len(given)} of grad_outputs")
  if len(set(outs)) < len(outs):
    fail(MiniError, "gradient: a tensor is among ys twice")
  found = pulled_back("gradient", dict(zip(outs, given)), tensors_of(xs), allow_unused, materialize_grads)
  return rebuilt(xs, found)


def chain_rule(cotangents: Mapping[Tensor, Tensor], inputs: Any) -> Any:
  """What the chain rule makes of gradients of some tensors: gradients of what they were computed from.
  Nothing is touched.

  cotangents: {a tensor: its gradient, in its shape}   inputs: as `gradient`'s xs, whose form the result has

  >>> x = Tensor([1.0, 2.0], requires_grad=True)
  >>> y, z = x * 3, x * x
  >>> mini.chain_rule({y: Tensor([1.0, 1.0]), z: Tensor([10.0, 10.0])}, [x])[0].tolist()
  [23.0, 43.0]
  """
  if not isinstance(cotangents, Mapping) or not all(isinstance(y, Handle) for y in cotangents):
    fail(DTypeError, "chain_rule: cotangents is a dict, {a tensor: its gradient}", cotangents=cotangents)
  given = {
    y: g if isinstance(g, Handle) else given_tensors("chain_rule", g)[0] for y, g in cotangents.items()
  }
  return rebuilt(inputs, pulled_back("chain_rule", given, given_tensors("chain_rule", inputs)))


# ---------------------------------------------------------------- backwards and forwards


def _called(what: str, f: Function, inside: Any, has_aux: bool) -> tuple[Any, list[UOp], Any]:
  """(what f returns, the nodes of its tensors, what else it returns)."""
  out = f(*inside)
  value, aux = out if has_aux else (out, None)
  found = tensors_of(value)
  for t in found:
    if t.dtype.kind != "f":
      about = (
        f"{what}: only float tensors have gradients, and the function returns one that is {t.dtype.name}"
      )
      fail(DTypeError, about, "has_aux=True hands on what else it returns", value=t)
  if not found:
    fail(DTypeError, f"{what}: the function returns {value!r}, not a tensor")
  return value, [t._node for t in found], aux


def _like(what: str, name: str, given: Any, us: Sequence[UOp]) -> list[UOp]:
  """Given tensors as nodes of the shapes and types of us."""
  found = tensors_of(given)
  if len(found) != len(us) or any(t.shape != shape(u) for t, u in zip(found, us)):
    fits = ", ".join(str(shape(u)) for u in us)
    got = ", ".join(str(t.shape) for t in found)
    fail(ShapeError, f"{what}: the {name} have the shapes {got or 'of none'}, not {fits}")
  return [graph.cast(t._node, u.dtype) for t, u in zip(found, us)]


def vjp(f: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
  """f(*primals), and a function that takes what is passed back to it (in the form of f's result) to a tuple of
  gradients, one for each primal; has_aux: and what else f returned. (PyTorch's torch.func.vjp.)

  >>> y, back = mini.vjp(lambda x: x * x, Tensor([1.0, 2.0]))
  >>> back(Tensor([1.0, 10.0]))[0].tolist()
  [2.0, 40.0]
  """
  function("vjp", f)
  with enable_grad():
    inside, tags = tagged_inputs("vjp", primals)
    value, outs, aux = _called("vjp", f, inside, has_aux)
    result = rebuilt(value, settled(outs, tags, outs))

  def back(cotangents: Any) -> tuple[Any, ...]:
    seeds = _like("vjp", "cotangents", cotangents, outs)
    with enable_grad():
      found = filled(gradients(outs, seeds, tags), tags)
      return rebuilt(primals, settled(found, tags, [*outs, *seeds]))

  return (result, back, aux) if has_aux else (result, back)


def _pushed(outs: Sequence[UOp], tags: Sequence[UOp], tangents: Sequence[UOp]) -> list[UOp]:
  """The derivatives of nodes in the direction in which these tags move."""
  passed = [graph.tag(graph.full(shape(u), 0, u.dtype)) for u in outs]
  pulled = gradients(outs, passed, tags)  # linear in `passed`
  used = [(g, v) for g, v in zip(pulled, tangents) if g is not None]
  return filled(gradients([g for g, _ in used], [v for _, v in used], passed), passed)


def jvp(
  f: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
  """f(*primals), and how it changes as the primals move by tangents, which have their form; has_aux: and what else f
  returned. (PyTorch's torch.func.jvp.) What is computed is a forward pass, and no backward one.

  >>> y, dy = mini.jvp(lambda x: x * x, (Tensor([1.0, 2.0]),), (Tensor([1.0, 10.0]),))
  >>> dy.tolist()
  [2.0, 40.0]
  """
  function("jvp", f)
  with enable_grad():
    inside, tags = tagged_inputs("jvp", tuple(primals))
    value, outs, aux = _called("jvp", f, inside, has_aux)
    moves = _like("jvp", "tangents", tangents, tags)
    found = settled([*outs, *_pushed(outs, tags, moves)], tags, [*outs, *moves])
  result = rebuilt(value, found[: len(outs)]), rebuilt(value, found[len(outs) :])
  return (*result, aux) if has_aux else result


def _basis(u: UOp) -> UOp:
  """Every tensor like u of one 1 and else zeros.   u: T[s]   ->   T[n, *s], n = the elements of u"""
  s, n = shape(u), prod(shape(u))
  row, column = graph.reshape(graph.iota(n), (n, 1)), graph.reshape(graph.iota(n), (1, n))
  differ = graph.alu("ne", graph.expand(row, (n, n)), graph.expand(column, (n, n)))
  one = graph.cast(graph.alu("xor", differ, graph.full((n, n), True, dtypes.bool)), u.dtype)
  return graph.reshape(one, (n, *s))


def _jacobian(out: UOp, tag: UOp, forward: bool) -> UOp:
  """A forward pass for each element of the tag, or a backward one for each of out.

  out: T[s]   tag: T[r]   ->   T[*s, *r]
  """
  along = tag if forward else out
  samples = Samples(prod(shape(along)), "different")
  with samples:
    one = samples.one(_basis(along))
    (found,) = _pushed([out], [tag], [one]) if forward else filled(gradients([out], [one], [tag]), [tag])
  (many,) = samples.all([found])
  many = spread_out(found, samples.n) if many is None else many
  if not forward:
    return graph.reshape(many, (*shape(out), *shape(tag)))
  return graph.reshape(graph.permute(many, (*range(1, len(shape(many))), 0)), (*shape(out), *shape(tag)))


def jacobian(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
  """A function that returns the derivatives of all that f returns by all elements of the arguments `argnums`.

  f(x) of shape s, x of shape r   ->   T[*s, *r]; for several, or nested ones: in the form of f's result, each entry in
  that of the arguments, as PyTorch's torch.func.jacrev. A forward pass for each element of the arguments, or a backward
  pass for each of the result, whichever are fewer.

  >>> mini.jacobian(lambda x: x * x)(Tensor([1.0, 2.0])).tolist()
  [[2.0, 0.0], [0.0, 4.0]]
  """
  function("jacobian", f)

  @functools.wraps(f)
  def derivative(*args: Any, **kwargs: Any) -> Any:
    several = chosen("jacobian", args, argnums)
    with enable_grad():
      inside, tags = tagged_inputs("jacobian", several)
      value, outs, aux = _called(
        "jacobian", lambda *new: f(*with_chosen(args, argnums, new), **kwargs), inside, has_aux
      )
      forward = sum(map(graph.numel, tags)) < sum(map(graph.numel, outs))
      found = settled([_jacobian(u, t, forward) for u in outs for t in tags], tags, outs)

    def row(n: int) -> Any:
      of_each = rebuilt(several, found[n * len(tags) : (n + 1) * len(tags)])
      return of_each if isinstance(argnums, tuple) else of_each[0]

    rows = [row(n) for n in range(len(outs))]
    result = rebuilt(value, rows)
    return (result, aux) if has_aux else result

  return derivative


def hessian(f: Function, argnums: Argnums = 0) -> Function:
  """A function that returns the second derivatives of f, which returns a tensor of one element, or of any number.

  >>> mini.hessian(lambda x: (x * x * x).sum())(Tensor([1.0, 2.0])).tolist()
  [[6.0, 0.0], [0.0, 12.0]]
  """
  function("hessian", f)
  return jacobian(jacobian(f, argnums), argnums)


# ---------------------------------------------------------------- many samples at once


def _axes_of(what: str, axes: Any, tree: Any) -> list[int | None]:
  """An axis for each tensor of a tree, of axes in the same form, or of one for all in a part of it."""
  if axes is None or isinstance(axes, int):
    return [axes] * len(tensors_of(tree))
  if isinstance(axes, dict) and isinstance(tree, dict) and axes.keys() == tree.keys():
    return [a for k in tree for a in _axes_of(what, axes[k], tree[k])]
  if isinstance(axes, (tuple, list)) and isinstance(tree, (tuple, list)) and len(axes) == len(tree):
    return [a for each, part in zip(axes, tree) for a in _axes_of(what, each, part)]
  fail(
    ShapeError,
    f"{what} = {axes!r} does not have the form of what it is of, "
    f"a {type(tree).__name__} of {len(tensors_of(tree))} tensors",
  )


def _in_front(x: Tensor, axis: int) -> UOp:
  axis = x._axis(axis, "vmap")
  return graph.permute(x._node, (axis, *(a for a in range(x.ndim) if a != axis)))


def vmap(
  f: Function,
  in_axes: Any = 0,
  out_axes: Any = 0,
  randomness: str = "error",
  *,
  in_dims: Any = ...,
  out_dims: Any = ...,
) -> Function:
  """A function that does for each of many samples what f does for one, all at once: what it computes is one graph.

  in_axes: the axis of each argument along which its samples lie, or None for what all samples share; one for all
  arguments, or in their form (an argument may be nested lists, tuples and dicts). out_axes: where the axis of samples
  goes in each result.
  randomness: "different" random numbers for each sample, the "same" for all, or an "error". Keyword arguments are
  shared, and so is whatever is no tensor. (PyTorch's torch.func.vmap; `in_dims` and `out_dims` are the same.)

  >>> mini.vmap(lambda a, b: a @ b, in_axes=(0, None))(Tensor([[1, 2], [3, 4]]), Tensor([1, 10])).tolist()
  [21, 43]
  """
  function("vmap", f)
  ins, outs = (a if d is ... else d for a, d in ((in_axes, in_dims), (out_axes, out_dims)))
  if randomness not in ("error", "different", "same"):
    fail(ArgumentError, f'vmap: randomness is "error", "different" or "same", not {randomness!r}')

  @functools.wraps(f)
  def vectorized(*args: Any, **kwargs: Any) -> Any:
    tensors = tensors_of(args)
    axes = _axes_of("vmap: in_axes", list(ins) if isinstance(ins, tuple) else ins, list(args))
    for t, a in zip(tensors, axes):
      if a is not None and not t.shape:
        fail(ShapeError, "vmap: a 0-d tensor has no axis of samples; in_axes=None for it would share it", x=t)
    fronts = [None if a is None else _in_front(t, a) for t, a in zip(tensors, axes)]
    sizes = {shape(u)[0] for u in fronts if u is not None}
    if len(sizes) != 1:
      about = (
        "vmap: the arguments have different numbers of samples" if sizes else "vmap: no argument has samples"
      )
      lines = [f"{described('in', t)}, samples along axis {a}" for t, a in zip(tensors, axes)]
      fail(ShapeError, "\n".join([about, *lines]))
    samples = Samples(sizes.pop(), randomness)
    inside = [t if u is None else Handle._new(samples.one(u)) for t, u in zip(tensors, fronts)]
    with samples:
      result = f(*rebuilt(args, inside), **kwargs)
    found = tensors_of(result)
    nodes = samples.all([t._node for t in found])
    places = _axes_of("vmap: out_axes", outs, result)
    return rebuilt(result, [_placed(t, u, a, samples.n) for t, u, a in zip(found, nodes, places)])

  return vectorized


def _placed(one: Tensor, many: UOp | None, axis: int | None, n: int) -> Tensor:
  """A result, with the axis of samples where it is wanted."""
  if axis is None:
    if many is not None:
      fail(ShapeError, "vmap: out_axes is None for a result that differs from sample to sample", one=one)
    return Handle._new(one._node)
  many = spread_out(one._node, n) if many is None else many
  ndim = len(shape(many))
  at = one._axis(axis, "vmap: out_axes", ndim)
  return Handle._new(graph.permute(many, (*range(1, at + 1), 0, *range(at + 1, ndim))))


__all__ = ["chain_rule", "gradient", "hessian", "jacobian", "jvp", "vjp", "vmap"]
