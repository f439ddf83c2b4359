"""einsum beyond NumPy's: random formulas of every kind against plain loops; gradients against differences; memory; errors."""

from __future__ import annotations

import itertools
import math
import shutil
from collections import defaultdict

import numpy as np
import pytest

import mini
from mini import DTypeError, ShapeError, Tensor, einsum, stats
from mini.engine.plan import scheduled
from mini.engine.program import cost
from mini.ir import graph
from mini.ir.uop import toposort
from mini.shapes import Clash, Sizes, Undetermined, Use
from mini.text.printer import graph_program
from runtime.base import DeviceError

# ---------------------------------------------------------------- a formula as data, and what it means

OPERATIONS = {"mul": np.multiply, "add": np.add, "max": np.maximum, "min": np.minimum}
REDUCTIONS = {
  "sum": np.sum,
  "prod": np.prod,
  "max": np.max,
  "min": np.min,
  "mean": np.mean,
  "any": np.any,
  "all": np.all,
}


class Spec:
  """Terms of axes, each an index: ({name: factor}, plus). Sizes are drawn; a name has to stand somewhere by itself."""

  def __init__(self, rng, words=False, reckoned=True, result=False):
    self.rng, self.words = rng, words
    self.names = (
      ["out", "tap", "row", "k_2", "d"][: rng.integers(2, 5)] if words else list("abcd")[: rng.integers(2, 5)]
    )
    self.sizes = {n: int(rng.integers(1, 4)) for n in self.names}
    self.row = [f"row{n}" for n in range(rng.integers(0, 3))]
    self.sizes.update((n, int(rng.integers(1, 4))) for n in self.row)
    self.inputs = [self.term(reckoned) for _ in range(rng.integers(1, 4))]
    alone = {n for term in self.inputs for axis in term if axis != "..." for n in self.single(axis)}
    for n in self.names:
      if n not in alone:
        self.inputs[rng.integers(len(self.inputs))].append(({n: 1}, 0))
    there = [n for n in self.names if rng.random() < 0.6]
    self.output = [({n: 1}, 0) for n in rng.permutation(there)]
    if result and len(there) > 1:
      a, b, *rest = there
      self.output = [({a: int(rng.integers(1, 3)), b: int(rng.integers(1, 4))}, int(rng.integers(2)))]
      self.output += [({n: 1}, 0) for n in rest]
    if any("..." in term for term in self.inputs) and rng.random() < 0.7:
      self.output.insert(rng.integers(len(self.output) + 1), "...")

  @staticmethod
  def single(axis):
    return [n for n, f in axis[0].items() if f == 1 and len(axis[0]) == 1 and not axis[1]]

  def term(self, reckoned):
    term = []
    for _ in range(self.rng.integers(1, 4)):
      kind = self.rng.random()
      some = [str(n) for n in self.rng.permutation(self.names)]
      if reckoned and kind < 0.15:
        term.append(({}, int(self.rng.integers(3))))
      elif reckoned and kind < 0.45:
        factors = {n: int(self.rng.integers(1, 4)) for n in some[: self.rng.integers(1, 4)]}
        term.append((factors, int(self.rng.integers(2))))
      else:
        term.append(({some[0]: 1}, 0))
    if self.rng.random() < 0.3:
      term.insert(self.rng.integers(len(term) + 1), "...")
    return term

  def text(self, term):
    def axis(a):
      if a == "...":
        return "..."
      pieces = [n if f == 1 else f"{f}*{n}" for n, f in a[0].items()] + (
        [str(a[1])] if a[1] or not a[0] else []
      )
      return "+".join(pieces)

    return " ".join(map(axis, term))

  @property
  def formula(self):
    return (
      ", ".join(map(self.text, self.inputs)) + (" => " if self.words else " -> ") + self.text(self.output)
    )

  def spelled(self, term):
    return [a for axis in term for a in ([({n: 1}, 0) for n in self.row] if axis == "..." else [axis])]

  def index(self, term, at):
    return tuple(plus + sum(f * at[n] for n, f in factors.items()) for factors, plus in self.spelled(term))

  def shape(self, term, spare=False):
    found = []
    for factors, plus in self.spelled(term):
      n = 1 + plus + sum(f * (self.sizes[n] - 1) for n, f in factors.items())
      found.append(n + int(self.rng.integers(2)) * (spare and not self.single((factors, plus))))
    return tuple(found)

  def arrays(self):
    return [self.rng.normal(size=self.shape(term, spare=True)).round(2) for term in self.inputs]

  def evaluate(self, arrays, op, reduce, s=None):
    """By loops over all names; and where something was put."""
    found = defaultdict(list)
    labels = {n for t in self.inputs for f, _ in self.spelled(t) for n in f}
    names = [n for n in self.sizes if n in labels]
    for at in itertools.product(*(range(self.sizes[n]) for n in names)):
      at = dict(zip(names, at))
      values = [x[self.index(t, at)] for x, t in zip(arrays, self.inputs)]
      value = values[0]
      for v in values[1:]:
        value = OPERATIONS[op](value, v)
      found[self.index(self.output, at)].append(value)
    nothing = {"sum": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}[reduce]
    out = np.full(self.shape(self.output) if s is None else s, nothing)
    for at, values in found.items():
      out[at] = REDUCTIONS[reduce](values)
    return out


