"""Work is done once: the operations of kernels against those of the graph, for many small networks, their gradients, and random
ones. No time is measured."""

import random
from math import prod

import numpy as np
import pytest
import sweep

from mini import Tensor, grad
from mini.codegen.autoschedule import Machine, write_recipe
from mini.codegen.linearize import lanes, places
from mini.engine.plan import scheduled
from mini.engine.program import cost
from mini.engine.realize import Numbered
from mini.ir.graph import numel
from mini.ir.kernel import carries_value, contractions, is_inline
from mini.ir.ops import is_elementwise
from mini.ir.rules import simplify
from mini.ir.uop import TRUE, rsize, toposort
from mini.nn import functional
from mini.schedule import fuse
from mini.schedule.concat_rewrites import in_pieces
from mini.schedule.cost import decide
from mini.schedule.merge import accumulates
from mini.schedule.split import split_reductions
from mini.text.printer import graph_program
from mini.text.verifier import on_stack

MACHINE = Machine(threads=2)
MOST = 1.25  # times the graph's operations, as scheduled
CHAINED = (
  1.6  # times that where kernels make what is between products again, as gradients of attention do its scores
)
TUNED = 2.4  # times that, as tuned: the last tile of each row may begin within the one before
SMALL = 1 << 16  # operations that nobody waits for


def asked(roots, times):
  """Operations of a graph: each element of each node once, or as often as `times` says."""
  total = 0
  for u in toposort(*roots):
    if u.op in ("reduce", "scan"):
      total += numel(u.src[0]) * times.get(u, 1)
    elif is_elementwise(u.op) or u.op == "pad":  # which chooses
      total += numel(u) * times.get(u, 1)
  return total


def decided(roots):
  """(the kernels of a graph, {value: how often it is computed because that costs less than to write and read it}, the
  same without what is between products): by each that wants it, and there by each of the windows that overlap. Of what
  is between products each kernel decides."""
  values = {}

  def noted(v):
    values.setdefault(v.node, []).append((v, decide(v)))
    return values[v.node][-1][1]

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(fuse, "decide", noted)
    kernels = scheduled(graph_program("g", tuple(roots))).kernels
  times, apart = {}, {}
  for u, decisions in values.items():
    again = [v for v, found in decisions if found.where == "inline" and not v.overlapping]
    if again and (again[0].computed or again[0].chained or u.op == "pad"):
      times[u] = sum(len(v.wanted) * max(1, v.overlap) for v in again)
      if not again[0].chained:
        apart[u] = times[u]
  return kernels, times, apart


def executed(kernel):
  """Operations of a kernel with its recipe applied, as its loops stand."""
  place, total = places(kernel), 0
  for u in place:
    if u.op not in ("load", "store", "kernel", "stage") and not is_inline(u):
      value = u.src[0] if u.op in ("reduce", "scan") else u  # each term is added where it is computed
      total += prod(map(rsize, (*place.get(value, place[u]), *lanes(value))))
  return total


def looked_at(outputs):
  """(as scheduled, the same if nothing between products were to be computed again, as tuned: times the work of the graph
  of these tensors)"""
  roots = split_reductions(in_pieces(simplify(Numbered([t.uop for t in outputs]).roots)), False)
  kernels, times, apart = decided(roots)
  n, least = (max(asked(roots, t), SMALL) for t in (times, apart))
  done = sum(cost(k)[0] for k in kernels), sum(executed(write_recipe(k, MACHINE)[0]) for k in kernels)
  return done[0] / n, done[0] / least, done[1] / n


# ---------------------------------------------------------------- forms that models have


def zeros(*shapes):
  return [Tensor(np.zeros(s, np.float32), requires_grad=True) for s in shapes]


def check(name, f, xs, gradients=True):
  """Forward alone, and with all gradients."""
  programs = {"forward": [f(*(x.detach() for x in xs))]}
  if gradients:
    out = f(*xs)
    (out * Tensor(np.zeros(out.shape, np.float32))).sum().backward()
    programs["gradients"] = [x.grad for x in xs if x.grad is not None]
  for what, outputs in programs.items():
    untuned, chained, tuned = looked_at(outputs)
    found = name, what, untuned, chained, tuned
    assert untuned <= MOST and chained <= CHAINED and tuned <= TUNED * MOST, found


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", sweep.FORMS, ids=lambda form: form.name)
def test_forms(form, request, seed):
  for n in range(8 if request.config.option.full else 1):
    shapes = sweep.drawn(form, np.random.default_rng([seed, n]))
    check(f"{form.name} {shapes}", lambda *xs: form.f(functional, *xs), zeros(*shapes), form.gradients)


