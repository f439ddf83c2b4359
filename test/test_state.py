"""safetensors files: both ways, beside the reference implementation, and broken ones."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys

import numpy as np
import pytest

from mini import Tensor, nn
from mini.nn.state import SPELLED, StateError, safe_load, safe_load_metadata, safe_save
from mini.types import dtypes
from runtime import files


def sample(dtype):
  values = np.array([[0, 1, 1], [1, 0, 1]]) if dtype is dtypes.bool else np.array([[0, 1, 2], [100, 7, 5]])
  return Tensor(values, dtype=dtype)


def test_round_trip(tmp_path):
  tensors = {d.name: sample(d) for d in dtypes.all}
  tensors |= {
    "scalar": Tensor(3.5),
    "empty": Tensor(np.zeros((2, 0), np.float32)),
    "ünï/code 🙂": Tensor([1]),
  }
  safe_save(tensors, tmp_path / "a.safetensors", {"step": "7", "ключ": "значение"})
  found = safe_load(tmp_path / "a.safetensors")
  assert set(found) == set(tensors)
  for name, t in tensors.items():
    assert found[name].dtype is t.dtype and found[name].shape == t.shape
    np.testing.assert_array_equal(found[name].numpy(), t.numpy())
  assert safe_load_metadata(tmp_path / "a.safetensors") == {"step": "7", "ключ": "значение"}
  assert os.listdir(tmp_path) == ["a.safetensors"]


def test_special_values(tmp_path):
  x = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-40, 3.14159], np.float32)
  for d in (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64):
    t = Tensor(x, dtype=d)
    safe_save({"x": t}, tmp_path / "x")
    found = safe_load(tmp_path / "x")["x"].numpy()
    np.testing.assert_array_equal(found, t.numpy())
    assert np.signbit(found[3])


def test_lazy_and_shared_memory(tmp_path):
  model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
  expected = {n: t.numpy() for n, t in model.state_dict().items()}
  nn.optim.SGD(model.parameters())  # now they are parts of one buffer
  safe_save({**model.state_dict(), "lazy": Tensor([1.0]) + 1, "row": model[0].weight[1]}, tmp_path / "m")
  found = safe_load(tmp_path / "m")
  assert found.pop("lazy").tolist() == [2] and found.pop("row").tolist() == expected["0.weight"][1].tolist()
  for name, x in expected.items():
    np.testing.assert_array_equal(found[name].numpy(), x)
  other = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
  other.load_state_dict(found)
  np.testing.assert_array_equal(other[1].bias.numpy(), expected["1.bias"])


@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda d: d.name)
def test_reference_reads_ours(tmp_path, dtype):
  reference = pytest.importorskip("safetensors.numpy")
  safe_save({"x": sample(dtype), "y": Tensor([True])}, tmp_path / "x", {"a": "b"})
  if dtype is not dtypes.bfloat16:  # NumPy has none
    np.testing.assert_array_equal(reference.load_file(tmp_path / "x")["x"], sample(dtype).numpy())


@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda d: d.name)
def test_ours_reads_reference(tmp_path, dtype):
  reference, torch = pytest.importorskip("safetensors.torch"), pytest.importorskip("torch")
  t = torch.tensor(sample(dtype).numpy()).to(getattr(torch, dtype.name))
  reference.save_file({"odd": torch.tensor([True]), "x": t}, tmp_path / "x", {"a": "b"})
  found = safe_load(tmp_path / "x")["x"]
  assert found.dtype is dtype
  np.testing.assert_array_equal(found.numpy(), sample(dtype).numpy())
  assert safe_load_metadata(tmp_path / "x") == {"a": "b"}


# ---------------------------------------------------------------- writing


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
  path = tmp_path / "a"
  safe_save({"x": Tensor([1.0])}, path)

  def no_rename(*_):
    raise OSError("disk on fire")

  monkeypatch.setattr(os, "replace", no_rename)
  with pytest.raises(OSError, match="on fire"):
    safe_save({"x": Tensor([2.0])}, path)
  assert safe_load(path)["x"].tolist() == [1.0] and os.listdir(tmp_path) == ["a"]


def test_metadata_are_texts(tmp_path):
  with pytest.raises(StateError, match="metadata are texts"):
    safe_save({"x": Tensor([1.0])}, tmp_path / "a", {"step": 3})
  assert not os.listdir(tmp_path)


# ---------------------------------------------------------------- files that are not what they should be


def write(path, header, data=b"", size=None):
  text = header if isinstance(header, bytes) else json.dumps(header).encode()
  path.write_bytes((len(text) if size is None else size).to_bytes(8, "little") + text + data)
  return path


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
  return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


BAD = {
  "no header": (b"", b"", 1 << 62, "header would take"),
  "no JSON": (b"{nonsense", b"", None, "no JSON"),
  "no UTF-8": (b'{"\xff": 1}', b"", None, "no JSON"),
  "deep": (b"[" * 100_000, b"", None, "no JSON"),
  "a list": ([], b"", None, "no JSON object"),
  "twice": (b'{"a": 1, "a": 2}', b"", None, "appears twice"),
  "entry": ({"a": 3}, b"", None, "other entries"),
  "type": ({"a": entry("F4")}, b"\0" * 8, None, "'F4'"),
  "type of type": ({"a": entry(["F32"])}, b"\0" * 8, None, "F32"),
  "shape": ({"a": entry(shape=(-2,))}, b"\0" * 8, None, "shape"),
  "bool shape": ({"a": entry(shape=(True, 2))}, b"\0" * 8, None, "shape"),
  "float shape": ({"a": entry(shape=(2.0,))}, b"\0" * 8, None, "shape"),
  "many axes": ({"a": entry(shape=(1,) * 40 + (2,))}, b"\0" * 8, None, "shape"),
  "huge": ({"a": entry(shape=(1 << 62, 1 << 62))}, b"\0" * 8, None, "does not take 8 bytes"),
  "offsets": ({"a": entry(offsets=(0, 8, 9))}, b"\0" * 8, None, "offsets"),
  "backwards": ({"a": entry(offsets=(8, 0))}, b"\0" * 8, None, "does not take -8"),
  "negative": ({"a": entry(offsets=(-8, 0))}, b"\0" * 8, None, "offsets"),
  "cut": ({"a": entry()}, b"\0" * 7, None, "was cut"),
  "more": ({"a": entry()}, b"\0" * 9, None, "appended"),
  "overlap": ({"a": entry(), "b": entry(offsets=(4, 12))}, b"\0" * 12, None, "'b' does not begin"),
  "hole": ({"a": entry(offsets=(4, 12))}, b"\0" * 12, None, "'a' does not begin"),
  "huge and empty": ({"a": entry(shape=(1 << 62, 0), offsets=(0, 0))}, b"", None, "beyond any memory"),
  "a flipped digest": ({"__metadata__": {"mini.crc33": "0"}}, b"", None, "has another name"),
  "metadata": ({"__metadata__": {"a": 1}}, b"", None, "__metadata__"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_file(tmp_path, case):
  header, body, size, reason = BAD[case]
  path = write(tmp_path / "bad.safetensors", header, body, size)
  for read in (safe_load, safe_load_metadata):
    with pytest.raises(StateError, match="bad.safetensors is no safetensors file") as e:
      read(path)
    assert reason in str(e.value)


@pytest.mark.parametrize("n", [0, 1, 7])
def test_tiny_file(tmp_path, n):
  (tmp_path / "x").write_bytes(b"\0" * n)
  with pytest.raises(StateError, match=f"it has {n} bytes"):
    safe_load(tmp_path / "x")


def test_every_cut_and_many_flips(tmp_path):
  """Whatever happens to a file: tensors, or a StateError."""
  path = tmp_path / "x"
  safe_save({"a": Tensor([1.0, 2.0]), "b": Tensor([[1, 2], [3, 4]], dtype=dtypes.int8)}, path, {"k": "v"})
  good = path.read_bytes()
  for n in range(len(good)):
    path.write_bytes(good[:n])
    with pytest.raises(StateError):
      safe_load(path)
  for n in range(8 * len(good)):  # every bit
    bad = bytearray(good)
    bad[n // 8] ^= 1 << n % 8
    path.write_bytes(bad)
    with pytest.raises(StateError, match="no safetensors file|are not those that were written"):
      safe_load(path)


def test_a_digest_of_another_writer_is_none(tmp_path):
  """What stands under its name is replaced; a file without one is read."""
  safe_save({"x": Tensor([1.0])}, tmp_path / "a", {"mini.crc32": "12345678", "b": "00000000"})
  assert safe_load(tmp_path / "a")["x"].item() == 1 and safe_load_metadata(tmp_path / "a") == {
    "b": "00000000"
  }
  assert safe_load(write(tmp_path / "b", {"a": entry()}, b"\0" * 8))["a"].tolist() == [0, 0]
  wrong = {"__metadata__": {"mini.crc32": "ü"}, "a": entry()}
  with pytest.raises(StateError, match="are not those that were written"):
    safe_load(write(tmp_path / "c", wrong, b"\0" * 8))


LEFT = """
import os, signal, sys
from mini import Tensor
from mini.nn.state import safe_save