def close(ours, theirs, rtol=1e-9):
  np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-9)
  assert ours.shape == theirs.shape


def check(rng, device=None, **options):
  spec = Spec(rng, **options)
  arrays = spec.arrays()
  op, reduce = rng.choice([*OPERATIONS]), rng.choice(["sum", "prod", "max", "min"])
  if rng.random() < 0.5:
    op, reduce = "mul", "sum"
  print(spec.formula, op, reduce, [x.shape for x in arrays])
  tensors = [Tensor(x, device=device) for x in arrays]
  close(mini.einsum(spec.formula, *tensors, op=op, reduce=reduce).numpy(), spec.evaluate(arrays, op, reduce))


@pytest.mark.parametrize("n", range(60))
def test_random_formulas(n, rng):
  check(rng, "INTERP", words=n % 2 == 1, result=n % 3 == 0)


@pytest.mark.parametrize("n", range(8))
def test_random_formulas_compiled(n, rng):
  check(rng, None, words=n % 2 == 1, result=n % 3 == 0)


@pytest.mark.full
@pytest.mark.parametrize("n", range(80))
def test_many_random_formulas(n, rng):
  check(rng, None if n % 2 else "INTERP", words=n % 2 == 1, result=n % 3 == 0)


@pytest.mark.parametrize("n", range(40))
def test_random_formulas_of_numpy(n, rng):
  spec = Spec(rng, reckoned=False)
  arrays = [rng.normal(size=spec.shape(t)) for t in spec.inputs]
  formula = (
    spec.formula
    if "..." in spec.formula.partition("->")[2] or not spec.row
    else spec.formula.replace("...", "")
  )
  if formula != spec.formula:  # NumPy does not sum over an ellipsis
    arrays = [x[tuple(0 if a in [({r: 1}, 0) for r in spec.row] else slice(None) for a in spec.spelled(t))]
              for x, t in zip(arrays, spec.inputs)]  # fmt: skip
  print(formula)
  close(
    mini.einsum(formula, *(Tensor(x, device="INTERP") for x in arrays)).numpy(), np.einsum(formula, *arrays)
  )


# ---------------------------------------------------------------- gradients


