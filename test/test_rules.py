"""Every rewrite rule, on every type that it applies to: both sides compute the same bits."""

import itertools
import math
import sys

import numpy as np
import pytest

from mini import Tensor, rewrite
from mini.config import Context
from mini.ir import graph as G
from mini.ir.interp import evaluate
from mini.ir.rewrite import (
  Match,
  Pattern,
  RewriteError,
  Rule,
  Rules,
  construct,
  matcher,
  pattern,
  rule,
)
from mini.ir.rules import RULES, simplify
from mini.ir.uop import const, toposort
from mini.text.printer import graph_program
from mini.text.verifier import VerifyError, verify
from mini.types import dtypes, to_bfloat16

PATTERNS = [r for r in RULES if isinstance(r, Rule)]
CONSTANTS = {
  "f": [0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 2.0**20, math.inf, -math.inf, math.nan],
  "b": [False, True],
  "i": [0, 1, -1, 3, 100],
  "u": [0, 1, 3, 100],
}


def edge_values(dtype, rng):
  """The values at which arithmetic goes wrong, and some random ones."""
  if dtype.kind == "b":
    return np.array([False, True])
  if dtype.kind == "f":
    info = np.finfo(np.float32 if dtype is dtypes.bfloat16 else dtype.np)
    edges = [
      0.0,
      -0.0,
      1.0,
      -1.0,
      1.5,
      np.inf,
      -np.inf,
      np.nan,
      info.max,
      -info.max,
      info.tiny,
      info.tiny / 2,
    ]
    values = np.concatenate([np.array(edges, dtype.np), (rng.standard_normal(6) * 100).astype(dtype.np)])
    return to_bfloat16(values) if dtype is dtypes.bfloat16 else values
  info = np.iinfo(dtype.np)
  edges = np.array([0, 1, 2, info.max, info.min, info.max - 1], dtype.np)
  return np.concatenate(
    [edges, edges[1:] * dtype.np.type(3), rng.integers(info.min, info.max, 6, dtype=dtype.np)]
  )


def bits(x, dtype):
  """Bytes to compare: all NaNs are one."""
  x = np.where(np.isnan(x), np.nan, x) if dtype.kind == "f" else x
  return np.ascontiguousarray(x.astype(dtype.np)).view(f"u{dtype.np.itemsize}")


def leaves(p: Pattern, kind: str) -> list[str]:
  own = [p.name] if p.op == kind else []
  return list(dict.fromkeys(own + [n for s in p.src for n in leaves(s, kind)]))


def applications(r, dtype, rng):
  """(both sides, the values of the buffers) for choices of constants and types that the rule's condition lets pass."""
  left, right = r.patterns
  names, consts, casts = (leaves(left, kind) for kind in ("value", "const", "type"))
  numbers = sorted(set(CONSTANTS[dtype.kind]) | {edge_values(dtype, rng)[-1].item()}, key=repr)
  targets = [d for d in dtypes.all if left.op != "bitcast" or d.itemsize == dtype.itemsize]
  for types in itertools.product(dict.fromkeys((dtype, dtypes.bool)), repeat=len(names)):
    grid = np.meshgrid(*(edge_values(d, rng) for d in types), indexing="ij")
    data = {n: g.reshape(-1) for n, g in zip(names, grid)}
    inputs = {n: G.buffer(n, data[n].shape, d) for n, d in zip(names, types)}
    for values in itertools.product(numbers, repeat=len(consts)):
      for to in itertools.product(targets, repeat=len(casts)):
        m = Match({**inputs, **dict(zip(casts, to)), **{n: const(v, dtype) for n, v in zip(consts, values)}})
        m.root = construct(left, m, dtype)
        if is_typed(m.root) and passes_condition(r, m.root):
          yield m.root, construct(right, m, m.root.dtype), data


def is_typed(root):
  try:
    verify(graph_program("f", (root,)))
  except VerifyError:
    return False
  return True


def passes_condition(r, root):
  m = Match()
  if not r.fits(root, m):
    return False
  m.root = root
  return r.when is None or r.when(m)


