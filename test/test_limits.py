"""Limits: what is just within each is taken, and one more is an error that names it, or makes room for what is new."""

import json
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from mini import Tensor, jit, jitted
from mini.engine import cache, realize
from mini.engine.limits import measure
from mini.ir import graph, rewrite
from mini.ir.uop import const
from mini.nn import formats, state
from mini.nn.state import StateError, npz_load, npz_save, safe_load, safe_save, torch_load
from mini.text import operands
from mini.text.parser import TextError, parse
from mini.types import RangeError, dtypes

# ---------------------------------------------------------------- text


def kernel(*lines, args="%a: out f32[8]"):
  return "\n  ".join([f"kernel k({args}) {{", *lines]) + "\n}"


def ranges(n):
  names = [f"%r{i}" for i in range(n)]
  made = [f"{name} = range {8 if name == '%r0' else 1}" for name in names]
  return kernel(*made, "store %a[%r0], 1.0", f"end over ({', '.join(names)})")


def iterations(n):
  summed = ["%v = load %b[%i] : f32", "%s = reduce.add %v over (%j0, %j1, %k) : f32"]
  made = [*(f"%j{x} = range {1 << 20}" for x in range(2)), f"%k = range {n // (1 << 43)}"]
  args = "%a: out f32[8], %b: in f32[8]"
  return kernel("%i = range 8", *made, *summed, "store %a[%i], %s", "end over (%i)", args=args)


def index(text):
  return kernel("%i = range 8", f"store %a[{text}], 1.0", "end over (%i)")


def expanded(n):
  return (f"graph g(%x: f32[1]) {{\n  %0 = expand %x {{shape=[{n}]}} : f32[{n}]\n"
          "  %1 = reduce.add %0 {axes=[0]} : f32[1]\n  return %1\n}")  # fmt: skip


def axes(n):
  ones = ", ".join(["1"] * n)
  return f"graph g(%x: f32[{ones}]) {{\n  %0 = exp %x : f32[{ones}]\n  return %0\n}}"


def taking(nbytes):
  return (
    f"graph g(%x: f32[{nbytes // 4 - 1}]) {{\n  %1 = reduce.add %x {{axes=[0]}} : f32[1]\n  return %1\n}}"
  )