@pytest.mark.parametrize("n", range(25))
def test_gradients_are_differences(n, rng):
  spec = Spec(rng, words=n % 2 == 1, result=n % 3 == 0)
  arrays = spec.arrays()
  print(spec.formula)
  weight = np.cos(np.arange(math.prod(spec.shape(spec.output)))).reshape(spec.shape(spec.output))
  tensors = [Tensor(x, device="INTERP", requires_grad=True) for x in arrays]
  (mini.einsum(spec.formula, *tensors) * Tensor(weight, device="INTERP")).sum().backward()
  for k, x in enumerate(arrays):
    at = tuple(rng.integers(m) for m in x.shape)
    sides = []
    for step in (1e-3, -1e-3):
      moved = x.copy()
      moved[at] += step
      sides.append((spec.evaluate([*arrays[:k], moved, *arrays[k + 1 :]], "mul", "sum") * weight).sum())
    np.testing.assert_allclose(
      tensors[k].grad.numpy()[at], (sides[0] - sides[1]) / 2e-3, rtol=1e-6, atol=1e-8
    )


def test_convolution(rng):
  """A convolution by its formula is conv2d; so are its gradients, and those are no sums over copied windows."""
  x, w = (Tensor(rng.normal(size=s), requires_grad=True) for s in ((2, 3, 9, 8), (4, 3, 3, 2)))
  y = mini.einsum("n c 2*h+i w+3*j, o c i j => n o h w", x, w)
  z = x.conv2d(w, stride=(2, 1), dilation=(1, 3))
  close(y.numpy(), z.numpy())
  weight = Tensor(rng.normal(size=y.shape))
  ours, theirs = (out.gradient(x, w, gradient=weight) for out in (y, z))
  for a, b in zip(ours, theirs):
    close(a.numpy(), b.numpy())


def test_windows_are_not_copied():
  """The most that is in memory is what goes in and what comes out."""
  x, w = Tensor.ones(8, 64, 64).contiguous().realize(), Tensor.ones(5, 5).contiguous().realize()
  stats.reset()
  before = stats["bytes_live"]
  y = mini.einsum("b h+i w+j, i j => b h w", x, w).realize()
  assert stats["bytes_peak"] - before <= 4 * y.numel() + 4096
  assert stats["kernels"] == 1
  assert y[0, 0, 0].item() == 25


# ---------------------------------------------------------------- operations, reductions, order


@pytest.mark.parametrize("op", ["mul", "add", "max", "min", "and", "or", np.arctan2])
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_operations(op, reduce, rng):
  arrays = [rng.integers(-2, 3, s).astype(float) for s in ((3, 4), (4, 5), (5,))]
  a, b, c = (arrays[0][:, :, None], arrays[1][None], arrays[2][None, None])
  by = {**OPERATIONS, "and": np.logical_and, "or": np.logical_or}.get(op, op)
  theirs = REDUCTIONS[reduce](by(by(a, b), c), axis=1)
  if op in ("and", "or") and reduce == "mean":
    theirs = theirs.astype(float)
  ours = mini.einsum("ij,jk,k->ik", *(Tensor(x, device="INTERP") for x in arrays), op=Tensor.atan2 if callable(op) else op,
                     reduce=reduce)  # fmt: skip
  close(ours.numpy(), theirs)
  assert ours.dtype.np.kind == theirs.dtype.kind or reduce in ("max", "min", "prod")


def largest(formula, *shapes, **options):
  """The most elements that any node of it has."""
  out = mini.einsum(formula, *(Tensor.ones(*s).contiguous().realize() for s in shapes), **options)
  return max(graph.numel(u) for u in toposort(out.uop))


def test_order_by_cost():
  chain = ((20, 2), (2, 30), (30, 2), (2, 40))
  for options in ({}, {"op": "add", "reduce": "min"}, {"op": "min", "reduce": "max"}, {"reduce": "mean"}):
    assert largest("ab,bc,cd,de->ae", *chain, **options) <= 20 * 40 * 2, options
  assert largest("ab,bc,cd,de->ae", *chain, op="add") == 20 * 2 * 30 * 2 * 40


def test_integers_and_empty_axes():
  a = Tensor(np.arange(6, dtype=np.int32).reshape(2, 3))
  for reduce, by in (("min", np.min), ("max", np.max), ("prod", np.prod)):
    out = mini.einsum("ij->j", a, reduce=reduce)
    assert out.dtype.name == "int32"
    np.testing.assert_array_equal(out.numpy(), by(a.numpy(), axis=0))
  assert mini.einsum("ij->i", Tensor.ones(2, 0), reduce="prod").tolist() == [1, 1]
  assert mini.einsum("i+k, k -> i", Tensor.ones(0), Tensor.ones(0)).shape == (0,)
  assert mini.einsum("i,i->", Tensor([True, True]), Tensor([True, False]), op="and").item() == 1