COLUMNS = {
  "softmax": lambda x: x.T.softmax(1),
  "centred": lambda x: x.T - x.T.mean(1, keepdim=True),
  "normed": lambda x: x.T / x.T.norm(dim=1, keepdim=True),
  "statistics outside of windows": lambda x: functional.max_pool2d(
    functional.batch_norm(x.reshape(1, 32, 32, -1), None, None, training=True).relu(), 3, 2, 1
  ),
}


@pytest.mark.parametrize("columns", [32, 64, 512, 2048])
@pytest.mark.parametrize("name", COLUMNS)
def test_what_a_row_has_once_is_not_done_for_each_of_its_elements(name, columns):
  """Also where rows of what is read are columns of what is written; and vectors of rows fit onto the stack."""
  (x,) = zeros((20_480 if columns > 64 else 1024, columns))
  out = COLUMNS[name](x.detach())
  *_, tuned = looked_at([out])
  assert tuned < 4
  roots = simplify(Numbered([out.uop]).roots)
  for k in scheduled(graph_program("g", tuple(roots))).kernels:
    made = write_recipe(k, MACHINE)[0]
    assert on_stack(made) <= MACHINE.stack_bytes
    # what stands outside of the parallel loop each thread does for itself
    assert all(loops for u, loops in places(made).items() if u.op == "reduce")


def test_a_guard_does_not_reach_what_all_that_it_guards_share(rng):
  """The scale of a channel stands outside of the loops of a window or a row, and is no gather in a vector."""
  x, scale = (Tensor(rng.random(s, np.float32)).realize() for s in ((2, 8, 12, 12), (8, 1, 1)))
  for f in (
    lambda x: functional.max_pool2d(x, 3, 2, 1),
    lambda x: functional.pad(x, (1, 1, 1, 1)).contiguous(),
  ):
    (k,) = kernels_of(f(x * scale))
    assert [len(u.src[0].arg[1]) for u in toposort(k) if u.op == "load" and u.src[1] is not TRUE] == [4]


@pytest.mark.parametrize(
  "f, shapes, kernels",
  [
    (lambda a, b, c, d: a @ b + c @ d, [(64, 64)] * 4, 2),
    (lambda a, b: a @ b + a.T @ b, [(64, 64)] * 2, 2),
    (lambda x, w, v: functional.linear(functional.gelu(functional.linear(x, w)), v), [(256, 16), (256, 16), (16, 256)], 2),
  ],
)  # fmt: skip
def test_a_kernel_has_one_product(f, shapes, kernels):
  made = kernels_of(f(*(x.detach() for x in zeros(*shapes))))
  assert [len(contractions(k)) for k in made] == [1] * kernels


def test_groups_that_are_one_axis_are_a_loop_over_products():
  """A bias or an activation goes over the channels of all groups as one axis."""
  x, w, b = zeros((2, 64, 12, 12), (64, 16, 3, 3), (64,))
  (k,) = kernels_of(functional.conv2d(x, w, b, padding=1, groups=4).relu().detach())
  _, recipe = write_recipe(k, MACHINE)
  assert recipe.startswith("split ") and "vec" in recipe and "stage" in recipe


def test_phases_that_are_one_axis_are_a_kernel_of_their_own():
  """What comes behind goes over the places of all phases: its vectors would take every second one of the product's."""
  first, last = kernels_of(slope_of_stride(*zeros((2, 32, 12, 12), (48, 32, 3, 3), (2, 48, 6, 6))).detach())
  assert contractions(first) and not contractions(last)


def test_rows_that_are_taken_by_an_index_are_taken_once_for_a_product():
  """An embedding before the first layer: inside of the product, tiles could not go over words and lines as one axis."""
  table, w, words = (
    Tensor.ones(96, 256).realize(),
    Tensor.ones(256, 64).realize(),
    Tensor.zeros(2, 64).long().realize(),
  )
  first, last = kernels_of(table[words] @ w)
  assert (
    contractions(last)
    and not contractions(first)
    and not any(u.op == "load" and carries_value(u.src[1]) for u in toposort(last))
  )