def killed(*_):
  os.kill(os.getpid(), signal.SIGKILL)

os.fsync = killed
safe_save({"x": Tensor([2.0])}, sys.argv[1])
"""


def test_what_a_killed_save_left_is_removed(tmp_path):
  """By the next save on this host, whatever its name; what another host or a living process has there stays."""
  path = tmp_path / "a"
  safe_save({"x": Tensor([1.0])}, path)
  done = subprocess.run([sys.executable, "-c", LEFT, str(path)], check=False)
  assert done.returncode == -signal.SIGKILL and len(os.listdir(tmp_path)) == 2
  assert safe_load(path)["x"].item() == 1
  others = {f".b.mini-elsewhere-{os.getpid()}-0.part", f".b.{files.mark()}0.part", "mini-notes.txt"}
  for name in others:
    (tmp_path / name).touch()
  safe_save({"x": Tensor([3.0])}, tmp_path / "b")
  assert {*os.listdir(tmp_path)} == {"a", "b", *others}


@pytest.mark.parametrize("nbytes", [100, 5000])
def test_a_full_disk_keeps_the_old_file_and_names_it(tmp_path, nbytes):
  """At its header, and among its tensors."""
  path, wide = tmp_path / "a.safetensors", Tensor(np.zeros(10_000, np.float32))
  safe_save({"x": Tensor([1.0])}, path)
  before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, before[1][1]))
  try:
    with pytest.raises(OSError, match=r"could not be written, and is as it was: '.*a\.safetensors'") as e:
      safe_save({"x": wide}, path)
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, before[1])
    signal.signal(signal.SIGXFSZ, before[0])
  assert e.value.errno == errno.EFBIG
  assert safe_load(path)["x"].item() == 1 and os.listdir(tmp_path) == ["a.safetensors"]


def test_a_missing_file_is_a_missing_file(tmp_path):
  with pytest.raises(FileNotFoundError):
    safe_load(tmp_path / "none")


def test_every_type_has_a_spelling():
  assert set(SPELLED) == {*dtypes.all, dtypes.complex64}  # there is no complex128 in the format