def test_sizes_of_a_run(rng):
  """A Variable is a size as any other, where it is the whole axis."""
  n = mini.Variable("n", 1, 8).bind(5)
  a, b = rng.normal(size=(8, 3)), rng.normal(size=(8, 2))
  x, y = Tensor(a)[:n], Tensor(b)[:n]
  close(mini.einsum("ij,ik->jk", x, y).numpy(), a[:5].T @ b[:5])
  for reduce, by in (("mean", np.mean), ("max", np.max), ("min", np.min)):
    close(mini.einsum("ij->j", x, reduce=reduce).numpy(), by(a[:5], axis=0))
  with pytest.raises(ShapeError, match="n=5, from 1 to 8, is known only when it runs"):
    mini.einsum("i+k j -> k j", x, k=2)


# ---------------------------------------------------------------- parts


def test_parts(rng):
  a, b, c, d, e = (rng.normal(size=s) for s in ((2, 3), (2, 4), (5, 3), (5, 4), (3, 6)))
  ta, tb, tc, td, te = (Tensor(x) for x in (a, b, c, d, e))
  blocks = np.block([[a, b], [c, d]])
  close(mini.einsum("i k, i l, j k, j l => i^j k^l", ta, tb, tc, td).numpy(), blocks)
  close(mini.block([[ta, tb], [tc, td]]).numpy(), blocks)
  close(mini.block([[t[None] for t in row] for row in ([ta, tb], [tc, td])]).numpy(), blocks[None])
  close(mini.einsum("i k, j k, k n => i^j n", ta, tc, te).numpy(), np.vstack([a, c]) @ e)
  diagonal = np.block([[a, np.zeros((2, 4))], [np.zeros((5, 3)), d]])
  close(mini.einsum("i k, j l => i^j k^l", ta, td).numpy(), diagonal)
  close(mini.einsum("i k, j l => i^j k^l", ta, td, reduce="max").numpy()[:2, 3:], np.full((2, 4), -np.inf))
  whole = Tensor(blocks)
  close(mini.einsum("i^j k^l => j k", whole, i=2, k=3).numpy(), c)
  close(mini.einsum("i^j k, j k => k i", Tensor(np.vstack([a, c])), tc).numpy(), a.T)
  close(mini.einsum("k^l n, i k, i l => i n", Tensor(np.vstack([e, np.ones((4, 6))])), ta, tb).numpy(),
        np.hstack([a, b]) @ np.vstack([e, np.ones((4, 6))]))  # fmt: skip
  close(
    mini.einsum("a, b, c => a^b^c", *map(Tensor, (a[0], b[0], c[0]))).numpy(),
    np.concatenate([a[0], b[0], c[0]]),
  )


def test_gradients_of_parts(rng):
  a, b = (Tensor(rng.normal(size=s), requires_grad=True) for s in ((2, 3), (4, 3)))
  w = rng.normal(size=(6, 3))
  (mini.einsum("i k, j k => i^j k", a, b) * Tensor(w)).sum().backward()
  close(a.grad.numpy(), w[:2])
  close(b.grad.numpy(), w[2:])


# ---------------------------------------------------------------- accumulating