def values_of(us, data):
  return evaluate(us, lambda b: data[b.arg[0]])


@pytest.mark.parametrize("r", [r for r in PATTERNS if r.fast], ids=lambda r: r.name)
def test_both_sides_of_a_fast_rule_are_close(r):
  """Equal up to roundings, where nothing overflows or vanishes; nan where the exact rule has it."""
  rng = np.random.default_rng(0)
  for dtype in (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64):
    eps = 2.0**-8 if dtype is dtypes.bfloat16 else float(np.finfo(dtype.np).eps)
    least = float(np.finfo(np.float32 if dtype is dtypes.bfloat16 else dtype.np).tiny) * 2**20
    for left, right, data in applications(r, dtype, rng):
      want, got = (x.astype(np.float64) for x in values_of([left, right], data))
      assert (np.isnan(want) == np.isnan(got)).all()
      terms = sum(abs(u.arg) for u in toposort(left) if u.op == "const") if left.op == "add" else 0
      fair = np.isfinite(want) & np.isfinite(got) & (np.abs(want) > least)
      size = np.abs(want) + terms
      assert (np.abs(want[fair] - got[fair]) <= 4 * eps * size[fair]).all(), (dtype, left, data)


def test_fast_rules_hold_only_where_they_are_asked_for():
  x = G.buffer("x", (4,), dtypes.float32)
  third = G.alu("div", x, const(3.0, dtypes.float32))
  assert simplify([third]) == [third]
  with Context(FAST=1):
    assert simplify([third])[0].op == "mul"
  assert simplify([third]) == [third]


def test_rules_of_ones_own():
  t = Tensor([2.0, 3.0])
  sine = np.sin(np.array([2.0, 3.0], np.float32))
  with rewrite(rule("no_sine", "sin(x)", "x")):
    assert t.sin().tolist() == [2.0, 3.0]
    with rewrite(rule("no_sine_but_twice", "sin(x)", "x + x")):  # the innermost first
      assert t.sin().tolist() == [4.0, 6.0]
    assert t.sin().tolist() == [2.0, 3.0]
  assert np.allclose(t.sin().numpy(), sine, rtol=1e-6)  # the graph is the same, the program is not


def test_trace_names_the_rules(caplog):
  x = G.buffer("x", (5,), dtypes.float32)
  with Context(TRACE=1), caplog.at_level("INFO", logger="mini"):
    simplify([G.alu("mul", G.alu("mul", x, const(1.0, dtypes.float32)), const(1.0, dtypes.float32))])
  assert caplog.messages == ["rule mul_one: mul"]  # the outer product has become the inner one


@pytest.mark.sample(2)
@pytest.mark.parametrize("r", [r for r in PATTERNS if not r.fast], ids=lambda r: r.name)
def test_both_sides_are_equal(r):
  rng, tried = np.random.default_rng(0), 0
  for dtype in dtypes.all:
    for left, right, data in applications(r, dtype, rng):
      tried += 1
      assert left.dtype is right.dtype, r.name
      want, got = (np.broadcast_to(x, G.shape(left)) for x in values_of([left, right], data))
      wrong = bits(want, left.dtype) != bits(got, left.dtype)
      where = np.flatnonzero(wrong)[:1]
      assert not wrong.any(), (
        f"{dtype.name} {[(n, v[where]) for n, v in data.items()]}: {want[where]} became {got[where]} in {left}"
      )
  assert tried, "applies to nothing"


def test_a_wrong_rule_is_found():
  for left, right in [
    ("x + 0", "x"),
    ("x * 0", "0"),
    ("where(p != 1, x, y)", "where(p, y, x)"),
    ("x + c0 + c1", "x + (c0 + c1)"),
  ]:
    with pytest.raises(AssertionError, match="became"):
      test_both_sides_are_equal(rule("wrong", left, right))


def test_rules_have_names_of_their_own():
  assert len({r.name for r in RULES}) == len(RULES)


