"""Checkpoints of PyTorch, GGUF and NumPy: what is read, and that broken or hostile files are one clear error."""

import pickle
import random
import struct
import zipfile
from collections import OrderedDict

import numpy as np
import pytest

from mini import Tensor, dtypes, nn
from mini.nn.state import StateError, gguf_load, npz_load, npz_save, torch_load

torch = pytest.importorskip("torch")


def test_types_strides_and_shared_storages(tmp_path):
  base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
  kinds = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]
  saved = OrderedDict({n: (base.abs() % 5).to(getattr(torch, n)) for n in kinds})
  saved.update(
    view=base.T[1:4, ::2],
    same=base,
    scalar=torch.tensor(3.5),
    none=torch.zeros(0, 3),
    wide=torch.ones(1).expand(5),
  )
  saved["parameter"] = torch.nn.Parameter(base[0])
  torch.save({"model": saved, "step": 7, "rates": [0.1, (1, None)], "name": "x"}, tmp_path / "a.pt")
  found = torch_load(tmp_path / "a.pt")
  assert found["step"] == 7 and found["rates"] == [0.1, (1, None)] and found["name"] == "x"
  for name, t in saved.items():
    got = found["model"][name]
    assert got.dtype.name == str(t.dtype).removeprefix("torch.") and got.shape == tuple(t.shape)
    assert np.array_equal(
      got.numpy(), t.detach().float().numpy() if name == "bfloat16" else t.detach().numpy()
    )


def test_a_model(tmp_path):
  theirs = torch.nn.TransformerEncoderLayer(8, 2, 16)
  torch.save(theirs.state_dict(), tmp_path / "a.pt")
  ours = nn.TransformerEncoderLayer(8, 2, 16)
  ours.load_state_dict(torch_load(tmp_path / "a.pt"))
  x = np.random.default_rng(0).standard_normal((3, 2, 8)).astype(np.float32)
  wanted = theirs.eval()(torch.tensor(x)).detach().numpy()
  np.testing.assert_allclose(ours.eval()(Tensor(x)).numpy(), wanted, rtol=1e-4, atol=1e-5)


class Hostile:
  def __reduce__(self):
    return (eval, ("__import__('os').environ.__setitem__('MINI_HOSTILE', '1')",))


def zipped(path, pkl, **entries):
  with zipfile.ZipFile(path, "w") as z:
    for name, data in {"data.pkl": pkl, **entries}.items():
      z.writestr(f"a/{name}", data)


def test_hostile_files(tmp_path, monkeypatch):
  monkeypatch.delenv("MINI_HOSTILE", raising=False)
  path = tmp_path / "a.pt"
  torch.save({"a": Hostile()}, path)
  with pytest.raises(StateError, match=r"a\.pt .*asks for .*eval; only tensors and plain containers"):
    torch_load(path)
  import os

  assert "MINI_HOSTILE" not in os.environ
  torch.save(torch.nn.Linear(2, 3), path)
  with pytest.raises(StateError, match="asks for torch.nn"):
    torch_load(path)
  zipped(path, pickle.dumps([1, 2]))
  assert torch_load(path) == [1, 2]
  zipped(path, b"\x80\x02]q\x00")
  with pytest.raises(StateError):
    torch_load(path)
  with zipfile.ZipFile(path, "w") as z:
    z.writestr("a/b", "x")
  with pytest.raises(StateError, match="no data.pkl"):
    torch_load(path)
  path.write_bytes(pickle.dumps({"a": 1}))
  with pytest.raises(StateError, match="is no file of torch.save"):
    torch_load(path)
  with pytest.raises(FileNotFoundError):
    torch_load(tmp_path / "none.pt")


@pytest.mark.parametrize(
  "size, stride, offset", [((7,), (1,), 0), ((2, 3), (4, 1), 0), ((6,), (1,), 1), ((1 << 40,), (0,), 0)]
)
def test_tensors_beyond_their_storage(tmp_path, size, stride, offset):
  torch.save(torch.zeros(6), tmp_path / "a.pt")
  with zipfile.ZipFile(tmp_path / "a.pt") as z:
    entries = {n.split("/", 1)[1]: z.read(n) for n in z.namelist()}
  whole = pickle.Pickler

  class Storage:
    pass

  class P(whole):
    def persistent_id(self, x):
      return ("storage", torch.FloatStorage, "0", "cpu", 6) if isinstance(x, Storage) else None

  class T:
    def __reduce__(self):
      return (torch._utils._rebuild_tensor_v2, (Storage(), offset, size, stride, False, OrderedDict()))

  import io

  out = io.BytesIO()
  P(out, 2).dump(T())
  zipped(tmp_path / "b.pt", out.getvalue(), **{k: v for k, v in entries.items() if k.startswith("data/")})
  with pytest.raises(StateError, match="goes beyond its storage"):
    torch_load(tmp_path / "b.pt")


# ---------------------------------------------------------------- GGUF


def text(s):
  return struct.pack("<Q", len(s.encode())) + s.encode()