@pytest.mark.parametrize("n", range(40))
def test_accumulated(n, rng):
  spec = Spec(rng, words=True, result=n % 2 == 0)
  sign, reduce = [("+=", "sum"), ("*=", "prod"), ("max=", "max"), ("min=", "min")][n % 4]
  if n % 3 == 0:
    spec.output.append(({}, 1))
  if n % 5 == 0 and spec.output:
    spec.output += [a for a in spec.output if a != "..."][:1]
  singles = {n for a in spec.spelled(spec.output) for n in a[0]}
  s = tuple(
    m + int(rng.integers(2)) * (not spec.single(a))
    for a, m in zip(spec.spelled(spec.output), spec.shape(spec.output))
  )
  arrays, x = spec.arrays(), rng.normal(size=s)
  formula = f"{spec.text(spec.output)} {sign} {', '.join(map(spec.text, spec.inputs))}"
  print(formula, singles, s)
  found = Tensor(x, device="INTERP").einsum_(formula, *(Tensor(y, device="INTERP") for y in arrays))
  by = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[reduce]
  close(found.numpy(), by(x, spec.evaluate(arrays, "mul", reduce, s)))


def test_accumulating_passes_gradients(rng):
  x, y = (Tensor(rng.normal(size=s), requires_grad=True) for s in ((3, 3), (3,)))
  z = x * 1
  z.einsum_("i i += i", y)
  (z * Tensor(np.arange(9.0).reshape(3, 3))).sum().backward()
  close(x.grad.numpy(), np.arange(9.0).reshape(3, 3))
  close(y.grad.numpy(), np.array([0.0, 4, 8]))
  flags = Tensor([False, True, False])
  assert flags.einsum_("i |= i k", Tensor([[0, 2], [0, 0], [0, 0]])).tolist() == [True, True, False]
  assert flags.einsum_("2 &= i", Tensor([1, 0])).tolist() == [True, True, False]


# ---------------------------------------------------------------- devices

FORMS = [
  ("b c 2*h+i w+j, o c i j => b o h w", ((2, 2, 7, 5), (3, 2, 3, 2)), {}),
  ("i k, k => i+2*k", ((3, 2), (2,)), {}),
  ("i k, k j => i j", ((3, 4), (4, 2)), {"op": "add", "reduce": "min"}),
  ("..b.. i i 1, ..b.. i => ..b..", ((2, 3, 3, 2), (2, 3)), {"reduce": "max"}),
  ("i k, j l => i^j k^l", ((2, 3), (4, 1)), {}),
]


@pytest.mark.parametrize("device", ["CPU", "CL", "CUDA", pytest.param("METAL", marks=pytest.mark.full)])
def test_devices(device, rng):
  """The same on a device as in the interpreter, and so is the gradient."""
  emulated = device in ("CUDA", "METAL")
  if emulated and shutil.which("g++") is None:
    pytest.skip("no C++ compiler found")
  with mini.Context(EMULATE=int(emulated)):
    try:
      _ = mini.Device[device].shim.info
    except DeviceError as e:
      pytest.skip(str(e))
    found: dict[str, list[Tensor]] = {device: [], "INTERP": []}
    for formula, shapes, options in FORMS:
      arrays = [rng.normal(size=s).astype(np.float32) for s in shapes]
      for home, made in found.items():
        tensors = [Tensor(x, device=home, requires_grad=True) for x in arrays]
        out = mini.einsum(formula, *tensors, **options)
        weight = np.cos(np.arange(out.numel()), dtype=np.float32).reshape(out.shape)
        made += [out, *out.gradient(*tensors, gradient=Tensor(weight, device=home))]
      target = rng.normal(size=(4, 4)).astype(np.float32)
    for home, made in found.items():
      made.append(Tensor(target, device=home).einsum_("i i max= i", Tensor(target[0], device=home)))
      made[0].realize(*made[1:])
    for ours, theirs in zip(*found.values()):
      np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------- sizes and errors


def test_rows(rng):
  x, y = rng.normal(size=(2, 3, 4, 5)), rng.normal(size=(3, 4, 6))
  ours = mini.einsum("..b.. q d, ..r.. => ..b.. q ..r..", Tensor(x), Tensor(y[0]))
  close(ours.numpy(), np.einsum("abqd,rs->abqrs", x, y[0]))
  ours = mini.einsum("n ..s.. d, ..s.. e => ..s.. d e", Tensor(x), Tensor(y))
  close(ours.numpy(), np.einsum("nabd,abe->abde", x, y))
  two = mini.einsum("..a.. ..b.., ..b.. => ..a..", Tensor(x), Tensor(x[0, 0]))
  close(two.numpy(), np.einsum("abcd,cd->ab", x, x[0, 0]))

  ours = mini.einsum("..b.. d, ..b.. d => ..b..", Tensor(x), Tensor(y[..., :5]))
  close(ours.numpy(), np.einsum("nabd,abd->nab", x, y[..., :5]))
  close(mini.einsum("...i -1 0 -> i...", Tensor(x)).numpy(), x[..., -1, 0].T)


