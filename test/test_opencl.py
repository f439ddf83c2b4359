"""The OpenCL shim against what its docstrings say, on whatever device there is. The kernels here are hand-written."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from runtime import icd, opencl
from runtime.base import Call, DeviceError, Info

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = """
#define AT(T, x) ((__global T *)((__global char *)x + x##_at))
#define EACH(i, n) for (long i = get_global_id(0); i < n; i += get_global_size(0))

__kernel void add(__global float *c, long c_at, __global const float *a, long a_at, __global const float *b, long b_at) {
  EACH(i, 1) for (int n = 0; n < 96; n++) AT(float, c)[n] = AT(float, a)[n] + AT(float, b)[n];
}
__kernel void count(__global int *x, long x_at) { EACH(i, 100000) if (i < AT(int, x)[0]) AT(int, x)[i + 1]++; }
__kernel void bump(__global int *x, long x_at) { EACH(i, 1) AT(int, x)[0] += 1; }
__kernel void fail(__global const int *x, long x_at, __global long *err) { if (AT(int, x)[0]) *err = AT(int, x)[0]; }
__kernel void turn(__global uint *c, long c_at, __global const uint *a, long a_at, __global const uint *b, long b_at) {
  uint x = AT(uint, a)[0] * 3 + AT(uint, b)[0] * 5 + 1;
  int rounds = AT(uint, a)[0] % 7 * 3000;
  for (int n = 0; n < rounds; n++) x = x * 1664525 + 1013904223;   /* takes its time */
  AT(uint, c)[0] = x;
}
__kernel void slow(__global uint *c, long c_at) {
  uint x = AT(uint, c)[0];
  for (long n = 0; n < 20000000; n++) x = x * 1664525 + 1013904223;
  AT(uint, c)[0] = x | 1;
}
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void sums(__global int *x, long x_at) {
  __local int part[64];
  int t = get_local_id(0);
  for (long i = get_group_id(0); i < 5; i += get_num_groups(0)) {
    part[t] = AT(int, x)[64 * i + t];
    for (int n = 32; n; n /= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (t < n) part[t] += part[t + n];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    AT(int, x)[64 * i + t] = part[0];
  }
}
"""


def opened(**settings):
  """The first device, or the reason to skip."""
  try:
    return opencl.open(**settings)
  except DeviceError as e:
    pytest.skip(str(e))


@pytest.fixture(scope="module")
def device():
  return opened(queues=3)


@pytest.fixture(scope="module")
def lib(device):
  return device.compile(SOURCE)


def filled(device, array):
  block = device.alloc(array.nbytes)
  device.upload(block, array)
  return block


def read(device, block, dtype=np.int32):
  return device.download(block, block.nbytes).view(dtype)


def call(lib, name, *args, extent=1, **more):
  return Call(lib[name], args, extent, 1.0, name=name, **more)


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
  return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=120,
                        env={**os.environ, "PYTHONPATH": ROOT, **environment})  # fmt: skip


# ---------------------------------------------------------------- finding a device


def test_without_pyopencl_the_error_says_what_to_install(monkeypatch):
  monkeypatch.setitem(sys.modules, "pyopencl", None)
  with pytest.raises(DeviceError, match="pip install pyopencl") as e:
    opencl.open()
  assert "\n" not in str(e.value)


def fake(devices=(), platforms=None):
  """A pyopencl that has these devices, given as (name, type)."""
  types = SimpleNamespace(CPU=2, GPU=4, ACCELERATOR=8, CUSTOM=16)
  made = [SimpleNamespace(name=name, type=getattr(types, kind)) for name, kind in devices]

  def get_platforms():
    if not devices:
      raise RuntimeError("PLATFORM_NOT_FOUND_KHR")
    broken = SimpleNamespace(get_devices=lambda: 1 // 0)
    return [broken, *(SimpleNamespace(get_devices=lambda d=d: [d]) for d in made)]

  return SimpleNamespace(
    device_type=types, get_platforms=get_platforms, Error=(RuntimeError, ArithmeticError)
  )


def test_without_a_driver_the_error_says_what_to_install(monkeypatch):
  monkeypatch.setitem(sys.modules, "pyopencl", fake())
  with pytest.raises(
    DeviceError, match="no device: install the driver of a GPU, or .*pip install .* or apt"
  ) as e:
    opencl.open()
  assert "\n" not in str(e.value)


def test_gpus_come_first_and_a_broken_platform_hides_no_other(monkeypatch):
  names = [("a", "CPU"), ("b", "CUSTOM"), ("c", "GPU"), ("d", "ACCELERATOR"), ("e", "GPU")]
  monkeypatch.setitem(sys.modules, "pyopencl", fake(names))
  assert [d.name for d in icd.devices(fake(names))] == ["c", "e", "d", "a", "b"]
  with pytest.raises(DeviceError, match="no device 5; there are 0: c, 1: e, 2: d, 3: a, 4: b"):
    opencl.open(5)


def test_the_loader_is_told_of_a_wheel_where_there_is_no_other_driver(monkeypatch, tmp_path):
  wheel = tmp_path / "lib" / "libintelocl.so"
  wheel.parent.mkdir()
  monkeypatch.setattr(icd.sysconfig, "get_path", lambda name: str(tmp_path))
  monkeypatch.setattr(icd.glob, "glob", lambda pattern: [])
  monkeypatch.delenv("OCL_ICD_VENDORS", raising=False)

  def told():
    with icd.wheel_driver():
      return os.environ.get("OCL_ICD_VENDORS")

  assert told() is None
  wheel.touch()
  assert told() == str(wheel) and "OCL_ICD_VENDORS" not in os.environ
  monkeypatch.setattr(icd.glob, "glob", lambda pattern: ["/etc/OpenCL/vendors/nvidia.icd"])
  assert told() is None
  monkeypatch.setenv("OCL_ICD_VENDORS", "/mine")
  assert told() == "/mine"


def test_info_describes_the_device(device):
  info = device.info
  assert info.name == "CL" and info.queues == 3 and info.kind in ("cpu", "gpu")
  assert info.lanes in (4, 8, 16) and info.units >= 1 and info.group >= 64
  assert info.shared_bytes >= 16 << 10 and info.memory_bytes > 64 << 20
  assert {"float32", "float16", "bfloat16", "int64", "bool"} <= info.dtypes


# ---------------------------------------------------------------- memory


def test_memory_is_copied_in_and_out_from_any_offset(device):
  for nbytes in (0, 1, 63, 1000, 5 << 20):
    block = device.alloc(nbytes + 3)
    data = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)
    device.upload(block, data.tobytes())
    assert (device.download(block, nbytes) == data).all()
    device.upload(block, data[::-1], 3)
    assert (device.download(block, nbytes, 3) == data[::-1]).all()
    assert (device.download(block, min(nbytes, 3)) == data[:3]).all()


def test_data_may_be_changed_when_upload_returns(device, lib):
  block = filled(device, np.zeros(1, np.uint32))
  device.sequence([call(lib, "slow", (0, 0))]).run([block])
  data = np.arange(1000, dtype=np.int32)
  blocks = [device.alloc(data.nbytes) for _ in range(20)]
  for n, b in enumerate(blocks):
    data[:] = n
    device.upload(b, data)
  data[:] = -1
  assert all((read(device, b) == n).all() for n, b in enumerate(blocks))
  device.wait()
  assert not device.pending


def test_copies_keep_the_order_of_launches(device, lib):
  a, b = filled(device, np.zeros(8, np.int32)), device.alloc(32)
  bump = device.sequence([call(lib, "bump", (0, 4))])
  for n in range(1, 5):
    bump.run([a])
    device.copy(b, a, 32)
    bump.run([b])
    assert read(device, b).tolist() == [0, n + 1, 0, 0, 0, 0, 0, 0]
  device.copy(b, a, 0)


def test_a_steady_loop_takes_nothing_from_the_driver(device):
  def step():
    blocks = [device.alloc(n) for n in (100, 5000, 1 << 20, 3 << 20, 1 << 20)]
    device.free(blocks[2])
    return device.alloc(1 << 20).nbytes

  step()
  gc.collect()
  before = dict(device.counters)
  for _ in range(100):
    step()
  assert device.counters["bytes_allocated"] == before["bytes_allocated"]
  assert device.counters["bytes_held"] == before["bytes_held"]


def test_memory_that_cannot_be_had_is_an_error_with_its_size(device, lib, monkeypatch):
  with pytest.raises(MemoryError, match="cannot allocate 1,125,899,906,842,624 bytes"):
    device.alloc(1 << 50)
  monkeypatch.setattr(device.heap, "limit", 1 << 60)
  with pytest.raises(
    MemoryError, match=r"(?s)cannot allocate 1,125,899,906,842,624 bytes.*clCreateBuffer says \w+_"
  ):
    device.alloc(1 << 50)
  block = filled(device, np.zeros(1, np.int32))
  device.sequence([call(lib, "bump", (0, 0))]).run([block])
  assert read(device, block)[0] == 1


def test_memory_that_looks_like_memory_that_was_destroyed_is_bound_anew(device, lib):
  bump = device.sequence([call(lib, "bump", (0, 0))])
  for n in range(20):
    block = filled(device, np.array([n], np.int32))
    bump.run([block])
    assert read(device, block)[0] == n + 1
    device.free(block)
    device.heap.trim()


# ---------------------------------------------------------------- code


def test_a_source_that_does_not_compile_is_an_error_with_the_compilers_words(device):
  with pytest.raises(DeviceError, match=r"(?s)OpenCL compiler failed.*nonsense"):
    device.compile("__kernel void f() { nonsense; }")


def test_a_kernel_that_is_not_there_is_an_error(device, lib):
  with pytest.raises(DeviceError, match="INVALID_KERNEL_NAME"):
    lib["nonesuch"]


class Folder:
  """A cache."""

  def __init__(self, path):
    self.path, self.names = path, {}

  def get(self, key):
    return self.names.get(key)

  def put(self, key, data):
    at = self.path / str(len(self.names))
    at.write_bytes(data)
    self.names[key] = str(at)
    return str(at)


def test_compiled_code_is_kept_and_what_the_driver_refuses_is_compiled_again(device, tmp_path):
  cache = Folder(tmp_path)
  source = "__kernel void f(__global int *x, long x_at) { x[0] = 5; }"

  def result():
    other = opened(cache=cache)
    block = filled(other, np.zeros(1, np.int32))
    other.sequence([call(other.compile(source), "f", (0, 0))]).run([block])
    assert other.compile(source) is other.compile_all([source, source])[1]
    return read(other, block)[0], other.counters["compiles"], other.counters["disk_hits"]

  assert result() == (5, 1, 0)
  assert result() == (5, 0, 1)
  for path in tmp_path.iterdir():
    path.write_bytes(b"not a program")
  assert result() == (5, 1, 0)
  for path in tmp_path.iterdir():
    path.unlink()
  assert result() == (5, 1, 0)


# ---------------------------------------------------------------- sequences


def test_a_sequence_binds_memory_anew_on_each_run(device, lib, rng):
  s = device.sequence([call(lib, "add", (2, 0), (0, 0), (1, 0)), call(lib, "add", (2, 4), (2, 4), (0, 0))])
  blocks = [device.alloc(400) for _ in range(6)]
  for trial in range(20):
    a, b, c = (blocks[i] for i in rng.permutation(6)[:3])
    x, y = rng.random(100, np.float32), rng.random(100, np.float32)
    device.upload(a, x)
    device.upload(b, y)
    assert s.run([a, b, c]) == 0
    expected = x + y
    expected[1:97] = np.append(expected[1:96], read(device, c, np.float32)[96] - x[95]) + x[:96]
    assert np.allclose(read(device, c, np.float32)[:96], expected[:96]), trial


def test_an_empty_sequence_is_fine_and_more_handles_than_slots_too(device, lib):
  block = filled(device, np.zeros(1, np.int32))
  done = []
  assert device.sequence([]).run([block], done) == 0 and done == [0]
  assert device.sequence([]).error() == 0
  device.sequence([call(lib, "bump", (0, 0))]).run([block, block], done)
  assert done == [0, 0] and read(device, block)[0] == 1


@pytest.mark.parametrize("extent", [0, 1, 2, 3, 97, 1000, 100000])
def test_every_index_runs_once_in_groups_of_any_size(device, lib, extent):
  block = filled(device, np.zeros(100001, np.int32))
  device.upload(block, np.array([extent], np.int32))
  s = device.sequence([call(lib, "count", (0, 0), extent=extent)] * 20)
  s.run([block])
  s.run([block])
  counts = read(device, block)[1:]
  assert (counts[:extent] == 40).all() and not counts[extent:].any()


def test_groups_of_a_cpu_are_parts_of_the_range_for_all_of_its_cores():
  info = Info("CL", "", 4, 16, 8, 0, 0, 0, 0, frozenset(), kind="cpu", group=4096, units=8)
  grids = [opencl.grid(Call(None, (), n, 1.0), info) for n in (0, 1, 20, 100, 1 << 20)]
  assert grids == [(1, 1), (1, 1), (20, 1), (32, 1), (32, 1)]
  assert opencl.grid(Call(None, (), 5, 1.0, 64), info) == (5, 64)
  assert opencl.grid(Call(None, (), 1000, 1.0), info._replace(kind="gpu")) == (4, 256)


def test_threads_of_a_group_share_memory(device, lib):
  data = np.arange(320, dtype=np.int32)
  block = filled(device, data)
  device.sequence([call(lib, "sums", (0, 0), extent=5, group=64)]).run([block])
  assert (read(device, block).reshape(5, 64) == data.reshape(5, 64).sum(1)[:, None]).all()


def test_a_group_that_is_too_large_is_an_error_with_the_kernels_name(device, lib):
  with pytest.raises(DeviceError, match=r"bump: the kernel needs \d+ threads in a group"):
    device.sequence([call(lib, "bump", (0, 0), group=1 << 20)])


def test_the_error_word_waits_until_it_is_asked_for(device, lib):
  s = device.sequence([call(lib, "bump", (0, 0)), call(lib, "fail", (0, 0), (-1, 0))])
  good, bad = filled(device, np.array([-1], np.int32)), filled(device, np.array([6], np.int32))
  assert s.run([bad]) == 0 and s.error() == 7
  assert s.error() == 0
  assert s.run([good]) == 0 and s.error() == 0
  s.run([bad])
  device.upload(good, np.array([-1], np.int32))
  s.run([good])
  assert s.error() == 8
  assert device.sequence([call(lib, "bump", (0, 0))]).error() == 0


def test_queues_keep_what_calls_wait_for(device, lib, rng):
  cells = 12
  for _ in range(10):
    calls, queues, steps = [], [], []
    last_write, reads = {}, {c: [] for c in range(cells)}
    for n in range(60):
      a, b, c = (int(x) for x in rng.integers(0, cells, 3))
      before = [last_write.get(x) for x in (a, b, c)] + reads[c]
      q = int(rng.integers(0, 3))
      waits = tuple(sorted({x for x in before if x is not None and queues[x] != q}))
      calls.append(call(lib, "turn", (0, 4 * c), (0, 4 * a), (0, 4 * b), queue=q, waits=waits))
      queues.append(q)
      steps.append((a, b, c))
      reads[c], last_write[c] = [], n
      reads[a].append(n)
      reads[b].append(n)
    s = device.sequence(calls)
    values = rng.integers(0, 1 << 32, cells, np.uint32)
    block = filled(device, values)
    for _ in range(3):
      s.run([block])  # the next run comes after this one
    assert (read(device, block, np.uint32) == mixed(steps * 3, values)).all()


def mixed(steps, values):
  """What the kernel turn leaves."""
  jumps = [(1, 0)]  # x * f + g is what x becomes in so many rounds
  for _ in range(6 * 3000):
    f, g = jumps[-1]
    jumps.append((f * 1664525 % (1 << 32), (g * 1664525 + 1013904223) % (1 << 32)))
  v = [int(x) for x in values]
  for a, b, c in steps:
    f, g = jumps[v[a] % 7 * 3000]
    v[c] = ((v[a] * 3 + v[b] * 5 + 1) * f + g) % (1 << 32)
  return np.array(v, np.uint32)


def test_a_launch_that_fails_names_its_kernel_and_the_device_goes_on(device, lib):
  block = filled(device, np.zeros(1, np.int32))
  incomplete = device.sequence([call(lib, "bump", (0, 0)), call(lib, "add", (0, 0))])
  with pytest.raises(DeviceError, match="add: clEnqueueNDRangeKernel says INVALID_KERNEL_ARGS"):
    incomplete.run([block])
  device.sequence([call(lib, "bump", (0, 0))]).run([block])
  assert read(device, block)[0] == 2


def test_freed_memory_cannot_be_used(device, lib):
  block = device.alloc(64)
  device.free(block)
  with pytest.raises(AttributeError):
    device.sequence([call(lib, "bump", (0, 0))]).run([block])


def test_profile_has_a_time_for_each_call(device, lib):
  block = filled(device, np.zeros(8, np.int32))
  s = device.sequence(
    [call(lib, "bump", (0, 0)), call(lib, "slow", (0, 4)), call(lib, "fail", (0, 0), (-1, 0))]
  )
  error, (tiny, slow, _) = s.timed([block])
  assert 0 <= tiny < slow and error == 1 == read(device, block)[0]
  assert len(s.profile([block])) == 3 and s.error() == 0


# ---------------------------------------------------------------- processes, threads, signals


def test_two_threads_run_at_once(device, lib):
  shared = device.sequence([call(lib, "bump", (0, 0), queue=n % 3, waits=(n - 1,)[:n]) for n in range(30)])
  total = filled(device, np.zeros(1, np.int32))
  failures = []

  def work():
    own = device.sequence([call(lib, "bump", (0, 0))] * 20)
    for n in range(1, 21):
      block = filled(device, np.zeros(1, np.int32))
      own.run([block])
      shared.run([total])
      if read(device, block)[0] != 20:
        failures.append(n)

  threads = [threading.Thread(target=work) for _ in range(3)]
  for t in threads:
    t.start()
  for t in threads:
    t.join()
  assert not failures and read(device, total)[0] == 3 * 20 * 30


PROGRAM = f"""
import os, signal, sys, threading
import numpy as np
from runtime import opencl
from runtime.base import Call, DeviceError
signal.signal(signal.SIGINT, signal.default_int_handler)
device = opencl.open()
lib = device.compile({SOURCE!r})
block = device.alloc(8)
device.upload(block, np.zeros(2, np.int32))
bump = device.sequence([Call(lib["bump"], [(0, 0)], 1, 1.0)] * 50)
slow = device.sequence([Call(lib["slow"], [(0, 4)], 1, 1.0)] * 4)
bump.run([block])
"""


def test_a_forked_child_is_told_that_the_device_is_its_parents(device):
  code = (
    PROGRAM
    + """
slow.run([block])
pid = os.fork()
if not pid:
  for use in (lambda: device.alloc(8), lambda: bump.run([block]), lambda: device.download(block, 8),
              lambda: device.upload(block, b"12345678"), device.wait, lambda: device.compile("x")):
    try:
      use()
      os._exit(1)
    except DeviceError as e:
      if "forked" not in str(e):
        os._exit(2)
  del bump, slow, block
  sys.exit(0)  # with all that ends a process
print(os.waitpid(pid, 0)[1])
bump.run([block])
print(device.download(block, 4).view(np.int32)[0])
"""
  )
  done = run_python(code)
  assert done.stdout.split() == ["0", "100"], done.stderr
  assert done.returncode == 0


def test_the_process_ends_while_kernels_run(device):
  done = run_python(PROGRAM + "slow.run([block])")
  assert done.returncode == 0 and "Error" not in done.stderr, done.stderr


def test_control_c_comes_before_a_run_or_after_it(device):
  code = (
    PROGRAM
    + """
done = []
for delay in (0.05, 0.051, 0.0523, 0.0537):
  threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
  try:
    while True:
      bump.run([block], done)
      if len(done) % 100 == 0:
        device.wait()
  except KeyboardInterrupt:
    pass
print(device.download(block, 4).view(np.int32)[0] - 50 * len(done))
"""
  )
  done = run_python(code)
  assert done.stdout.strip() == "50", done.stderr


def test_functions_are_those_of_the_library(device):
  assert all(isinstance(f, ctypes._CFuncPtr) and f.argtypes for f in device.cl.table.values())


def test_which_codes_say_that_memory_is_short(device):
  for code, error in (
    (-4, MemoryError),
    (-6, MemoryError),
    (-61, MemoryError),
    (-5, DeviceError),
    (-62, DeviceError),
  ):
    with pytest.raises(error, match=rf"clFinish says \w.*\({code}\)"):
      device.cl.check(code, "clFinish")
  device.cl.check(0, "clFinish")
