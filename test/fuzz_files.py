"""Files of every format that nn.state reads: broken at random, and written by somebody who means harm.

    python test/fuzz_files.py [SEEDS] [FIRST]      runs seeds FIRST, FIRST+1, ... and prints what fails

Whatever stands in a file, loading it gives tensors or a StateError, takes memory in proportion to the file, and not
long. The limit is the process's: what asks for more gets a MemoryError, which is no StateError.
"""

from __future__ import annotations

import io
import json
import pickle
import random
import resource
import struct
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from mini import Tensor
from mini.nn.state import StateError, gguf_load, npz_load, npz_save, safe_load, safe_save, torch_load

ROOM_BYTES = 100 << 20  # that loading any of these may take
SECONDS = 5
FEW = 4096

# ---------------------------------------------------------------- PyTorch's files, written by hand


def op(name: str, *args: object) -> bytes:
  """An opcode of pickle, with its argument in bytes."""
  return getattr(pickle, name) + b"".join(a if isinstance(a, bytes) else struct.pack("<I", a) for a in args)


def number(n: int) -> bytes:
  return op("LONG4", 9) + n.to_bytes(9, "little", signed=True)


def numbers(*values: int) -> bytes:
  return op("MARK") + b"".join(map(number, values)) + op("TUPLE")


def word(s: str) -> bytes:
  return op("BINUNICODE", len(s), s.encode())


def of_torch(size: tuple, stride: tuple, offset: int = 0, numel: int = FEW, key: str = "0") -> bytes:
  """The opcodes of one tensor of float32."""
  storage = word("storage") + op("GLOBAL", b"torch\nFloatStorage\n") + word(key) + word("cpu") + number(numel)
  return (
    op("GLOBAL", b"torch._utils\n_rebuild_tensor_v2\n")
    + op("MARK")
    + (op("MARK") + storage + op("TUPLE") + op("BINPERSID"))
    + (number(offset) + numbers(*size) + numbers(*stride))
    + (op("NEWFALSE") + op("NONE") + op("TUPLE") + op("REDUCE"))
  )


def listed(*items: bytes) -> bytes:
  return op("PROTO", b"\x02") + op("EMPTY_LIST") + op("MARK") + b"".join(items) + op("APPENDS") + op("STOP")


def zipped(entries: dict[str, bytes], compressed: tuple[str, ...] = (), prefix: str = "a/") -> bytes:
  out = io.BytesIO()
  with zipfile.ZipFile(out, "w") as z:
    for name, data in entries.items():
      kind = zipfile.ZIP_DEFLATED if name in compressed else zipfile.ZIP_STORED
      z.writestr(zipfile.ZipInfo(prefix + name), data, kind)
  return out.getvalue()