ERRORS = {
  "the size of k and of o is not determined": ("o+k->ok", (5,)),
  r'axis 0 of "o\+k" of a has size 5, and its names make 6': ("o+k,k,o->ok", (5,), (3,), (4,)),
  r'axis 0 of "o\+k" of a has size 3, and its names make 5': ("o+k,k->o", (3,), (5,)),
  r'axis 1 of "i3" of a has size 3, and its names make 4': ("i3->i", (4, 3)),
  r'axis 0 of "a\^b" of a has size 5, and its names make 7': ("a^b,a,b->", (5,), (3,), (4,)),
  'axis j has size 3 and size 4: "ij" of a, and "jk" of b': ("ij,jk->ik", (2, 3), (4, 5)),
  "the size of an axis of the result that has a number is not determined": ("i->i2", (5,)),
  "the size of a and of b is not determined": ("a^b->a", (5,)),
  "the result has a row r": ("i => ..r.. i", (5,)),
  "how many axes each row": ("..a.. ..b.. => ..b..", (5, 5)),
  "the same row twice": ("... i ... => i", (5, 5)),
  "has a part twice": ("a^a => a", (5,)),
  "has a name times 0": ("0*a -> a", (5,)),
  "'2\\*' is no axis; an axis is named by a word": ("2* => a", (5,)),
  "x.einsum_ accumulates": ("i += i", (5,)),
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors(message):
  formula, *shapes = ERRORS[message]
  with pytest.raises(ShapeError, match=message) as e:
    mini.einsum(formula, *(Tensor.ones(*s) for s in shapes))
  assert "test_formula.py:" in str(e.value)


def test_errors_of_options():
  x = Tensor.ones(3, 3)
  for message, bad in {
    "op is one of mul, add": lambda: mini.einsum("ij->", x, op="plus"),
    "reduce is one of sum, prod": lambda: mini.einsum("ij->", x, reduce="median"),
    "no axis is called k": lambda: mini.einsum("ij->", x, k=3),
    'axis i has size 3 and size 4: "ij" of a, and i=4': lambda: mini.einsum("ij->", x, i=4),
    "there is no max over axis i": lambda: mini.einsum("i->", Tensor.ones(0), reduce="max"),
    "an average of parts": lambda: mini.einsum("i^j->", x[0], i=1, reduce="mean"),
    "einsum_ accumulates, as in": lambda: x.einsum_("ij->ij", x),
    "axis i has size 2 and size 3": lambda: x.einsum_("i i += i", Tensor.ones(2)),
    r"op gives the shape \(\)": lambda: mini.einsum("ij,jk->ik", x, x, op=lambda a, b: (a * b).sum()),
  }.items():
    with pytest.raises(ShapeError, match=message):
      bad()
  with pytest.raises(DTypeError, match="the average of int32 is no integer"):
    mini.einsum("ij->", x.int(), reduce="mean")
  with pytest.raises(DTypeError, match="operands are tensors, not 3"):
    mini.einsum("ij->", 3)
  with pytest.raises(DTypeError, match="cannot be kept in a"):
    x.int().einsum_("i j += i j", x)


def use(line):
  return Use("train.py", line, f"line {line}")


# what is said: (method, arguments); and what comes of it in any order
SAID = {
  "satisfied": ([("given", "x", 7), ("given", "k", 3), ("room", "x", (("o", 2), ("k", 1)), 0), ("same", "o", "y"),
                 ("sum", "z", ("y", "k"))], {"x": 7, "k": 3, "o": 3, "y": 3, "z": 6}),
  "a clash": ([("given", "a", 3), ("same", "a", "b"), ("same", "b", "c"), ("given", "c", 5), ("given", "b", 4)], (3, 5)),
  "a sum that clashes": ([("sum", "t", ("a", "b")), ("given", "t", 6), ("given", "a", 3), ("given", "b", 4)], (6, 7)),
  "no room": ([("room", "t", (("a", 2),), 1), ("given", "t", 6), ("given", "a", 4)], (6, 8)),
  "undetermined": ([("given", "t", 9), ("room", "t", (("a", 1), ("b", 1)), 0), ("given", "c", 3)], ["a", "b"]),
  "the largest that fits both": ([("given", "t", 9), ("room", "t", (("a", 2),), 0), ("given", "u", 4),
                                  ("room", "u", (("a", 1),), 1)], {"t": 9, "u": 4, "a": 3}),
  "the smallest with room for both": ([("given", "a", 3), ("room", "t", (("a", 2),), 0), ("room", "t", (("a", 1),), 4)],
                                      {"a": 3, "t": 7}),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_sizes_in_any_order(name):
  said, expected = SAID[name]
  numbered = [(line, *one) for line, one in enumerate(said, 1)]
  for order in itertools.permutations(numbered):
    found = Sizes()
    for line, what, *args in order:
      getattr(found, what)(*args, *([] if what == "same" else [use(line)]))
    if isinstance(expected, dict):
      assert {name: fact.size for name, fact in found.solve().items()} == expected
    elif isinstance(expected, tuple):
      with pytest.raises(Clash) as e:
        found.solve()
      assert (e.value.first.size, e.value.second.size) == expected
      lines = e.value.first.use.line, e.value.second.use.line
      assert lines == {"a clash": (1, 4), "a sum that clashes": (2, 1), "no room": (2, 1)}[name]
    else:
      with pytest.raises(Undetermined) as e:
        found.solve()
      assert sorted(e.value.names) == expected and [u.line for u in e.value.uses] == [2]


CONVOLUTIONS = {
  "n c y+ky x+kx, o c ky kx => n o y x": ((2, 3, 9, 8), (4, 3, 3, 2)),
  "o c ky kx, n c 2*y+ky+1 3*x+2*kx => n o y x": ((4, 3, 3, 2), (2, 3, 9, 12)),
  "g c t+2*k, g o c k => o t g": ((2, 3, 20), (2, 4, 3, 5)),
  "..b.. t+k, k => t ..b..": ((2, 3, 7), (3,)),
  "k+t a, k a => a t": ((9, 2), (4, 2)),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("formula", CONVOLUTIONS)
def test_convolutions(formula, rng):
  """Beside the sum over copies of windows; gradients of second order, too."""
  x, w = (Tensor(rng.standard_normal(s), requires_grad=True) for s in CONVOLUTIONS[formula])

  def computed(op):
    out = einsum(formula, x, w, op=op)
    slopes = out.sin().sum().gradient(x, w)
    return [out, *slopes, *(slopes[0].square().sum() * slopes[1].square().sum()).gradient(x, w)]

  for got, want in zip(computed("mul"), computed(lambda a, b: a * b)):
    large = np.abs(want.numpy()).max()  # a sum whose terms cancel is as exact as they are large
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-11, atol=1e-14 * large)


def test_gradients_of_convolutions_are_contractions():
  """What is computed for them is what is computed for those of conv2d."""
  x, w = Tensor.randn(2, 8, 18, 18, requires_grad=True), Tensor.randn(16, 8, 3, 3, requires_grad=True)
  counts = []
  for y in (einsum("n c y+i x+j, o c i j => n o y x", x, w), x.conv2d(w)):
    program = graph_program("g", tuple(g.uop for g in y.square().sum().gradient(x, w)))
    counts.append(sum(cost(kernel)[0] for kernel in scheduled(program).kernels))
  assert counts[0] <= 1.01 * counts[1]
