"""The tensors of a model by name, and files of them in the safetensors format.

A name is the path of attributes, keys and positions to a tensor: `h.0.attn.weight`, as PyTorch's modules give
it. What begins with an underscore is no state. The format: https://huggingface.co/docs/safetensors (8 bytes
of header size, the header as JSON, the elements in little-endian order).
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from math import prod
from operator import ne
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from mini.changes import all_or_nothing
from mini.engine.buffer import Buffer
from mini.engine.device_of import place
from mini.ir import graph
from mini.ir.interp import evaluate
from mini.ir.uop import UOp
from mini.tensor import Tensor
from mini.tensor.handle import on_device, untagged
from mini.tensor.views import nodes_of
from mini.types import ArgumentError, DType, ShapeError, dtypes, to_storage
from runtime.files import written


class StateError(ArgumentError):
  """Names that do not fit a model, or a file that is not what it should be."""


# ---------------------------------------------------------------- tensors by name

OPAQUE = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, Enum, DType, np.ndarray)


def members(x: Any) -> list[tuple[str, Any]]:
  """What x is made of, by name: items of a container, attributes of an object."""
  if isinstance(x, Mapping):
    return [(str(k), v) for k, v in x.items()]
  if hasattr(x, "_asdict"):
    return list(x._asdict().items())
  if isinstance(x, (list, tuple)):
    return [(str(n), v) for n, v in enumerate(x)]
  if isinstance(x, OPAQUE):
    return []
  if hasattr(x, "named_state"):
    return list(x.named_state().items())
  return [(k, v) for k, v in getattr(x, "__dict__", {}).items() if not k.startswith("_")]


def walk(x: Any, prefix: str = "", above: tuple[int, ...] = ()) -> Iterator[tuple[str, Any]]:
  """(path, thing) for x and all that is in it; a thing's own tensors before those of what is in it."""
  yield prefix, x
  if isinstance(x, Tensor) or id(x) in above:
    return
  found = members(x)
  for name, v in sorted(found, key=lambda item: not isinstance(item[1], Tensor)):
    yield from walk(v, f"{prefix}.{name}" if prefix else name, (*above, id(x)))


def get_state_dict(obj: Any, prefix: str = "", every: bool = False) -> dict[str, Tensor]:
  """All tensors in a model, an optimizer, or nested lists, dicts and plain objects, by their paths.

  A tensor that is shared has several names. Buffers that are not persistent are left out, unless `every` is set.

  >>> get_state_dict({"layers": [nn.Linear(2, 3, bias=False)]}).keys()
  dict_keys(['layers.0.weight'])
  """
  found: dict[str, Tensor] = {}
  left_out: set[str] = set()
  for path, x in walk(obj, prefix.strip(".")):
    if not isinstance(x, Tensor):
      left_out.update(f"{path}.{name}" if path else name for name in getattr(x, "_transient", ()))
    elif every or path not in left_out:
      found[path] = x
  return found


def get_parameters(obj: Any) -> list[Tensor]:
  """The tensors in obj that require a gradient, each once.

  >>> [p.shape for p in get_parameters([nn.Linear(2, 3)])]
  [(3, 2), (3,)]
  """
  return list(dict.fromkeys(t for t in get_state_dict(obj).values() if t.requires_grad))


class Matched(NamedTuple):
  """What a load_state_dict that is not strict has left: names that only the model has, and that only the state has."""

  missing_keys: list[str]
  unexpected_keys: list[str]