def gguf(tensors, metadata=b"", count=0):
  """A file of (name, shape, type, bytes)."""
  head, body = b"", b""
  for name, shape, kind, data in tensors:
    head += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape[::-1])
    head += struct.pack("<IQ", kind, len(body))
    body += data + b"\0" * (-len(data) % 32)
  head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), count) + metadata + head
  return head + b"\0" * (-len(head) % 32) + body


def blocks(kind, x):
  """x quantized, and what is to be read."""
  x = x.reshape(-1, 32)
  if kind == 8:
    d = (np.abs(x).max(1, keepdims=True) / 127).astype(np.float16)
    q = np.round(x / d.astype(np.float32)).astype(np.int8)
    return b"".join(a.tobytes() + b.tobytes() for a, b in zip(d, q)), q * d.astype(np.float32)
  d = (np.abs(x).max(1, keepdims=True) / 8).astype(np.float16)
  q = np.clip(np.round(x / d.astype(np.float32)) + 8, 0, 15).astype(np.uint8)
  packed = q[:, :16] | q[:, 16:] << 4
  return b"".join(a.tobytes() + b.tobytes() for a, b in zip(d, packed)), (q - np.float32(8)) * d.astype(
    np.float32
  )


def sample():
  x = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
  b8, w8 = blocks(8, x)
  b4, w4 = blocks(2, x)
  metadata = text("general.name") + struct.pack("<I", 8) + text("net")
  metadata += text("sizes") + struct.pack("<IIQ3i", 9, 5, 3, 1, -2, 3)
  tensors = [("f32", (3, 64), 0, x.tobytes()), ("f16", (3, 64), 1, x.astype(np.float16).tobytes()),
             ("q8", (3, 64), 8, b8), ("q4", (3, 64), 2, b4), ("i", (2,), 26, struct.pack("<2i", 5, -6))]  # fmt: skip
  wanted = {
    "f32": x,
    "f16": x.astype(np.float16),
    "q8": w8.reshape(3, 64),
    "q4": w4.reshape(3, 64),
    "i": [5, -6],
  }
  return gguf(tensors, metadata, 2), wanted


def test_gguf(tmp_path):
  data, wanted = sample()
  (tmp_path / "a.gguf").write_bytes(data)
  metadata, found = gguf_load(tmp_path / "a.gguf")
  assert metadata == {"general.name": "net", "sizes": [1, -2, 3]} and list(found) == list(wanted)
  for name, x in wanted.items():
    assert np.array_equal(found[name].numpy(), x), name
  assert found["f16"].dtype is dtypes.float16 and found["q4"].dtype is dtypes.float32
  (tmp_path / "b.gguf").write_bytes(gguf([("k", (256,), 12, b"\0" * 144)]))
  with pytest.raises(StateError, match="'k' has the type 12, which is not read"):
    gguf_load(tmp_path / "b.gguf")


def test_npz(tmp_path):
  npz_save({"a": Tensor([[1, 2]]), "b.c": Tensor([1.5])}, tmp_path / "a.npz")
  assert np.load(tmp_path / "a.npz")["b.c"].tolist() == [1.5]
  assert {n: t.tolist() for n, t in npz_load(tmp_path / "a.npz").items()} == {"a": [[1, 2]], "b.c": [1.5]}
  np.savez(tmp_path / "b.npz", a=np.array([{}], object))
  with pytest.raises(StateError, match="is no archive of arrays"):
    npz_load(tmp_path / "b.npz")


# ---------------------------------------------------------------- broken files


@pytest.mark.parametrize("kind", ["torch", "gguf", "npz"])
def test_cut_and_flipped(tmp_path, kind, seed):
  """Cut anywhere or with bits flipped: it is read, or it is a StateError; nothing else, and nothing is run."""
  path, r = tmp_path / "a", random.Random(seed)
  if kind == "torch":
    torch.save({"a": torch.arange(6.0), "b": [torch.ones(2, 3).T, 1]}, path)
  elif kind == "gguf":
    path.write_bytes(sample()[0])
  else:
    np.savez(tmp_path / "a.npz", a=np.arange(6.0))
    path = tmp_path / "a.npz"
  load, data = {"torch": torch_load, "gguf": gguf_load, "npz": npz_load}[kind], path.read_bytes()
  failed = 0
  for n in range(400):
    broken = bytearray(data)
    if n % 2:
      for _ in range(r.choice([1, 1, 3])):
        broken[r.randrange(len(broken))] ^= 1 << r.randrange(8)
    else:
      del broken[r.randrange(len(broken)) :]
    path.write_bytes(broken)
    try:
      load(path)
    except StateError:
      failed += 1
  assert failed >= 200  # all that were cut


def test_complex_tensors(tmp_path):
  """Also views that PyTorch has not carried out: conjugates, and their imaginary parts."""
  t = torch.complex(torch.arange(6.0).reshape(2, 3), torch.ones(2, 3))
  for x in (t, t.to(torch.complex128).T, t.conj(), t.conj().imag, t.imag):
    torch.save({"x": x}, tmp_path / "x.pt")
    found = torch_load(tmp_path / "x.pt")["x"].numpy()
    want = x.resolve_conj().resolve_neg().numpy()
    assert found.dtype == want.dtype
    np.testing.assert_array_equal(found, want)