def test_a_product_is_no_part_of_a_kernel_that_adds_by_an_index():
  """The gradient of an embedding: that kernel goes through its elements one after another."""
  table, w, words = Tensor.ones(96, 256), Tensor.ones(256, 64).realize(), Tensor.zeros(2, 64).long().realize()
  slope = grad(lambda t: (t[words] @ w).square().sum())(table.realize())
  made = kernels_of(slope.detach())
  assert [k for k in made if contractions(k)] and not any(accumulates(k) and contractions(k) for k in made)


def kernels_of(x):
  roots = simplify(Numbered([x.uop]).roots)
  return scheduled(graph_program("g", tuple(roots))).kernels


def slope_of_stride(x, w, d):
  """The gradient of a convolution of stride 2 by what a relu gives, times that of the relu."""
  return grad(lambda x: (functional.conv2d(x.relu(), w, padding=1, stride=2) * d).sum())(x)


# ---------------------------------------------------------------- random networks


def network(seed):
  """(its name, a function of its parameters, their shapes): two to five layers on images, rows or words."""
  r = random.Random(seed)
  n, c = r.choice([1, 2, 8]), r.choice([1, 3, 4, 16, 24])
  size = r.choice([6, 12, 17])
  shapes, layers, names = [(n, c, size, size)], [], []

  def weight(*s):
    shapes.append(s)
    return len(shapes) - 1

  def conv(out, k, groups=1, stride=1):
    nonlocal c
    w = weight(out, c // groups, k, k)
    b = weight(out) if r.random() < 0.5 else None
    c = out
    layers.append(
      lambda x, p: functional.conv2d(x, p[w], None if b is None else p[b], stride, k // 2, 1, groups)
    )

  def act():
    f = r.choice(["relu", "hardswish", "silu", "gelu", "sigmoid"])
    names.append(f)
    layers.append(lambda x, p: getattr(functional, f)(x))

  def norm():
    layers.append(lambda x, p: functional.batch_norm(x, None, None, training=True))

  def shortcut():
    w, v = weight(c, c, 3, 3), weight(c, c, 1, 1)
    layers.append(lambda x, p: functional.conv2d(x, p[w], padding=1) + functional.conv2d(x, p[v]))

  def gate():
    a, b = weight(max(1, c // 4), c, 1, 1), weight(c, max(1, c // 4), 1, 1)
    layers.append(lambda x, p: sweep.squeezed(functional, x, p[a], p[b]))

  def transposed():
    nonlocal c
    out = r.choice([1, 3, 8])
    w = weight(c, out, 4, 4)
    c = out
    layers.append(lambda x, p: functional.conv_transpose2d(x, p[w], stride=2, padding=1))

  def rows():
    w, v = weight(c, c), weight(2 * c, c)
    layers.append(lambda x, p: functional.linear(x.movedim(1, -1), p[w]).movedim(-1, 1) + x)
    layers.append(lambda x, p: functional.glu(functional.linear(x.movedim(1, -1), p[v]), -1).movedim(-1, 1))

  kinds = {
    "conv": lambda: conv(r.choice([1, 4, 16, 32]), r.choice([1, 3, 5])),
    "by 2": lambda: conv(r.choice([4, 16]), 3, stride=2),
    "by channel": lambda: conv(c, r.choice([3, 5]), groups=c),
    "norm": norm, "act": act, "shortcut": shortcut, "gate": gate, "transposed": transposed, "rows": rows,
    "mean": lambda: layers.append(lambda x, p: x - x.mean((2, 3), keepdim=True)),
    "joined": lambda: layers.append(lambda x, p: Tensor.cat([x, x.flip(3)], 3)),
  }  # fmt: skip
  for _ in range(r.randint(2, 5)):
    kind = r.choice([*kinds])
    names.append(kind)
    kinds[kind]()
    if r.random() < 0.6:
      act()

  def f(x, *p):
    p = (x, *p)
    for layer in layers:
      x = layer(x, p)
    return x

  return " ".join(names), f, shapes


def test_random_networks(request, seed):
  for n in range(200 if request.config.option.full else 12):
    name, f, shapes = network(seed + n)
    check(f"{seed + n}: {name} {shapes}", f, zeros(*shapes))