TEXTS = {
  "ranges": (ranges, operands.MAX_RANGES, 1, "at most 1024 ranges"),
  "iterations": (iterations, operands.MAX_STEPS, 1 << 43, "iterations"),
  "brackets": (lambda n: index("(" * n + "%i" + ")" * n), operands.MAX_DEPTH, 1, "nested too deeply"),
  "terms": (lambda n: index("%i" + " + 0" * n), operands.MAX_TERMS, 1, "expression is too large"),
  "elements": (expanded, operands.MAX_ELEMENTS, 1, "too many elements or axes"),
  "axes": (axes, 32, 1, "too many elements or axes"),
  "bytes": (taking, operands.MAX_BYTES, 4, "takes 17179869188 bytes; at most"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_of_a_text(name):
  text, limit, more, message = TEXTS[name]
  parse(text(limit))
  with pytest.raises(TextError, match=message):
    parse(text(limit + more))


def test_rules_that_do_not_come_to_an_end():
  """A chain that is just not too long is carried out; a circle is said."""
  x = graph.buffer("in0", (), dtypes.int32)

  def chain(n):
    return rewrite.Rules([rewrite.rule(f"step{k}", f"x * {k}", f"x * {k + 1}") for k in range(2, 2 + n)])

  (found,) = chain(rewrite.STEP_LIMIT)([graph.alu("mul", x, const(2, dtypes.int32))])
  assert found.src[1].arg == 2 + rewrite.STEP_LIMIT
  with pytest.raises(rewrite.RewriteError, match="do not come to an end: step102, .*step201$"):
    chain(rewrite.STEP_LIMIT + 1)([graph.alu("mul", x, const(2, dtypes.int32))])


# ---------------------------------------------------------------- what is remembered


def test_captures_of_one_kind_make_room():
  """Which differ in what the function reaches: the latest are kept."""
  held, traced = [Tensor(0.0)], []

  @jit
  def f(x):
    traced.append(held[0].shape)
    return x + held[0].sum()

  x = Tensor([1.0])
  sizes = range(1, jitted.CAPTURES + 3)
  for n in sizes:
    held[0].replace(Tensor(np.ones(n, np.float32)).realize())
    assert f(x).item() == n + 1
  (known,) = f.captured.values()
  assert len(known) == jitted.CAPTURES and len(traced) == len(sizes)
  for n, is_new in ((sizes[-1], False), (sizes[2], False), (sizes[0], True)):
    held[0].replace(Tensor(np.ones(n, np.float32)).realize())
    before = len(traced)
    assert f(x).item() == n + 1 and (len(traced) > before) == is_new


def test_programs_make_room(monkeypatch):
  """For those that were used last."""
  monkeypatch.setattr(realize, "PROGRAMS", 3)
  monkeypatch.setattr(realize, "_programs", {})
  x = Tensor([1.0, 2.0]).realize()
  for n in (1, 2, 3, 1, 4):
    assert (x.reshape(2, 1).expand(2, n) * 2).sum().item() == 6 * n
  assert len(realize._programs) == 3
  known = [*realize._programs]
  assert (x.reshape(2, 1).expand(2, 1) * 2).sum().item() == 6 and {*realize._programs} == {*known}
  assert (x.reshape(2, 1).expand(2, 2) * 2).sum().item() == 12 and {*realize._programs} != {*known}


def test_results_of_searches_have_a_limit_of_their_own(tmp_path, monkeypatch):
  monkeypatch.setattr(cache, "RESULT_BYTES", 5000)
  monkeypatch.setattr(cache, "disk_cache", lambda: cache.DiskCache(str(tmp_path)))
  found = cache.result_cache(make=True)
  assert found is not None and found.limit_bytes == 5000
  for n in range(20):
    found.put(str(n), bytes(1000))
  assert 1000 <= sum(nbytes for _, nbytes, _ in found.entries()) <= 6000


# ---------------------------------------------------------------- files


def test_of_a_header(tmp_path, monkeypatch):
  safe_save({"x": Tensor([1.0])}, tmp_path / "x", {"a": "b" * 1000})
  size = int.from_bytes((tmp_path / "x").read_bytes()[:8], "little")
  monkeypatch.setattr(state, "MOST_HEADER_BYTES", size)
  assert safe_load(tmp_path / "x")["x"].item() == 1
  monkeypatch.setattr(state, "MOST_HEADER_BYTES", size - 1)
  with pytest.raises(StateError, match=f"its header would take {size} bytes"):
    safe_load(tmp_path / "x")


@pytest.mark.parametrize("axes", [32, 33])
def test_of_axes(tmp_path, axes):
  text = json.dumps({"a": {"dtype": "F32", "shape": [1] * axes, "data_offsets": [0, 4]}}).encode()
  (tmp_path / "x").write_bytes(len(text).to_bytes(8, "little") + text + bytes(4))
  if axes == 32:
    assert safe_load(tmp_path / "x")["a"].ndim == 32
  else:
    with pytest.raises(StateError, match="has the shape"):
      safe_load(tmp_path / "x")


def test_of_what_an_archive_unpacks_to(tmp_path, monkeypatch):
  npz_save({"a": Tensor.zeros(1000)}, tmp_path / "a.npz")
  size = (tmp_path / "a.npz").stat().st_size
  np.savez_compressed(tmp_path / "b.npz", a=np.zeros(100_000, np.float32))
  assert npz_load(tmp_path / "b.npz")["a"].shape == (100_000,)
  monkeypatch.setattr(formats, "LEAST_LIMIT_BYTES", 0)
  assert npz_load(tmp_path / "a.npz")["a"].shape == (1000,) and size > 4000
  with pytest.raises(StateError, match="its arrays would take 400128 bytes"):
    npz_load(tmp_path / "b.npz")


def test_of_a_pickle_and_of_copies(tmp_path, monkeypatch):
  from fuzz_files import FEW, listed, of_torch, zipped

  pickled = listed(*(of_torch((FEW - 64,), (1,), n) for n in range(9)))
  (tmp_path / "a.pt").write_bytes(zipped({"data.pkl": pickled, "data/0": bytes(4 * FEW)}))
  monkeypatch.setattr(formats, "MOST_PICKLE_BYTES", len(pickled))
  monkeypatch.setattr(formats, "MOST_OVERLAP", 9)
  assert len(torch_load(tmp_path / "a.pt")) == 9
  monkeypatch.setattr(formats, "MOST_OVERLAP", 6)
  with pytest.raises(StateError, match="its tensors would take"):
    torch_load(tmp_path / "a.pt")
  monkeypatch.setattr(formats, "MOST_PICKLE_BYTES", len(pickled) - 1)
  with pytest.raises(StateError, match=f"data.pkl would take {len(pickled)} bytes"):
    torch_load(tmp_path / "a.pt")


def test_what_is_measured_in_is_given_back():
  given = []
  shim = SimpleNamespace(
    info=SimpleNamespace(threads=2, lanes=8),
    compile=lambda source: Counter(),
    alloc=lambda nbytes: "memory",
    upload=lambda memory, data: None,
    sequence=lambda calls: SimpleNamespace(timed=lambda handles: (0, [1e-3] * len(calls))),
    free=given.append,
  )
  found = measure(shim)
  assert given == ["memory"] and min(found) > 0


@pytest.mark.parametrize("r, with_replacement", [(10**6, True), (10**4, True), (2**62, True)])
def test_combinations_that_have_no_room_are_none(r, with_replacement):
  """Before any is made: the list of them grew until the system ended the process."""
  with pytest.raises((MemoryError, RangeError)):
    Tensor([1.0, 2.0, 3.0]).combinations(r, with_replacement)
  assert Tensor([1.0, 2.0, 3.0]).combinations(2**40).shape == (0, 2**40)
