"""Checkpoints of others: PyTorch's zip files, GGUF files and NumPy's archives, as tensors by name.

Nothing in a file is run: the unpickler makes tensors and plain containers, and knows no other names. A file that was
cut, is no such file, or asks for more than it holds is a StateError: what a file says of sizes is compared with its own
before memory is taken.

The formats: torch.save writes a zip of data.pkl and data/KEY, uncompressed
(https://docs.pytorch.org/docs/stable/notes/serialization.html);
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import pickletools
import reprlib
import struct
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mini.nn.state import StateError, fits_memory
from mini.tensor import Tensor
from mini.types import DType, MiniError, dtypes
from runtime.files import written

# fmt: off
STORAGES = {"DoubleStorage": dtypes.float64, "FloatStorage": dtypes.float32, "HalfStorage": dtypes.float16,
            "BFloat16Storage": dtypes.bfloat16, "LongStorage": dtypes.int64, "IntStorage": dtypes.int32,
            "ShortStorage": dtypes.int16, "CharStorage": dtypes.int8, "ByteStorage": dtypes.uint8,
            "BoolStorage": dtypes.bool, "ComplexFloatStorage": dtypes.complex64,
            "ComplexDoubleStorage": dtypes.complex128}
BROKEN = (zipfile.BadZipFile, pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError,
          AttributeError, OverflowError, struct.error, zlib.error, NotImplementedError, RuntimeError, SyntaxError,
          OSError, RecursionError, UnicodeError, MiniError)
# fmt: on
MOST_PICKLE_BYTES = 1 << 28  # of data.pkl, which names tensors and does not hold them
MOST_OVERLAP = 8  # how often tensors may hold the same elements of a storage: each has a copy
MOST_UNPACKED = 64  # times the size of an archive of arrays that they may take ...
LEAST_LIMIT_BYTES = 64 << 20  # ... unless it is less than this
MOST_HEADER_BYTES = 10_000  # of an array: NumPy's own limit
MOST_AXES = 64  # of an array: NumPy's own limit, too
CONTAINER_BYTES = 100  # that one takes, about


def _failed(path: Any, what: str, e: Exception) -> StateError:
  return StateError(f"{os.fspath(path)} is no {what}, or not all of one: {str(e)[:500] or type(e).__name__}")


def _array(raw: np.ndarray, kind: DType) -> np.ndarray:
  """Bytes as an array that a tensor of this type can be made of."""
  if kind is dtypes.bfloat16:
    return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32)
  if kind is dtypes.bool:
    return raw != 0
  return raw.view(kind.storage.newbyteorder("<")).astype(kind.np, copy=False)


# ---------------------------------------------------------------- PyTorch


class _Storage(NamedTuple):
  """A storage that a pickle speaks of: all the tensors on it share its elements."""

  kind: DType
  key: str
  numel: int


_InPython: Any = getattr(pickle, "_Unpickler")  # noqa: B009 (mypy knows the one in C, of which no opcode can be changed)


class _Unpickler(_InPython):
  """Makes tensors and plain containers; StateError for every other name, for keys that are no texts, numbers or rows of
  them (the hash of nested tuples may take for ever), and for attributes of anything but OrderedDicts, as state_dicts
  have them."""

  dispatch: ClassVar[dict[int, Any]] = {**_InPython.dispatch}

  def __init__(self, data: bytes, tensor: Callable[..., Tensor]):
    super().__init__(io.BytesIO(data))
    self.known: dict[tuple[str, str], Any] = {
      ("collections", "OrderedDict"): lambda *pairs: OrderedDict(*map(_keyed, pairs)),
      ("torch._utils", "_rebuild_tensor_v2"): tensor,
      ("torch._utils", "_rebuild_parameter"): lambda t, *rest: t,
      ("torch", "Size"): lambda s: tuple(s),
      ("builtins", "set"): lambda items=(): set(map(_key, items)),
      ("__builtin__", "set"): lambda items=(): set(map(_key, items)),
      **{
        ("torch", name): name for name in STORAGES
      },  # not the types: a pickle can set attributes of what it has
    }

  def find_class(self, module: str, name: str) -> Any:
    if (module, name) not in self.known:
      raise StateError(f"it asks for {module}.{name}; only tensors and plain containers are taken")
    return self.known[module, name]

  def persistent_load(self, pid: Any) -> _Storage:
    tag, kind, key, _, numel = pid
    if tag != "storage" or not all(isinstance(x, str) for x in (kind, key)) or type(numel) is not int:
      raise StateError(f"it speaks of {reprlib.repr(pid)}, which is no storage")
    if kind not in STORAGES:
      raise StateError(f"it speaks of a {kind[:80]}, which is no storage")
    return _Storage(STORAGES[kind], key, numel)

  def load_build(self) -> None:
    if type(self.stack[-2]) is not OrderedDict or not isinstance(self.stack[-1], dict):
      raise StateError(f"it sets attributes of a {type(self.stack[-2]).__name__}")
    super().load_build()

  def load_setitem(self) -> None:
    self.sets(self.stack[-3], self.stack[-2:-1])
    super().load_setitem()

  def load_setitems(self) -> None:
    self.sets(self.metastack[-1][-1], self.stack[::2])
    super().load_setitems()

  def sets(self, target: Any, keys: Sequence[Any]) -> None:
    if not isinstance(target, dict):
      raise StateError(f"it sets items of a {type(target).__name__}")
    for key in keys:
      _key(key)

  def refuse(self) -> None:
    raise StateError("it holds sets or dicts in a form that torch.save does not write")

  dispatch[pickle.BUILD[0]] = load_build
  dispatch[pickle.SETITEM[0]] = load_setitem
  dispatch[pickle.SETITEMS[0]] = load_setitems
  dispatch[pickle.DICT[0]] = dispatch[pickle.FROZENSET[0]] = dispatch[pickle.ADDITEMS[0]] = refuse


def _key(x: Any) -> Any:
  """x, if it is a text, a number or None, or a short row of these."""
  plain = str, bytes, int, float, complex, bool, type(None)
  if type(x) not in plain and not (type(x) is tuple and len(x) < 64 and all(type(y) in plain for y in x)):
    raise StateError(f"a key is a {type(x).__name__}, not a text or a number")
  return x


def _keyed(pairs: Any) -> Any:
  return {_key(k): v for k, v in (pairs.items() if isinstance(pairs, dict) else pairs)}


def torch_load(path: str | os.PathLike, device: str | None = None) -> Any:
  """What torch.save wrote: a state_dict, or other nested dicts, lists and numbers, with tensors in them.

  StateError where the file holds anything else, is of the format before PyTorch 1.6, or is not all there. Tensors that
  share a storage are copies. requires_grad is not kept, nor is the device.
  """
  with open(path, "rb") as f:
    try:
      with zipfile.ZipFile(f) as z:
        archive = _Archive(z, os.fstat(f.fileno()).st_size, device)
        return _Unpickler(_plain_pickle(archive.read("data.pkl", MOST_PICKLE_BYTES)), archive.tensor).load()
    except BROKEN as e:
      raise _failed(path, "file of torch.save", e) from None


def _plain_pickle(data: bytes) -> bytes:
  """The pickle, if its parts are as long as they say, its memo is dense and its containers are not all that is in it:
  unpickling takes that memory first."""
  containers = 0
  for n, (op, arg, _) in enumerate(pickletools.genops(data)):
    containers += op.name.startswith(("EMPTY_", "LIST", "TUPLE", "REDUCE"))
    if containers * CONTAINER_BYTES > LEAST_LIMIT_BYTES + MOST_OVERLAP * len(data):
      raise StateError(f"its data.pkl of {len(data)} bytes holds more than {containers} containers")
    if "PUT" in op.name and int(arg or 0) > n:
      raise StateError(f"its data.pkl puts something at {arg}, and has come to its opcode {n}")
  return data


class _Archive:
  """A zip of torch.save: its storages, each read once, and the tensors on them."""

  def __init__(self, z: zipfile.ZipFile, nbytes: int, device: str | None):
    """nbytes: of the file."""
    self.z, self.nbytes, self.device = z, nbytes, device
    self.names = {n.filename.split("/", 1)[-1]: n for n in z.infolist()}
    if len(self.names) != len(z.infolist()) or "data.pkl" not in self.names:
      raise StateError("there is no data.pkl in it, or something twice")
    if sum(n.file_size for n in self.names.values()) > nbytes:
      raise StateError("its entries are compressed, or overlap")
    if "byteorder" in self.names and self.read("byteorder", 16) != b"little":
      raise StateError("its numbers are not little-endian")
    self.held: dict[str, np.ndarray] = {}
    self.made: dict[Any, Tensor] = {}
    self.taken = 0  # bytes, by tensors

  def read(self, name: str, most: int) -> bytes:
    """An entry, of at most so many bytes, which stands in the file as it is."""
    entry = self.names[name]
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
      raise StateError(f"{name} is compressed")
    if entry.file_size > most:
      raise StateError(f"its {name} would take {entry.file_size} bytes")
    return self.z.read(entry)

  def storage(self, s: _Storage) -> np.ndarray:
    if s.key not in self.held:
      self.held[s.key] = np.frombuffer(self.read(f"data/{s.key}", self.nbytes), np.uint8)
    raw = self.held[s.key]
    if s.numel < 0 or s.numel * s.kind.itemsize > len(raw):
      raise StateError(f"data/{s.key} has {len(raw)} bytes, and should have {s.numel} of {s.kind.name}")
    return raw

  def tensor(
    self, s: _Storage, offset: int, size: Sequence[int], stride: Sequence[int], *rest: Any
  ) -> Tensor:
    """A copy of these elements; along strides of 0 it is expanded, which takes no memory."""
    if not isinstance(s, _Storage) or len(size) != len(stride):
      raise StateError("a tensor is not made of a storage, a shape and strides")
    if len(size) > MOST_AXES or any(
      type(n) is not int or not 0 <= n < 1 << 63 for n in (offset, *size, *stride)
    ):
      said = (*map(reprlib.repr, (size, stride, offset)),)
      raise StateError("a tensor has the shape {}, the strides {} and begins at {}".format(*said))
    fits_memory(size, s.kind)
    last = offset + sum((n - 1) * step for n, step in zip(size, stride)) if prod(size) else -1
    if last >= s.numel or prod(size) > max(s.numel, 1) * 4096:
      raise StateError(f"a tensor of shape {tuple(size)} goes beyond its storage of {s.numel}")
    held = tuple(1 if step == 0 and n else n for n, step in zip(size, stride))
    marks = rest[2] if len(rest) > 2 and isinstance(rest[2], dict) else {}
    flags = bool(marks.get("conj")), bool(marks.get("neg"))  # views that PyTorch has not carried out
    key = s, offset, held, tuple(stride), flags
    if key not in self.made:
      self.made[key] = self.copied(s, offset, last + 1, held, stride, *flags)
    return Tensor(self.made[key]).expand(tuple(size)) if held != tuple(size) else Tensor(self.made[key])

  def copied(
    self,
    s: _Storage,
    start: int,
    stop: int,
    size: Sequence[int],
    stride: Sequence[int],
    conj: bool,
    neg: bool,
  ) -> Tensor:
    self.taken += prod(size) * s.kind.itemsize
    if self.taken > MOST_OVERLAP * self.nbytes:
      raise StateError(f"its tensors would take {self.taken} bytes, and it has {self.nbytes}")
    flat = _array(self.storage(s)[start * s.kind.itemsize : stop * s.kind.itemsize], s.kind)
    steps = [step * flat.itemsize for step in stride]
    view = np.lib.stride_tricks.as_strided(flat, size, steps) if prod(size) else flat[:0].reshape(size)
    view = view.conj() if conj else view
    view = -view if neg else view
    return Tensor(np.ascontiguousarray(view).reshape(tuple(size)), dtype=s.kind, device=self.device)


# ---------------------------------------------------------------- GGUF


class Packed(NamedTuple):
  """A type of GGUF: how many elements a block has, in how many bytes, and its elements.

  u8[blocks, bytes] -> [blocks, n]
  """

  elements: int
  nbytes: int
  dtype: DType
  unpack: Callable[[np.ndarray], np.ndarray]


def _plain(kind: DType) -> Packed:
  return Packed(1, kind.itemsize, kind, lambda raw: _array(np.ascontiguousarray(raw).reshape(-1), kind))


def _half(raw: np.ndarray, at: int) -> np.ndarray:
  """The float16 at a byte of each block, as a column of float32."""
  return np.ascontiguousarray(raw[:, at : at + 2]).view("<f2").astype(np.float32)


def _nibbles(raw: np.ndarray) -> np.ndarray:
  """The low halves of all bytes, then the high ones."""
  return np.concatenate([raw & 15, raw >> 4], 1).astype(np.float32)


def _fifths(raw: np.ndarray) -> np.ndarray:
  """The fifth bits of 32 numbers, which stand in 4 bytes, as 16."""
  return np.unpackbits(raw, axis=1, bitorder="little").astype(np.float32) * 16


# fmt: off
GGUF = {
  0:  _plain(dtypes.float32),
  1:  _plain(dtypes.float16),
  2:  Packed(32, 18, dtypes.float32, lambda b: _half(b, 0) * (_nibbles(b[:, 2:]) - 8)),  # Q4_0
  3:  Packed(32, 20, dtypes.float32, lambda b: _half(b, 0) * _nibbles(b[:, 4:]) + _half(b, 2)),  # Q4_1
  6:  Packed(32, 22, dtypes.float32, lambda b: _half(b, 0) * (_nibbles(b[:, 6:]) + _fifths(b[:, 2:6]) - 16)),  # Q5_0
  7:  Packed(32, 24, dtypes.float32,  # Q5_1
             lambda b: _half(b, 0) * (_nibbles(b[:, 8:]) + _fifths(b[:, 4:8])) + _half(b, 2)),
  8:  Packed(32, 34, dtypes.float32, lambda b: _half(b, 0) * b[:, 2:].view(np.int8)),  # Q8_0
  24: _plain(dtypes.int8),
  25: _plain(dtypes.int16),
  26: _plain(dtypes.int32),
  27: _plain(dtypes.int64),
  28: _plain(dtypes.float64),
  30: _plain(dtypes.bfloat16),
}
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
# fmt: on


class _Reader:
  """Reads values from bytes, one after another; StateError at their end."""

  def __init__(self, data: mmap.mmap):
    self.data, self.at = data, 0

  def take(self, n: int) -> bytes:
    if n > len(self.data) - self.at:
      raise StateError(f"it ends at byte {len(self.data)}, in the middle of something")
    self.at += n
    return self.data[self.at - n : self.at]

  def number(self, form: str) -> Any:
    return struct.unpack(form, self.take(struct.calcsize(form)))[0]

  def text(self) -> str:
    return self.take(self.number("<Q")).decode()

  def value(self, kind: int, depth: int = 0) -> Any:
    """A value of the metadata: a number, a text or a list."""
    if kind in SCALARS:
      return self.number(SCALARS[kind])
    if kind == 8:
      return self.text()
    if kind != 9 or depth > 4:
      raise StateError(f"its metadata have a value of the type {kind}")
    inner, count = self.number("<I"), self.number("<Q")
    if count > len(self.data):
      raise StateError(f"its metadata have a list of {count}")
    return [self.value(inner, depth + 1) for _ in range(count)]


def gguf_load(path: str | os.PathLike, device: str | None = None) -> tuple[dict[str, Any], dict[str, Tensor]]:
  """(the metadata, the tensors) of a GGUF file, by name; quantized tensors as float32.

  Of the types F32, F16, BF16, F64, I8, I16, I32, I64, Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0; StateError on others.
  """
  with open(path, "rb") as f:
    try:
      with mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _from_gguf(_Reader(data), device)
    except BROKEN as e:
      raise _failed(path, "GGUF file", e) from None


def _from_gguf(r: _Reader, device: str | None) -> tuple[dict[str, Any], dict[str, Tensor]]:
  if r.take(4) != b"GGUF" or r.number("<I") not in (2, 3):
    raise StateError("it does not begin as one of version 2 or 3 does")
  tensors, values = r.number("<Q"), r.number("<Q")
  if max(tensors, values) > len(r.data):
    raise StateError(f"it would have {tensors} tensors and {values} metadata")
  metadata = {r.text(): r.value(r.number("<I")) for _ in range(values)}
  about: list[tuple[str, list[int], int, int]] = []
  for _ in range(tensors):
    name, axes = r.text(), r.number("<I")
    if axes > 8:
      raise StateError(f"{name!r} has {axes} axes")
    about.append((name, [r.number("<Q") for _ in range(axes)][::-1], r.number("<I"), r.number("<Q")))
  align = metadata.get("general.alignment", 32)
  if type(align) is not int or not 0 < align <= 1 << 20:
    raise StateError(f"its alignment is {align!r}")
  begin, found = -(-r.at // align) * align, {}
  if len({name for name, *_ in about}) < len(about):
    raise StateError("a name appears twice")
  taken = 0
  for name, s, kind, offset in about:
    if kind not in GGUF:
      raise StateError(f"{name!r} has the type {kind}, which is not read")
    n, nbytes, dtype, unpack = GGUF[kind]
    if prod(s) % n or (s and s[-1] % n):
      raise StateError(f"{name!r} of shape {s} does not fall into blocks of {n}")
    fits_memory(s, dtype)
    taken += prod(s) // n * nbytes
    if taken > len(r.data):
      raise StateError(f"its tensors would take {taken} bytes, and it has {len(r.data)}")
    r.at = begin + offset
    raw = np.frombuffer(r.take(prod(s) // n * nbytes), np.uint8).reshape(-1, nbytes)
    found[name] = Tensor(np.ascontiguousarray(unpack(raw)).reshape(s), dtype=dtype, device=device)
  return metadata, found


# ---------------------------------------------------------------- NumPy


def npz_load(path: str | os.PathLike, device: str | None = None) -> dict[str, Tensor]:
  """The arrays of an archive of numpy.savez, by name. StateError if one is of objects, or the file is not all there.

  >>> import tempfile
  >>> with tempfile.TemporaryDirectory() as folder:
  ...   npz_save({"w": Tensor([1.0, 2.0])}, folder + "/a.npz")
  ...   npz_load(folder + "/a.npz")["w"]
  Tensor([1., 2.])
  """
  with open(path, "rb") as f:
    try:
      with zipfile.ZipFile(f) as z:
        nbytes = sum(n.file_size for n in z.infolist())
        if nbytes > max(MOST_UNPACKED * os.fstat(f.fileno()).st_size, LEAST_LIMIT_BYTES):
          raise StateError(f"its arrays would take {nbytes} bytes, too many for what is packed in it")
        arrays = {n.filename.removesuffix(".npy"): n for n in z.infolist()}
        if len(arrays) < len(z.infolist()):
          raise StateError("a name appears twice")
        return {name: Tensor(_unpacked(z, n), device=device) for name, n in arrays.items()}
    except BROKEN as e:
      raise _failed(path, "archive of arrays", e) from None


def _unpacked(z: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
  """An array, if its header speaks of as many bytes as there are."""
  with z.open(entry) as f:
    version = np.lib.format.read_magic(f)  # type: ignore[no-untyped-call]
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    begin = f.tell()
    size = int.from_bytes(f.read(2 if version == (1, 0) else 4), "little")
    if size > MOST_HEADER_BYTES:
      raise StateError(f"{entry.filename} has a header of {size} bytes")
    f.seek(begin)
    shape, _, kind = read(f, max_header_size=MOST_HEADER_BYTES)
    if kind.kind not in "biufc" or any(type(n) is not int or n < 0 for n in shape):
      raise StateError(f"{entry.filename} has the type {kind} and the shape {shape}")
    fits_memory(shape, kind)
    if prod(shape) * kind.itemsize != entry.file_size - f.tell():
      raise StateError(f"{entry.filename}, {kind} {shape}, has {entry.file_size - f.tell()} bytes")
  with z.open(entry) as f:  # anew: of an entry in which somebody seeks, newer Pythons compare no CRC
    return np.lib.format.read_array(f, allow_pickle=False)


def npz_save(tensors: dict[str, Tensor], path: str | os.PathLike) -> None:
  """Write tensors to an archive as numpy.savez does; those of bfloat16 as float32."""
  with written(path) as f:
    np.savez(f, **{name: t.numpy() for name, t in tensors.items()})  # type: ignore[arg-type]


__all__ = ["gguf_load", "npz_load", "npz_save", "torch_load"]
