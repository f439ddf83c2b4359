"""What methods cost: the operations and bytes of their kernels for n and for 2 n elements, and the memory of views. No time
is measured."""

import gc

import pytest

from mini import Tensor, stats
from mini.engine.plan import scheduled
from mini.engine.program import cost
from mini.ir.uop import range_, structural_key, uop
from mini.text.printer import graph_program
from mini.types import dtypes

N = 1 << 12
CLASSES = 8


def vector(n):
  """Memory of n numbers."""
  return Tensor.arange(n).float().realize()


def places(n):
  """Memory of n integers."""
  return Tensor.arange(n).realize()


def work(make, n):
  """Operations and bytes of all kernels together."""
  outs = make(n)
  outs = outs if isinstance(outs, (tuple, list)) else [outs]
  kernels = scheduled(graph_program("g", tuple(t.uop for t in outs))).kernels
  return sum(sum(cost(k)) for k in kernels)


def embedding_gradient(n):
  table = Tensor.zeros(N, 4).realize().requires_grad_()
  return table.embedding(places(n)).sum().gradient(table)


# fmt: off
LINEAR = {
  "gather":            lambda n: vector(n).gather(0, places(n)),
  "take_along_dim":    lambda n: vector(n).take_along_dim(places(n), 0),
  "index_select":      lambda n: vector(n).index_select(0, places(n)),
  "x[i]":              lambda n: vector(n)[places(n)],
  "x[i, j]":           lambda n: vector(n * 4).reshape(n, 4)[places(n), places(n) % 4],
  "x[mask]":           lambda n: vector(n)[(places(n) % 2 == 0).realize()],
  "x[i] = v":          lambda n: put(vector(n), places(n), vector(n)),
  "x[mask] = v":       lambda n: put(vector(n), (places(n) % 2 == 0).realize(), 1.0),
  "scatter":           lambda n: vector(n).scatter(0, places(n), vector(n)),
  "scatter_add":       lambda n: vector(n).scatter_add(0, places(n), vector(n)),
  "scatter_reduce":    lambda n: vector(n).scatter_reduce(0, places(n), vector(n), "amin", include_self=False),
  "index_put":         lambda n: vector(n).index_put((places(n),), vector(n), accumulate=True),
  "masked_scatter":    lambda n: vector(n).masked_scatter(vector(n) > 1, vector(n)),
  "one_hot":           lambda n: (places(n) % CLASSES).one_hot(CLASSES),
  "embedding":         lambda n: vector(4 * N).reshape(N, 4).embedding(places(n)),
  "its gradient":      lambda n: embedding_gradient(n),
  "gather's gradient": lambda n: (x := vector(n).requires_grad_()).gather(0, places(n)).square().sum().gradient(x),
  "cumsum":            lambda n: vector(n).cumsum(0),
  "cumprod's gradient":lambda n: (x := vector(n).requires_grad_()).cumprod(0).sum().gradient(x),
  "cummax":            lambda n: vector(n).cummax(0),
  "logcumsumexp":      lambda n: vector(n).logcumsumexp(0),
  "sort":              lambda n: vector(n).sort(),
  "histc":             lambda n: vector(n).histc(CLASSES, 0, 1),
  "randperm":          lambda n: Tensor.randperm(n),
  "multinomial":       lambda n: vector(n).multinomial(3),
  "gamma":             lambda n: Tensor.gamma(n, shape=2.0),
  "repeat_interleave": lambda n: vector(n).repeat_interleave(3),
  "roll":              lambda n: vector(n).roll(5),
  "diff":              lambda n: vector(n).diff(),
}
# fmt: on


def put(t, at, value):
  t[at] = value
  return t


@pytest.mark.sample(4)
@pytest.mark.parametrize("what", LINEAR)
def test_twice_the_elements_are_twice_the_work(what):
  small, large = (work(LINEAR[what], n) for n in (N, 2 * N))
  assert large <= 2.01 * small


def test_searching_a_sorted_vector_is_n_log_n():
  small, large = (work(lambda n: vector(n).searchsorted(vector(n)), n) for n in (1 << 7, 1 << 8))
  assert large <= 2.3 * small


VIEWS = {
  "slices": lambda x: x[1:, ::2],
  "reversed": lambda x: x[::-1, None, -3:1:-2],
  "permuted": lambda x: x.reshape(4, 16, 64).permute(2, 0, 1).flatten(1),
  "repeated": lambda x: x[:, :1].expand(64, 9).unsqueeze(0),
  "padded": lambda x: x.flip(0).pad((1, 2)).unfold(1, 3, 2),
  "split": lambda x: x.split(16)[1].T.diagonal(),
  "gathered": lambda x: x[x[0].long()],
}


@pytest.mark.parametrize("what", VIEWS)
def test_what_is_not_realized_needs_no_memory(what):
  """A view, and an index, are nodes of the graph. What is computed of one reads the memory that is there: it is one
  kernel, which allocates its result and nothing else."""
  x = vector(64 * 64).reshape(64, 64)
  gc.collect()  # what other tests left goes now
  at = stats.kernels, stats.bytes_live
  view = VIEWS[what](x)
  assert (stats.kernels, stats.bytes_live) == at
  small = (view.flatten()[:8] * 2).realize()
  assert (stats.kernels, stats.bytes_live) == (at[0] + 1, at[1] + small.nbytes)


def test_the_name_of_an_index_is_short():
  """An index that is used twice is spelled twice in it."""
  u = range_("i", 8)
  for _ in range(20):
    u = uop("max", dtypes.index, (u, u))
  assert len(structural_key(u)) <= 1000