def load_state_dict(obj: Any, state: Mapping[str, Any], strict: bool = True) -> Matched:
  """Give the tensors in obj the values in `state`, cast to their types and copied to their devices;
  nothing, if something does not fit.

  state: tensors or arrays by name, as `get_state_dict` gives them. StateError on names that only one side has
  (unless strict is False), ShapeError on another shape.

  >>> a, b = nn.Linear(2, 3), nn.Linear(2, 3)
  >>> load_state_dict(a, get_state_dict(b))
  Matched(missing_keys=[], unexpected_keys=[])
  >>> a.weight.equal(b.weight)
  True
  """
  if hasattr(obj, "load_named_state"):
    obj.load_named_state(state)
    return Matched([], [])
  own = get_state_dict(obj)
  matched = Matched([n for n in own if n not in state], [n for n in state if n not in own])
  if strict:
    check(matched)
  both = [name for name in own if name in state]
  wrong = [n for n in both if tuple(np.shape(state[n])) != own[n].shape]
  if wrong:
    lines = [f"  {n}: {tuple(np.shape(state[n]))} in the state, {own[n].shape} here" for n in wrong]
    raise ShapeError("\n".join([f"load_state_dict: {len(wrong)} shapes differ", *lines[:10]]))
  values = {own[n]: state[n] for n in both}
  fill(list(values), [t if isinstance(t, Tensor) else Tensor(np.asarray(t)) for t in values.values()])
  return matched


def check(matched: Matched) -> None:
  """StateError where the names differ."""
  missing, extra = matched
  if missing or extra:
    lines = [f"  missing: {n}" for n in missing] + [f"  not in the model: {n}" for n in extra]
    more = [f"  ... and {len(lines) - 10} more"] if len(lines) > 10 else []
    about = f"load_state_dict: {len(missing)} names are missing, {len(extra)} are too many"
    raise StateError("\n".join([about, *lines[:10], *more, "  strict=False takes what fits"]))


# ---------------------------------------------------------------- parameters that share memory

LANES = 64  # flat buffers are padded to a multiple of so many elements


def part_of(u: UOp) -> tuple[UOp, int, int]:
  """(flat, start, stop): u is flat[start:stop] in another shape. Where it is no part: all of itself."""
  while u.op in ("tag", "detach"):
    u = u.src[0]
  u = graph.reshape(u, (graph.numel(u),))
  if u.op != "shrink":
    return u, 0, graph.numel(u)
  return u.src[0], *u.arg[0]