@pytest.mark.parametrize("op", ["add", "mul", "max", "lt", "div"])
def test_fold_is_what_the_interpreter_computes(op):
  for dtype in (dtypes.float32, dtypes.bfloat16, dtypes.int8, dtypes.uint64):
    values = edge_values(dtype, np.random.default_rng(1))
    for a, b in itertools.product(values.tolist(), repeat=2):
      u = G.alu(op, const(a, dtype), const(b, dtype))
      (folded,) = simplify([u])
      want, got = evaluate([u, folded], lambda b: None)
      assert folded.op == "const" and (bits(want, u.dtype) == bits(got, u.dtype)).all(), (op, a, b)


def test_a_cycle_is_stopped_and_named():
  flip = Rules([rule("there", "x + y", "y * x"), rule("back", "x * y", "x + y"), rule("other", "x / 1", "x")])
  with pytest.raises(RewriteError, match=r"there, back|back, there"):
    flip([G.alu("add", G.buffer("a", (2,), dtypes.float32), G.buffer("b", (2,), dtypes.float32))])


def test_shapes_and_marks_stay():
  x = G.buffer("x", (4,), dtypes.float32)
  p = G.buffer("p", (4,), dtypes.bool)
  (u,) = simplify([G.alu("where", p, const(1.0, dtypes.float32), const(1.0, dtypes.float32))])
  assert G.shape(u) == (4,)
  marked = G.stage(G.detach(G.alu("mul", x, const(1.0, dtypes.float32))))
  (u,) = simplify([marked])
  assert [v.op for v in toposort(u)] == ["buffer", "detach", "stage"]


def test_views_join_when_what_is_between_goes():
  x = G.buffer("x", (2, 6), dtypes.float32)
  u = G.reshape(G.alu("mul", G.reshape(x, (3, 4)), const(1.0, dtypes.float32)), (12,))
  assert simplify([u]) == [G.reshape(x, (12,))]


@pytest.mark.parametrize(
  "text, same",
  [
    ("x < y + z", "x < (y + z)"),
    ("x != y * z", "x != (y * z)"),
    ("x + y * z", "x + (y * z)"),
    ("x + y / z", "x + (y / z)"),
    ("x + y % z", "x + (y % z)"),
    ("x < y != z", "(x < y) != z"),
    ("x / y * z", "(x / y) * z"),
    ("x + y + z", "(x + y) + z"),
  ],
)
def test_what_binds_closer(text, same):
  assert pattern(text) == pattern(same)


def test_a_number_of_a_rule_is_that_of_every_type():
  for text, value, fits in (("0", False, True), ("1", True, True), ("0", True, False), ("2", 2.0, True)):
    dtype = dtypes.bool if type(value) is bool else dtypes.float32
    assert matcher(pattern(text))(const(value, dtype), Match()) == fits
  assert not matcher(pattern("0"))(const(-0.0, dtypes.float32), Match())


def test_a_rule_that_cannot_be_read_says_so():
  for left, right in [("x +", "x"), ("x ? y", "x"), ("x + y", "z"), ("foo(x)", "x"), ("x", "x + 0")]:
    with pytest.raises(RewriteError):
      rule("bad", left, right)


def test_cost_is_linear_and_repeats_are_free():
  def cost(f):
    """Calls of Python."""
    calls = []
    sys.setprofile(lambda frame, event, arg: calls.append(event) if event == "call" else None)
    try:
      f()
    finally:
      sys.setprofile(None)
    return len(calls)

  def chain(n, name):
    u, one = G.buffer(name, (8,), dtypes.float32), G.full((8,), 1.0, dtypes.float32)
    for k in range(n):
      u = G.alu("add", G.alu("mul", G.alu("max", u, const(float(k), dtypes.float32)), one), G.alu("exp2", u))
    return u

  few, more = chain(500, "x"), chain(1000, "y")
  first = cost(lambda: simplify([few]))
  assert first < cost(lambda: simplify([more])) < 2.2 * first
  (v,) = simplify([more])
  assert simplify([more]) == [v] == simplify([v]) and len(toposort(v)) < len(toposort(more))
  assert cost(lambda: simplify([more])) < 20
