"""A scatter that is laid into a flat buffer works there: right, without a copy, and with its bounds checked."""

import numpy as np
import pytest

from mini import Tensor
from mini.ir import graph as g
from mini.ir.interp import evaluate
from mini.ir.uop import toposort
from mini.schedule import schedule
from mini.schedule.flat import scatter_in_place
from mini.types import dtypes

F, I = dtypes.float32, dtypes.int64


def flat_gradient(kind, axis=0):
  base, value, more = (
    g.buffer(n, s, F) for n, s in (("base", (5, 6)), ("value", (5, 4) if axis else (4, 6)), ("more", (7,)))
  )
  index = g.buffer("index", (5, 4) if axis else (4, 6), I)
  doubled = g.alu("add", base, base)
  return g.cat((more, g.reshape(g.scatter(doubled, index, value, kind, axis), (30,)), more), 0)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", ["add", "set", "max"])
def test_it_means_the_same(kind, axis):
  u = flat_gradient(kind, axis)
  rng = np.random.default_rng(0)
  data = {x.arg[0]: rng.standard_normal(x.arg[1]).astype(np.float32) for x in toposort(u) if x.op == "buffer"}
  data["index"] = rng.integers(0, 6 if axis else 5, (5, 4) if axis else (4, 6))
  before, after = (evaluate([x], lambda b: data[b.arg[0]])[0] for x in (u, scatter_in_place([u])[0]))
  np.testing.assert_array_equal(before, after)


def test_nothing_is_copied():
  kernels, _ = schedule({"out": scatter_in_place([flat_gradient("add")])[0]})
  assert len(kernels) == 4  # three parts, and the scatter into one of them


def test_a_scatter_that_others_read_stays():
  u = flat_gradient("add")
  inner = u.src[1].src[0]
  assert scatter_in_place([u, inner])[0] is u


def test_an_index_outside_its_part_is_an_error():
  """It would be within the flat buffer, and write into a neighbour."""
  w, ids = Tensor(np.zeros((3, 2), np.float32)), Tensor([5])
  part = Tensor(
    g.scatter(w.uop, g.expand(g.reshape(ids.uop, (1, 1)), (1, 2)), Tensor([[1.0, 1.0]]).uop, "add", 0)
  )
  flat = Tensor.cat([part.reshape(6), Tensor(np.ones(20, np.float32))])
  with pytest.raises(IndexError):
    flat.realize()
