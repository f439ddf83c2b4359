"""Convolutions of any number of axes on nodes, with their gradients.

A convolution, its transpose and the gradients of both are one form that is linear in three tensors (`Form`): what one
of them gets from the other two is a sum of products over views, so each is one contraction, and no window is ever
copied. Tensor's methods are in convolution.py; einsums that are of the form are found in einsum_to_conv.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from mini.gradient_rules import with_gradient
from mini.ir import graph
from mini.ir.uop import UOp
from mini.tensor.split import windows
from mini.tensor.views import around, span, spread

Ints = tuple[int, ...]
LONG, SHORT = 4096, 1024  # terms of a part of the sum that is a gradient of a weight


class Form(NamedTuple):
  """sum of  x[n, g, c, stride * m + dilation * k - before] * w[g, o, c, k] * y[n, g, o, m]  over all indices, x being 0
  outside. Each entry holds a number for each axis of a window. The derivative by y is the convolution of x with w."""

  size: Ints  # of x
  kernel: Ints  # of w
  count: Ints  # type: ignore[assignment]  # of y; a tuple has a method of this name
  stride: Ints
  before: Ints
  dilation: Ints


def derivative(form: Form, by: str, **given: UOp) -> UOp:
  """Of the form, by x, w or y, where the other two are given. Its gradients are derivatives of the form, too."""
  one, other = given

  def rule(g: UOp, out: UOp, a: UOp, b: UOp) -> tuple[UOp, UOp]:
    return (
      derivative(form, one, **{other: b, by: g}),
      derivative(form, other, **{one: a, by: g}),
    )

  return with_gradient(DERIVATIVES[by](form, **given), rule, *given.values())


def by_y(form: Form, x: UOp, w: UOp) -> UOp:
  """x: T[N, G, C, L..]   w: T[G, O, C, K..]   ->   T[N, G, O, M..]"""
  n, (batch, groups, channels), outputs = len(form.size), graph.shape(x)[:3], graph.shape(w)[1]
  x = graph.reshape(seen(form, x), (batch, groups, 1, channels, *form.kernel, *form.count))
  w = graph.reshape(w, (1, groups, outputs, channels, *form.kernel, *(1,) * n))
  return graph.reshape(contracted(x, w, range(3, 4 + n)), (batch, groups, outputs, *form.count))


def by_w(form: Form, x: UOp, y: UOp) -> UOp:
  """x: T[N, G, C, L..]   y: T[N, G, O, M..]   ->   T[G, O, C, K..]

  The sum over a batch of images is long, and its terms are few results: it is made in parts of some images.
  """
  n, (batch, groups, channels), outputs = len(form.size), graph.shape(x)[:3], graph.shape(y)[2]
  x, images = seen(form, x), prod(form.count)
  # where the places in a window share no elements that are read together, all that a part reads should fit the L1
  most = LONG if prod(form.kernel) <= 9 and max(form.stride) == 1 else SHORT
  parts = next(
    p for p in range(1, max(batch, 1) + 1) if batch % p == 0 and (batch // p * images <= most or p == batch)
  )
  x = graph.reshape(x, (parts, batch // parts, groups, 1, channels, *form.kernel, *form.count))
  y = graph.reshape(y, (parts, batch // parts, groups, outputs, 1, *(1,) * n, *form.count))
  out = contracted(x, y, (1, *range(5 + n, 5 + 2 * n)))
  if parts > 1:
    out = graph.reduce(graph.stage(out), "add", (0,))
  return graph.reshape(out, (groups, outputs, channels, *form.kernel))


def by_x(form: Form, y: UOp, w: UOp) -> UOp:
  """y: T[N, G, O, M..]   w: T[G, O, C, K..]   ->   T[N, G, C, L..]"""
  n, (batch, groups, outputs), channels = len(form.size), graph.shape(y)[:3], graph.shape(w)[2]
  for a, (_, kernel, count, stride, _, dilation) in enumerate(zip(*form)):
    if (
      stride > 1 and dilation > 1 and kernel > 1
    ):  # zeros between the elements of y, and a stride of 1, instead
      y = spread(y, 3 + a, stride, (count - 1) * stride + 1)
      form = form._replace(stride=put(form.stride, a, 1), count=put(form.count, a, (count - 1) * stride + 1))
  found = [taps_of(*axis) for axis in zip(*form)]
  for a, (t, kernel, count) in enumerate(zip(found, form.kernel, form.count)):
    y = resized(y, 3 + a, t.reach - t.first, t.blocks + t.first - count)
    w = resized(w, 3 + a, t.front, t.taps * t.phases - kernel - t.front)
  for a, (t, dilation) in enumerate(zip(found, form.dilation)):
    y = windows(y, 3 + 2 * a, t.taps, 1, dilation)
  w = graph.reshape(w, (groups, outputs, channels, *(m for t in found for m in (t.taps, t.phases))))
  w = graph.flip(w, tuple(3 + 2 * a for a, t in enumerate(found) if t.taps > 1))
  firsts, seconds = range(3, 3 + 2 * n, 2), range(4, 4 + 2 * n, 2)
  steps = tuple(t.taps for t in found)
  y = graph.permute(y, (0, 1, *seconds, 2, *firsts))
  y = graph.reshape(y, (batch, groups, 1, *(m for t in found for m in (t.blocks, 1)), outputs, *steps))
  w = graph.permute(w, (0, 2, *seconds, 1, *firsts))
  if max(form.kernel) > 1 and max(form.stride) == 1:
    w = graph.stage(w)  # turned round once, and not wherever it is read
  w = graph.reshape(w, (1, groups, channels, *(m for t in found for m in (1, t.phases)), outputs, *steps))
  out = contracted(y, w, range(3 + 2 * n, 4 + 3 * n))
  out = graph.reshape(out, (batch, groups, channels, *(m for t in found for m in (t.blocks, t.phases))))
  return joined(out, form, found)


DERIVATIVES: dict[str, Callable[..., UOp]] = {"x": by_x, "w": by_w, "y": by_y}


class Taps(NamedTuple):
  """How an axis of x is made: element stride * a + r of it gets  w[stride * q + r] * y[a + first - dilation * q]  for
  each q. The kernel gets `front` zeros, so that blocks of x begin at multiples of the stride."""

  taps: int  # how many q
  blocks: int  # how many a
  phases: int  # how many r that get anything
  stride: int
  front: int
  first: int
  reach: int  # from the first q to the last


def taps_of(size: int, kernel: int, count: int, stride: int, before: int, dilation: int) -> Taps:
  front = -before % stride
  taps = -(-(kernel + front) // stride)
  phases = kernel + front if taps == 1 else stride
  first = (before + front) // stride
  return Taps(taps, -(-size // stride), phases, stride, front, first, dilation * (taps - 1))


def put(values: Ints, at: int, value: int) -> Ints:
  """values with another one at a place."""
  return (*values[:at], value, *values[at + 1 :])


def joined(out: UOp, form: Form, found: Sequence[Taps]) -> UOp:
  """[.., a, r, ..] as the axes of x."""
  whole = tuple(t.blocks * t.stride for t in found)
  if whole != form.size:
    out = graph.stage(
      out
    )  # and copied, without what is cut off: an element at a time, blocks would be no vectors
  for a, t in enumerate(found):
    out = resized(out, 4 + 2 * a, 0, t.stride - t.phases)
  out = graph.reshape(out, (*graph.shape(out)[:3], *whole))
  return graph.shrink(out, tuple((0, m) for m in (*graph.shape(out)[:3], *form.size)))


def seen(form: Form, x: UOp) -> UOp:
  """x: T[N, G, C, L..]   ->   its windows, T[N, G, C, K.., M..]"""
  n = len(form.size)
  for a, (size, kernel, count, stride, before, dilation) in enumerate(zip(*form)):
    reach = (count - 1) * stride + dilation * (kernel - 1) + 1
    x = resized(x, 3 + a, before, reach - size - before)
  for a, (_, kernel, _, stride, _, dilation) in enumerate(zip(*form)):
    x = windows(x, 3 + 2 * a, kernel, stride, dilation)
  return graph.permute(x, (0, 1, 2, *range(3, 3 + 2 * n, 2), *range(4, 4 + 2 * n, 2)))


def contracted(a: UOp, b: UOp, axes: Sequence[int]) -> UOp:
  """The sum of a * b, repeated to each other's shape, over axes, which stay with size 1."""
  s = tuple(m if n == 1 else n for n, m in zip(graph.shape(a), graph.shape(b)))
  return graph.reduce(graph.alu("mul", graph.expand(a, s), graph.expand(b, s)), "add", tuple(axes))


def resized(u: UOp, axis: int, before: int, after: int) -> UOp:
  """With zeros around an axis; where a number is negative, so many elements, or zeros, are cut off."""
  n = graph.shape(u)[axis]
  first = min(max(-before, 0), n)
  end = max(n + min(after, 0), first)
  front = min(max(before, 0), n + before + after)
  u = span(u, axis, first, end)
  return graph.pad(u, around(graph.shape(u), axis, front, n + before + after - front - (end - first)))