def overlapping(count: int, nbytes: int) -> bytes:
  """A zip whose entries are all the same bytes."""
  data = bytearray(zipped({f"data/{n:04}": b"" for n in range(count)} | {"data.pkl": b""}))
  body = bytes(nbytes)
  out, tables = bytearray(), bytearray()
  pkl = listed(*(of_torch((nbytes // 4,), (1,), 0, nbytes // 4, f"{n:04}") for n in range(count)))
  for name, size in (("a/data.pkl", len(pkl)), ("a/data/0000", nbytes)):
    out += struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 0, 0, 0, 0, size, size, len(name), 0) + name.encode()
    out += pkl if name.endswith("pkl") else body
  at = {"a/data.pkl": 0, "a/data/0000": 30 + len("a/data.pkl") + len(pkl)}
  for name in ["a/data.pkl", *(f"a/data/{n:04}" for n in range(count))]:
    size, place = (len(pkl), 0) if name == "a/data.pkl" else (nbytes, at["a/data/0000"])
    about = (b"PK\1\2", 20, 20, 0, 0, 0, 0, 0, size, size, len(name), 0, 0, 0, 0, 0, place)
    tables += struct.pack("<4s6H3I5H2I", *about) + name.encode()
  del data
  end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count + 1, count + 1, len(tables), len(out), 0)
  return bytes(out + tables + end)


def torch_files() -> Iterator[tuple[str, bytes]]:
  raw = {"data/0": bytes(4 * FEW)}
  good = listed(of_torch((64, 64), (64, 1)), of_torch((64, 64), (1, 64)), of_torch((0, 3), (3, 1)))
  yield "good", zipped({"data.pkl": good, "byteorder": b"little", **raw})
  yield "good, expanded", zipped({"data.pkl": listed(of_torch((64, 64), (0, 1))), **raw})
  yield "byteorder", zipped({"data.pkl": good, "byteorder": bytes(1 << 27), **raw}, ("byteorder",))
  yield "compressed pickle", zipped({"data.pkl": good + bytes(1 << 27), **raw}, ("data.pkl",))
  yield "compressed data", zipped({"data.pkl": good, "data/0": bytes(1 << 27)}, ("data/0",))
  for name, put in (("LONG_BINPUT", op("LONG_BINPUT", 1 << 25)), ("PUT", b"p33554432\n")):
    yield name, zipped({"data.pkl": op("PROTO", b"\x02") + op("NONE") + put + op("STOP")})
  for name in ("BINBYTES8", "BYTEARRAY8", "BINUNICODE8"):
    yield name, zipped({"data.pkl": b"\x80\x05" + op(name, struct.pack("<Q", 1 << 31)) + b"x."})
  yield "BINBYTES", zipped({"data.pkl": b"\x80\x03" + op("BINBYTES", (1 << 32) - 1) + b"x."})
  yield "FRAME", zipped({"data.pkl": b"\x80\x04" + op("FRAME", struct.pack("<Q", 1 << 40)) + b"x."})
  many = [of_torch((FEW, FEW), (0, 1)) for _ in range(100)]
  yield "stride 0", zipped({"data.pkl": listed(*many), **raw})
  yield "windows", zipped({"data.pkl": listed(of_torch((FEW // 2, FEW // 2), (1, 1))), **raw})
  shifted = [of_torch((1 << 17,), (1,), n, 1 << 18) for n in range(1 << 11)]
  yield "one storage often", zipped({"data.pkl": listed(*shifted), "data/0": bytes(1 << 20)})
  yield "entries overlap", overlapping(1000, 1 << 20)
  yield "huge and empty", zipped({"data.pkl": listed(of_torch((1 << 62, 0), (1, 1))), **raw})
  yield "huge, stride 0", zipped({"data.pkl": listed(of_torch((1 << 62, 1 << 62), (0, 0))), **raw})
  yield "nested", zipped({"data.pkl": b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."})


# ---------------------------------------------------------------- the others


def text(s: str) -> bytes:
  return struct.pack("<Q", len(s.encode())) + s.encode()


def gguf(
  tensors: list[tuple[str, tuple, int, int]], metadata: bytes = b"", count: int = 0, data: bytes = b""
) -> bytes:
  """tensors: (name, shape, type, offset)"""
  head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), count) + metadata
  for name, shape, kind, offset in tensors:
    head += (
      text(name)
      + struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
      + struct.pack("<IQ", kind, offset)
    )
  return head + b"\0" * (-len(head) % 32) + data


def gguf_files() -> Iterator[tuple[str, bytes]]:
  name = text("general.name") + struct.pack("<I", 8) + text("net") + text("n") + struct.pack("<II", 4, 3)
  both = [("a", (4, 32), 0, 0), ("b", (2, 32), 8, 512), ("c", (1, 32), 2, 608)]
  yield "good", gguf(both, name, 2, bytes(640))
  yield "overlap", gguf([(f"t{n}", (1 << 18,), 0, 0) for n in range(1000)], data=bytes(1 << 20))
  yield "same name", gguf([("a", (8,), 0, 0), ("a", (8,), 0, 32)], data=bytes(64))
  yield "huge and empty", gguf([("a", (1 << 62, 0), 0, 0)])
  yield "huge", gguf([("a", (1 << 62, 1 << 62), 0, 0)], data=bytes(64))
  yield "wraps", gguf([("a", (1 << 32, 1 << 32), 0, 0)], data=bytes(64))
  yield "far", gguf([("a", (8,), 0, (1 << 64) - 32)], data=bytes(64))
  listed = struct.pack("<IIQ", 9, 0, 1 << 40)
  yield "long list", gguf([], text("n") + listed, 1, bytes(FEW))
  yield "lists in lists", gguf([], text("n") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1 << 9) * 400, 1)
  yield "long text", gguf([], struct.pack("<Q", 1 << 62), 1)
  yield "alignment", gguf([], text("general.alignment") + struct.pack("<IQ", 10, 1 << 63), 1)


def npy(header: str, data: bytes, version: tuple[int, int] = (1, 0)) -> bytes:
  size = struct.pack("<H" if version == (1, 0) else "<I", len(header))
  return b"\x93NUMPY" + bytes(version) + size + header.encode() + data


def npz_files() -> Iterator[tuple[str, bytes]]:
  def array(shape: str, descr: str = "'<f4'", data: bytes = bytes(16)) -> bytes:
    return npy(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n", data)

  out = io.BytesIO()
  np.savez_compressed(out, a=np.arange(64.0).reshape(8, 8), b=np.zeros((0, 3), np.int8), c=np.float32(1))
  yield "good", out.getvalue()
  yield "bomb", zipped({"a.npy": array(f"({1 << 25},)", data=bytes(1 << 27))}, ("a.npy",), "")
  for shape in (
    f"({1 << 40},)",
    f"({1 << 62}, 0)",
    f"({1 << 62}, {1 << 62})",
    "(-1,)",
    "(True, 4)",
    "(1.0,)",
    "4",
  ):
    yield f"shape {shape}", zipped({"a.npy": array(shape)}, prefix="")
  for kind in ("'V0'", "'O'", "'<U4'", "'M8[s]'", "[('a', '<f4')]", "('<f4', (9, 9))", "'<f16'", "'|S0'"):
    yield f"type {kind}", zipped({"a.npy": array("(1,)", kind)}, prefix="")
  yield "header", zipped({"a.npy": npy("[" * 60_000, b"")}, prefix="")
  yield "long header", zipped({"a.npy": npy("(" + "0," * (1 << 22), b"", (2, 0))}, prefix="")
  yield "no header", zipped({"a.npy": b"\x93NUMPY\2\0" + struct.pack("<I", (1 << 32) - 1)}, prefix="")
  yield "no array", zipped({"a.txt": b"x"}, prefix="")
  yield "same name", zipped({"a": array("(4,)"), "a.npy": array("(4,)")}, prefix="")


def safe(header: object, data: bytes = b"") -> bytes:
  said = header if isinstance(header, bytes) else json.dumps(header).encode()
  return len(said).to_bytes(8, "little") + said + data


def safe_files(folder: Path) -> Iterator[tuple[str, bytes]]:
  path = folder / "good"
  tensors = {
    "a": Tensor(np.arange(6.0, dtype=np.float32)),
    "b": Tensor([[True, False]]),
    "c": Tensor([], dtype="int8"),
  }
  safe_save(tensors, path, {"step": "3", "ä": "ö"})
  yield "good", path.read_bytes()

  def entry(shape: list, nbytes: int, kind: str = "F32") -> dict:
    return {"a": {"dtype": kind, "shape": shape, "data_offsets": [0, nbytes]}}

  for shape in ([1 << 62, 0], [0, 1 << 62], [1 << 40, 1 << 40, 0], [0] * 32, [0] * 33):
    yield f"shape {shape}", safe(entry(shape, 0))
  yield "huge", safe(entry([1 << 61], 1 << 63), bytes(8))
  yield "deep", safe(b'{"a":' * 100_000)
  yield "a long number", safe(b'{"a": ' + b"9" * 100_000 + b"}")


LOADERS: dict[str, Callable] = {"torch": torch_load, "gguf": gguf_load, "npz": npz_load, "safe": safe_load}


def files(folder: Path) -> Iterator[tuple[str, str, bytes]]:
  """(format, name, bytes) of them all."""
  made = {"torch": torch_files(), "gguf": gguf_files(), "npz": npz_files(), "safe": safe_files(folder)}
  for kind, found in made.items():
    for name, data in found:
      yield kind, name, data


# ---------------------------------------------------------------- running


def broken(data: bytes, r: random.Random) -> bytes:
  """The file cut, with bits flipped, bytes that say much, or a piece of it somewhere else."""
  bad = bytearray(data)
  what = r.randrange(5)
  if what == 0:
    del bad[r.randrange(len(bad)) :]
  elif what == 1:
    for _ in range(r.choice([1, 1, 3])):
      bad[r.randrange(len(bad))] ^= 1 << r.randrange(8)
  elif what == 2:
    at, n = r.randrange(len(bad)), r.choice([1, 2, 4, 8])
    bad[at : at + n] = r.choice([b"\xff", b"\0", b"\x7f"]) * n
  elif what == 3:
    at, n = r.randrange(len(bad)), r.randrange(1, 40)
    bad[at:at] = bad[(start := r.randrange(len(bad))) : start + n]
  else:
    at = r.randrange(len(bad))
    del bad[at : at + r.randrange(1, 40)]
  return bytes(bad)


def peak_bytes() -> int:
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def loaded(load: Callable, path: Path) -> str:
  """ "" where it gives tensors or a StateError; what is wrong with it else."""
  start = time.perf_counter()
  try:
    load(path)
  except StateError as e:
    if len(str(e)) > 2000:
      return f"a message of {len(str(e)):,} characters"
  except BaseException as e:  # noqa: BLE001 (whatever it is)
    return f"{type(e).__name__}: {str(e)[:200]}"
  seconds = time.perf_counter() - start
  return f"it took {seconds:.1f} s" if seconds > SECONDS else ""


def within(nbytes: int) -> None:
  """No more memory than now and so much."""
  pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
  if pages:
    limit = pages * resource.getpagesize() + nbytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


def main(seeds: int = 200, first: int = 0) -> int:
  failed = 0
  with tempfile.TemporaryDirectory() as name:
    path = Path(name) / "file"
    npz_save({"warm": Tensor([1.0]) + 1}, path)
    good: list[tuple[str, bytes]] = []
    todo = []
    for kind, about, data in files(Path(name)):
      file = Path(name) / str(len(todo))
      file.write_bytes(data)
      todo.append((kind, about, file))
      if about.startswith("good"):
        good.append((kind, data))
    del data
    within(ROOM_BYTES)
    for kind, about, file in todo:
      before = peak_bytes()
      wrong = loaded(LOADERS[kind], file)
      if about.startswith("good") and not wrong:
        LOADERS[kind](file)
      if not wrong and peak_bytes() - before > ROOM_BYTES:
        wrong = f"it took {(peak_bytes() - before) >> 20} MiB"
      if wrong:
        failed += 1
        print(f"{kind}, {about}: {wrong}")
    for seed in range(first, first + seeds):
      r = random.Random(seed)
      kind, data = r.choice(good)
      path.write_bytes(broken(data, r))
      if wrong := loaded(LOADERS[kind], path):
        failed += 1
        print(f"{kind}, seed {seed}: {wrong}")
  print(f"{len(todo)} files, {seeds} broken ones: {failed} failed")
  return failed


if __name__ == "__main__":
  sys.exit(bool(main(*map(int, sys.argv[1:]))))
