"""Files from a stranger: whatever stands in them, tensors or a StateError, and no more memory than the file is worth."""

import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from fuzz_files import FEW, of_torch, zipped
from fuzz_files import listed as listing

from mini import Tensor
from mini.nn.state import StateError, npz_load, npz_save, safe_load, torch_load


@pytest.mark.parametrize("seeds", [40, pytest.param(4000, marks=pytest.mark.full)])
def test_every_format_broken_and_hostile(seeds, seed):
  """In a process of its own, whose memory is limited."""
  script = str(Path(__file__).parent / "fuzz_files.py")
  done = subprocess.run(
    [sys.executable, script, str(seeds), str(seed)], capture_output=True, text=True, check=False
  )
  assert done.returncode == 0 and " 0 failed" in done.stdout, done.stdout + done.stderr


def test_views_take_the_memory_that_they_say(tmp_path):
  """Tensors of one storage with the same elements are one copy, and an expanded one is none."""
  raw = {"data/0": np.arange(FEW, dtype=np.float32).tobytes()}
  parts = [of_torch((8, FEW), (0, 1)), *[of_torch((64, 64), (1, 64))] * 100]
  (tmp_path / "a.pt").write_bytes(zipped({"data.pkl": listing(*parts), **raw}))
  wide, *same = torch_load(tmp_path / "a.pt")
  x = np.arange(FEW, dtype=np.float32)
  assert wide.shape == (8, FEW) and np.array_equal(wide.numpy(), np.tile(x, (8, 1)))
  assert len({t.uop.arg[0] for t in same}) == 1
  same[0] += 1  # tensors are values
  assert np.array_equal(same[1].numpy(), x.reshape(64, 64).T)
  assert np.array_equal(same[0].numpy(), x.reshape(64, 64).T + 1)


def test_archives_of_numpy(tmp_path):
  """Packed as well as they are: zeros, Fortran's order, no axes, no elements."""
  arrays = {"zeros": np.zeros(1 << 20), "f": np.arange(6, dtype=np.int16).reshape(2, 3).T, "n": np.array(2.5)}
  arrays |= {"none": np.zeros((3, 0)), "bool": np.array([True, False]), "c": np.array([1 + 2j], np.complex64)}
  np.savez_compressed(tmp_path / "a.npz", **arrays)
  found = npz_load(tmp_path / "a.npz")
  for name, x in arrays.items():
    assert found[name].dtype.name == x.dtype.name and np.array_equal(found[name].numpy(), x)


def test_a_failed_npz_save_leaves_the_old_file(tmp_path, monkeypatch):
  npz_save({"a": Tensor([1.0])}, tmp_path / "a.npz")

  def full(f, **_):
    f.write(b"PK")
    raise OSError(28, "No space left on device")

  monkeypatch.setattr(np, "savez", full)
  with pytest.raises(OSError, match="No space"):
    npz_save({"a": Tensor([2.0])}, tmp_path / "a.npz")
  monkeypatch.undo()
  assert npz_load(tmp_path / "a.npz")["a"].tolist() == [1.0] and len([*tmp_path.iterdir()]) == 1


def pickled(path, body, storage=b"\0" * 16):
  with zipfile.ZipFile(path, "w") as z:
    z.writestr("a/data.pkl", b"\x80\x02" + body)
    z.writestr("a/data/0", storage)
  return path


LAUGHS = b"(t" + b"".join(b"q%ch%c\x86" % (n, n) for n in range(60))  # t = (t, t), sixty times
TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x04tQK\0%b(K\x01t\x89ccollections\nOrderedDict\n)RtR"


@pytest.mark.parametrize(
  "body, why",
  [
    (b"}" + LAUGHS + b"K\x01s.", "a key is a tuple"),
    (b"}(" + LAUGHS + b"K\x01u.", "a key is a tuple"),
    (b"ccollections\nOrderedDict\n((" + LAUGHS + b"K\x01\x86tt" + b"R.", "a key is a tuple"),
    (b"cbuiltins\nset\n((" + LAUGHS + b"tt" + b"R.", "a key is a tuple"),
    (b"\x8f(" + LAUGHS + b"\x90.", "sets or dicts in a form"),
    (b"(" + LAUGHS + b"K\x01K\x01K\x01K\x01tQ.", "which is no storage"),
    (b"(X\x07\0\0\0storage" + LAUGHS + b"X\x01\0\0\x000K\x01K\x01tQ.", "which is no storage"),
    (TENSOR % b"(K\x04t" + b"}X\x04\0\0\0_uopK\x05sb.", "sets attributes of a Tensor"),
    (TENSOR % b"(K\x04t" + b"K\0K\x07s.", "sets items of a Tensor"),
    (TENSOR % (b"(" + b"\x8a\x09" + b"\xff" * 8 + b"\0" + b"t") + b".", "a tensor has the shape"),
    (TENSOR % (b"(" + b"K\x01" * 100 + b"t") + b".", "is not made of a storage, a shape and strides"),
    (b"]" * 1_000_000 + b".", "containers"),
  ],
)  # fmt: skip
def test_a_pickle_of_few_bytes_takes_little_time_and_memory(body, why, tmp_path):
  begun = time.perf_counter()
  with pytest.raises(StateError, match=why):
    torch_load(pickled(tmp_path / "a.pt", body))
  assert time.perf_counter() - begun < 5
  assert torch_load(pickled(tmp_path / "b.pt", TENSOR % b"(K\x04t" + b".")).tolist() == [0.0] * 4


def test_a_header_of_lists_takes_little_memory(tmp_path):
  header = b'{"a":[' + b"[]," * 1_000_000 + b"[]]}"
  (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
  with pytest.raises(StateError, match="more lists in it"):
    safe_load(tmp_path / "a.safetensors")