def lay(parts: Sequence[UOp]) -> UOp:
  """The elements of all parts in one row, padded with zeros; if they stand in such a row already: that row.

  (In that case what stands in the padding is whatever stood there.)
  """
  flat = [graph.reshape(untagged(u), (graph.numel(u),)) for u in parts]
  n = sum(graph.numel(u) for u in flat)
  padded = -(-n // LANES) * LANES
  spans = [part_of(u) for u in parts]
  base = spans[0][0]
  if graph.shape(base) == (padded,) and all(s[0] is base for s in spans):
    ends = [0, *(stop for _, _, stop in spans)]
    if ends[:-1] == [start for _, start, _ in spans] and ends[-1] == n:
      return base
  tail = [graph.full((padded - n,), 0, flat[0].dtype)] if padded > n else []
  return graph.cat((*flat, *tail), 0)


def views(flat: UOp, shapes: Sequence[tuple[int, ...]]) -> list[UOp]:
  """The parts of a row, one after another, in these shapes."""
  found, stop = [], 0
  for s in shapes:
    start, stop = stop, stop + prod(s)
    u = graph.shrink(flat, ((start, stop),))
    if "place" not in u.memo:  # what all of them have in common is known
      u.memo.update(shape=(stop - start,), place=place(flat))
    u = graph.reshape(u, s)
    if "place" not in u.memo:
      u.memo.update(shape=tuple(s), place=place(flat))
    found.append(u)
  return found


def pack(params: Sequence[Tensor], values: Sequence[UOp]) -> Tensor:
  """Put values, of one type, into one flat buffer, which is returned, and make params its parts."""
  flat = Tensor(lay(values)).realize()
  for p, u in zip(params, views(flat._node, [p.shape for p in params])):
    p.assign(Tensor(u))
  return flat


def fill(params: Sequence[Tensor], values: Sequence[Tensor]) -> None:
  """Assign values to params, to all or none. Those that are together all of a flat buffer stay together in one."""
  both = [(p, v.to(p.dtype) if p.is_complex() else v) for p, v in zip(params, values)]
  pairs = [pair for p, v in both for pair in zip(p._parts(), v._parts(), strict=True)]
  fresh = {p: graph.detach(on_device(graph.cast(untagged(v._node), p.dtype), p.device)) for p, v in pairs}
  groups: dict[UOp, list[tuple[int, Tensor]]] = {}
  for p, _ in pairs:
    flat, start, _ = part_of(p._node)
    groups.setdefault(flat, []).append((start, p))

  def assign() -> None:
    rest: list[Tensor] = []
    for flat, found in groups.items():
      together = [p for _, p in sorted(found, key=lambda item: item[0])]
      if len(together) > 1 and lay([p._node for p in together]) is flat:
        pack(together, [fresh[p] for p in together])
      else:
        rest += [p.assign(Tensor(fresh[p])) for p in together]
    if rest:
      rest[0].realize(*rest[1:])

  all_or_nothing(nodes_of(p for p, _ in pairs), assign)


# ---------------------------------------------------------------- safetensors

# fmt: off
FORMAT = {"F64": dtypes.float64, "F32": dtypes.float32, "F16": dtypes.float16, "BF16": dtypes.bfloat16,
          "I64": dtypes.int64, "I32": dtypes.int32, "I16": dtypes.int16, "I8": dtypes.int8,
          "U64": dtypes.uint64, "U32": dtypes.uint32, "U16": dtypes.uint16, "U8": dtypes.uint8,
          "BOOL": dtypes.bool, "C64": dtypes.complex64}
# fmt: on
SPELLED = {d: name for name, d in FORMAT.items()}
MOST_HEADER_BYTES = 100_000_000  # as the reference implementation
DIGEST = "mini.crc32"  # among the metadata: of all bytes of the file, with zeros in its own place
NO_DIGEST = b"00000000"


def safe_save(
  tensors: Mapping[str, Any], path: str | os.PathLike, metadata: Mapping[str, str] | None = None
) -> None:
  """Write tensors, and texts about them, to a safetensors file.

  The file is there whole or not at all: it is written under another name, and renamed when it is on disk. Among its
  metadata is a CRC-32 of all of it, by which `safe_load` knows a file whose bits have changed (by accident: who means
  harm can write another). It takes 1/15 of the time in which a disk takes 135 MB/s.

  >>> import tempfile
  >>> with tempfile.TemporaryDirectory() as folder:
  ...   safe_save({"w": Tensor([1.0, 2.0])}, folder + "/a.safetensors", {"step": "3"})
  ...   safe_load(folder + "/a.safetensors")["w"]
  Tensor([1., 2.])
  """
  values = {name: t if isinstance(t, Tensor) else Tensor(np.asarray(t)) for name, t in tensors.items()}
  if any(not isinstance(k, str) or not isinstance(v, str) for k, v in (metadata or {}).items()):
    raise StateError("safe_save: metadata are texts, with texts as names")
  rows: dict[UOp, int] = {}  # parts of one buffer stand together: `arrays` copies it once
  if missing := [name for name, t in values.items() if t.dtype not in SPELLED]:
    raise StateError(
      f"safe_save: {missing[0]} is {values[missing[0]].dtype.name}, which the format does not have"
    )
  row = {name: rows.setdefault(part_of(t._parts()[0]._node)[0], len(rows)) for name, t in values.items()}
  # the widest first: all are aligned
  order = sorted(values, key=lambda name: (-values[name].dtype.itemsize, row[name]))
  text = _header({name: values[name] for name in order}, metadata)
  begin = len(text).to_bytes(8, "little") + text
  with written(path) as f:
    f.write(begin)
    digest = zlib.crc32(begin)
    for array, name in zip(arrays([values[name] for name in order]), order):
      d = values[name].dtype
      stored = np.ascontiguousarray(to_storage(array, d).astype(d.storage.newbyteorder("<"), copy=False))
      f.write(stored.data)
      digest = zlib.crc32(stored.data, digest)
    f.seek(begin.index(NO_DIGEST))
    f.write(b"%08x" % digest)


def _header(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> bytes:
  """What stands before the values, which follow in this order."""
  header: dict[str, Any] = {"__metadata__": {DIGEST: NO_DIGEST.decode(), **(metadata or {})}}
  header["__metadata__"][DIGEST] = NO_DIGEST.decode()
  start = 0
  for name, t in tensors.items():
    place = [start, start + t.nbytes]
    header[name] = {"dtype": SPELLED[t.dtype], "shape": list(t.shape), "data_offsets": place}
    start += t.nbytes
  text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
  return text + b" " * (-len(text) % 8)


def arrays(tensors: Sequence[Tensor]) -> Iterator[np.ndarray]:
  """Their values, one after another. Parts of one buffer are cut out of one copy of it."""
  parts = (p for t in tensors for p in t._parts())
  waiting = [p for p in parts if not p.is_realized and part_of(p._node)[0].op != "buffer"]
  if waiting:
    waiting[0].realize(*waiting[1:])
  held: tuple[Buffer | None, np.ndarray] = (None, np.empty(0))

  def memory(leaf: UOp) -> np.ndarray:
    nonlocal held
    if held[0] is not leaf.arg[0]:
      held = leaf.arg[0], leaf.arg[0].numpy()
    return held[1].reshape(leaf.arg[1])

  for t in tensors:
    if t.is_complex():
      yield t.numpy()
      continue
    node = untagged(t._node)
    yield evaluate([node], memory)[0] if part_of(node)[0].op == "buffer" else t.numpy()


def safe_load(path: str | os.PathLike, device: str | None = None) -> dict[str, Tensor]:
  """The tensors of a safetensors file. StateError if it is no such file, or not all of it.

  The file is mapped, not read as a whole: what it takes in memory is the tensors. One of `safe_save` is compared with
  its digest.
  """
  with _Mapped(path) as (data, header):
    if header.digest is not None and header.digest != _digest(data, header.begin, header.digest):
      raise StateError(
        f"{os.fspath(path)}: its bytes are not those that were written: {DIGEST} {header.digest} differs"
      )
    found = {}
    for name, (d, s, start, stop) in header.tensors.items():
      raw = (
        np.frombuffer(data, d.storage.newbyteorder("<"), prod(s), start)
        if stop > start
        else np.empty(0, d.storage)
      )
      if d is dtypes.bool:
        raw = np.frombuffer(data, np.uint8, prod(s), start) != 0
      array = (
        (raw.astype(np.uint32) << 16).view(np.float32)
        if d is dtypes.bfloat16
        else raw.astype(d.np, copy=False)
      )
      found[name] = Tensor(array.reshape(s), dtype=d, device=device)
      del raw, array
    return found


def safe_load_metadata(path: str | os.PathLike) -> dict[str, str]:
  """The texts that a safetensors file carries beside its tensors. StateError as from `safe_load`."""
  with _Mapped(path) as (_, header):
    return header.metadata


def _digest(data: Any, begin: int, said: str) -> str:
  """Of a file whose tensors begin there."""
  with memoryview(data) as whole, whole[begin:] as rest:
    header = bytes(whole[:begin]).replace(said.encode(), NO_DIGEST, 1)
    return f"{zlib.crc32(rest, zlib.crc32(header)):08x}"


class _Header:
  """What a header says, checked against the size of the file."""

  def __init__(self, text: bytes, begin: int, end: int):
    self.begin = begin
    self.tensors: dict[str, tuple[DType, tuple[int, ...], int, int]] = {}
    try:
      if (text.count(b"[") + text.count(b"{")) * 100 > (64 << 20) + 8 * end:  # bytes that they take
        raise ValueError("it has more lists in it than a file of this size has tensors")
      said = json.loads(text.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError) as e:
      raise StateError(f"its header is no JSON: {e}") from None
    if not isinstance(said, dict):
      raise StateError("its header is no JSON object")
    self.metadata = said.pop("__metadata__", {})
    if not isinstance(self.metadata, dict) or not all(isinstance(v, str) for v in self.metadata.values()):
      raise StateError("its __metadata__ are not texts by name")
    self.digest = self.metadata.pop(DIGEST, None)
    if any(len(k) == len(DIGEST) and sum(map(ne, k, DIGEST)) == 1 for k in self.metadata):
      raise StateError(f"what would be its {DIGEST} has another name")
    for name, about in said.items():
      self.tensors[name] = self.tensor(name, about, begin)
    at = begin
    for name, (_, _, start, stop) in sorted(self.tensors.items(), key=lambda item: item[1][2:]):
      if start != at:
        raise StateError(f"{name!r} does not begin where the tensor before it ends")
      at = stop
    if at != end:
      raise StateError(
        f"its tensors end at byte {at}, the file at {end}: it was cut, or something was appended"
      )

  @staticmethod
  def tensor(name: str, about: Any, begin: int) -> tuple[DType, tuple[int, ...], int, int]:
    if not isinstance(about, dict) or set(about) != {"dtype", "shape", "data_offsets"}:
      raise StateError(f"{name!r} has other entries than dtype, shape and data_offsets")
    d, s, offsets = about["dtype"], about["shape"], about["data_offsets"]
    if not isinstance(d, str) or d not in FORMAT:
      raise StateError(f"{name!r} has the type {d!r}; there are {', '.join(FORMAT)}")
    if not _sizes(s) or len(s) > 32:
      raise StateError(f"{name!r} has the shape {s!r}")
    if not _sizes(offsets) or len(offsets) != 2:
      raise StateError(f"{name!r} has the offsets {offsets!r}")
    if offsets[1] - offsets[0] != prod(s) * FORMAT[d].itemsize:
      raise StateError(f"{name!r}, {d} {s}, does not take {offsets[1] - offsets[0]} bytes")
    fits_memory(s, FORMAT[d])
    return FORMAT[d], tuple(s), begin + offsets[0], begin + offsets[1]


def fits_memory(shape: Sequence[int], kind: DType | np.dtype) -> None:
  """StateError for a shape that no array has, with or without elements: [2**62, 0]."""
  if prod(n for n in shape if n) * kind.itemsize >= 1 << 63:
    raise StateError(f"the shape {[*shape]} is beyond any memory")


def _sizes(x: Any) -> bool:
  """Is x a list of integers from 0 to 2**63 - 1?"""
  return isinstance(x, list) and all(type(n) is int and 0 <= n < 1 << 63 for n in x)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
  found = dict(pairs)
  if len(found) != len(pairs):
    raise ArgumentError("a name appears twice")
  return found


class _Mapped:
  """A file in memory, with its header read; errors name the file."""

  def __init__(self, path: str | os.PathLike):
    self.path = path

  def __enter__(self) -> tuple[Any, _Header]:
    try:
      with open(self.path, "rb") as f:
        size = os.fstat(f.fileno()).st_size
        if size < 8:
          raise StateError(f"it has {size} bytes")
        nbytes = int.from_bytes(f.read(8), "little")
        if nbytes > min(size - 8, MOST_HEADER_BYTES):
          raise StateError(f"its header would take {nbytes} bytes, and the file has {size}")
        header = _Header(f.read(nbytes), 8 + nbytes, size)
        self.data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    except StateError as e:
      raise StateError(f"{os.fspath(self.path)} is no safetensors file, or not all of one: {e}") from None
    return self.data, header

  def __exit__(self, *exception: object) -> None:
    self.data.close()


OTHERS = ("gguf_load", "npz_load", "npz_save", "torch_load")


def __getattr__(name: str) -> Any:
  """The formats of mini/nn/formats.py, which is imported when they are asked for."""
  if name not in OTHERS:
    raise AttributeError(f"nn.state has no {name!r}", name=name, obj=sys.modules[__name__])
  from mini.nn import formats

  return getattr(formats, name)


__all__ = [
  "StateError",
  "get_parameters",
  "get_state_dict",
  "load_state_dict",
  "safe_load",
  "safe_load_metadata",
  "safe_save",
]
