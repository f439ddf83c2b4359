"""The CUDA shim, by ctypes and by pycuda, against test/fake/libcuda.c, which emulates the kernels;
and NVRTC, where it is."""

from __future__ import annotations

import gc
import importlib.util
import logging
import os
import re
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
from fake.cuda import SOURCE, Fake, call, compiler, filled, make, peek, read, trim
from test_render import everything

from mini.render import cuda as language
from runtime import cuda, driver, nvrtc
from runtime.base import DeviceError

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc found")
has_pycuda = importlib.util.find_spec("pycuda") is not None
APIS = ["ctypes", *(["pycuda"] if has_pycuda else [])]


def find_nvrtc() -> bool:
  try:
    return bool(nvrtc.open(90))
  except DeviceError:
    return False


has_nvrtc = find_nvrtc()
needs_nvrtc = pytest.mark.skipif(not has_nvrtc, reason="no NVRTC found: pip install nvidia-cuda-nvrtc")


@pytest.fixture(scope="session")
def path(tmp_path_factory):
  return make(tmp_path_factory.mktemp("fake-cuda"))


@pytest.fixture
def fake(request, path):
  """The library, which remembers nothing of other tests. At the end nothing is left of this one."""
  found = Fake(path)
  found.reset()
  kinds = ("memory", "graph", "program", "event")
  before = [found.live(kind) for kind in kinds]
  yield found
  found.reset()
  device = request.node.funcargs.get("device")
  request.node.funcargs.clear()
  gc.collect()
  if device:
    trim(device)
    assert [found.live(kind) for kind in kinds] == before


@pytest.fixture(params=APIS)
def api(request):
  return request.param


@pytest.fixture
def device(fake, api):
  return cuda.open(library=fake.path, compiler=compiler, api=api)


@pytest.fixture
def lib(device):
  return device.compile(SOURCE)


def run_python(fake, api: str, code: str, **more: str) -> subprocess.CompletedProcess[str]:
  """Runs code in a process of its own, in which `device` and `lib` are there as here."""
  start = f"""
import os, signal, sys, threading
import numpy as np
from fake.cuda import SOURCE, Fake, call, compiler, filled, read
from runtime import cuda
from runtime.base import DeviceError
fake = Fake({fake.path!r})
device = cuda.open(library=fake.path, compiler=compiler, api={api!r})
lib = device.compile(SOURCE)
"""
  environment = {
    **os.environ, **more, "PYTHONPATH": os.path.dirname(__file__) + os.pathsep + os.environ["PYTHONPATH"]
  }  # fmt: skip
  return subprocess.run(
    [sys.executable, "-c", start + code],
    check=False,
    capture_output=True,
    text=True,
    timeout=60,
    env=environment,
  )


# ---------------------------------------------------------------- the machine


def test_info_is_what_the_driver_says(device, api):
  info = device.info
  assert (info.name, info.target, info.kind) == ("CUDA", "fake GPU 0 sm_89 (CUDA 13.0)", "gpu")
  assert (info.group, info.warp, info.units, info.shared_bytes) == (1024, 32, 4, 48 << 10)
  assert info.memory_bytes == 1 << 32 and "m16n8k16 bf16" in info.matrices and "float64" in info.dtypes
  assert type(device.driver).__name__ == {"ctypes": "Driver", "pycuda": "Pycuda"}[api]


def test_devices_have_numbers(fake, api):
  assert cuda.open(1, library=fake.path, compiler=compiler, api=api).info.target.startswith("fake GPU 1")
  with pytest.raises(DeviceError, match="^CUDA:2 cannot be had: .*there are 2 devices$"):
    cuda.open(2, library=fake.path, compiler=compiler, api=api)


def test_without_a_driver_one_line_says_what_would_help():
  with pytest.raises(DeviceError, match="^CUDA needs NVIDIA's driver: [^\n]*nonesuch[^\n]*$"):
    cuda.open(library="/nonesuch/libcuda.so.1")
  with pytest.raises(DeviceError, match="^CUDA: the driver is older than CUDA 12: [^\n]*$"):
    cuda.open(library="libc.so.6", api="ctypes")


def test_a_driver_that_refuses_is_one_line(fake, api):
  fake.fail("cuInit", 100)
  with pytest.raises(DeviceError, match="^CUDA cannot be had: cuInit failed: [^\n]*$"):
    cuda.open(library=fake.path, compiler=compiler, api=api)


@pytest.mark.skipif(not has_pycuda, reason="pycuda is not installed: to build it takes a CUDA toolkit")
def test_everything_here_runs_by_pycuda_too(device):
  assert "pycuda" in APIS


def test_pycuda_is_taken_where_it_imports(fake, monkeypatch):
  expected = "Pycuda" if has_pycuda else "Driver"
  assert type(cuda.open(library=fake.path, compiler=compiler).driver).__name__ == expected
  monkeypatch.setitem(sys.modules, "pycuda.driver", None)
  assert type(cuda.open(library=fake.path, compiler=compiler).driver).__name__ == "Driver"
  with pytest.raises(DeviceError, match="^CUDA by pycuda: [^\n]*pip install pycuda[^\n]*$"):
    cuda.open(library=fake.path, compiler=compiler, api="pycuda")


def test_without_nvrtc_one_line_says_what_to_install(fake, monkeypatch):
  monkeypatch.setattr(nvrtc, "candidates", lambda newest: ["/nonesuch/libnvrtc.so.13"])
  with pytest.raises(DeviceError, match="^CUDA needs NVRTC [^\n]*pip install nvidia-cuda-nvrtc$"):
    cuda.open(library=fake.path)
  with pytest.raises(DeviceError, match="pip install nvidia-cuda-nvrtc-cu12$"):
    nvrtc.open(90, newest=12)


# ---------------------------------------------------------------- memory


def test_memory_is_copied_in_and_out(device):
  for nbytes in (0, 1, 3, 64, 1000, 1 << 20):
    block = device.alloc(nbytes)
    data = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)
    device.upload(block, data.tobytes())
    assert (device.download(block, nbytes) == data).all()
    device.upload(block, data[::-1])
    assert (device.download(block, nbytes) == data[::-1]).all()


def test_a_part_of_a_block_may_be_written_and_read(device):
  block = filled(device, np.arange(10, dtype=np.int32))
  device.upload(block, np.array([70, 80], np.int32), 28)
  assert device.download(block, 12, 24).view(np.int32).tolist() == [6, 70, 80]


def test_what_is_uploaded_may_be_changed_at_once(device, fake):
  data = np.arange(1000, dtype=np.int32)
  for pinned in (None, data):
    fake.pin(pinned)
    block = filled(device, data)
    data += 1
    assert (read(device, block) == data - 1).all()


def test_copies_are_in_order_with_launches(device, lib):
  a, b = filled(device, np.zeros(1000, np.int32)), device.alloc(4000)
  bump = device.sequence([call(lib["count"], 0, extent=1000)])
  bump.run([a])
  device.copy(b, a, 2000)
  bump.run([a])
  assert (read(device, b)[:500] == 1).all() and (read(device, a) == 2).all()


def test_nothing_reaches_past_the_end_of_a_block(device):
  block, other = device.alloc(10), device.alloc(100)
  for wrong in (
    lambda: device.upload(block, bytes(8), 4),
    lambda: device.download(block, 11),
    lambda: device.download(block, 1, -1),
    lambda: device.copy(block, other, 100),
    lambda: device.copy(other, block, 100),
  ):
    with pytest.raises(ValueError, match="a block of 10"):
      wrong()


def test_freed_memory_cannot_be_used(device, lib):
  block = device.alloc(64)
  device.free(block)
  with pytest.raises(AttributeError):
    device.sequence([call(lib["count"], 0)]).run([block])


def test_a_steady_loop_takes_nothing_from_the_system(device, fake):
  def step():
    blocks = [device.alloc(n) for n in (100, 5000, 1 << 20, 3 << 20, 1 << 20)]
    device.free(blocks[2])
    return device.alloc(1 << 20).nbytes

  step()
  before, live = dict(device.counters), fake.live("memory")
  for _ in range(100):
    step()
  assert device.counters == before and fake.live("memory") == live


def test_memory_that_is_in_use_is_not_given_back_too_early(device, lib):
  block = filled(device, np.zeros(1000, np.int32))
  device.sequence([call(lib["count"], 0, extent=1000)] * 3).run([block])
  device.free(block)
  trim(device)  # the fake refuses to free what a kernel has yet to use


def test_idle_memory_is_given_back_before_there_is_none(device, fake):
  fake.limit(10 << 20)
  device.free(device.alloc(6 << 20))
  block = device.alloc(9 << 20)
  with pytest.raises(MemoryError, match=r"CUDA cannot allocate 2,097,152 bytes: 9,4.* in use.*out of memory"):
    device.alloc(2 << 20)
  device.free(block)
  device.alloc(2 << 20)
  fake.fail("cuMemAlloc_v2", 999)
  with pytest.raises(DeviceError, match="CUDA: cuMemAlloc"):
    device.alloc(3 << 20)


# ---------------------------------------------------------------- code


class Kept:
  """A cache of code in a folder."""

  def __init__(self, folder):
    self.folder, self.paths = folder, {}

  def get(self, key):
    return self.paths.get(key)

  def put(self, key, data):
    self.paths[key] = self.folder / str(len(self.paths))
    self.paths[key].write_bytes(data)


def test_equal_sources_are_compiled_once_and_kept(fake, api, tmp_path):
  def compile_(source):
    return compiler(source)

  compile_.key = lambda source: source
  cache, sources = Kept(tmp_path), [SOURCE, SOURCE.replace("add", "plus"), SOURCE]
  for expected in ((2, 0), (0, 2)):
    device = cuda.open(cache=cache, library=fake.path, compiler=compile_, api=api)
    libs = device.compile_all(sources)
    assert libs[0] is libs[2] and libs[0]["add"] and libs[1]["plus"]
    assert device.compile(SOURCE) is libs[0]
    assert (device.counters["compiles"], device.counters["disk_hits"]) == expected


def test_code_that_is_none_and_kernels_that_are_not_there(fake, api, lib):
  with pytest.raises(DeviceError, match="CUDA: kernel nonesuch: .*named symbol not found"):
    lib["nonesuch"]
  bad = cuda.open(library=fake.path, compiler=lambda source: b"none" * 100, api=api)
  with pytest.raises(DeviceError, match="CUDA: .*device kernel image is invalid"):
    bad.compile("x")


# ---------------------------------------------------------------- sequences


@pytest.mark.parametrize("more", [0, 1, 5])
def test_a_sequence_binds_memory_anew_on_each_run(device, lib, more, rng):
  """Directly, and as a graph, which learns what changed."""
  again = [call(lib["add"], (2, 4), (2, 4), 0, extent=1)] * more
  s = device.sequence([call(lib["add"], 2, 0, 1, extent=96), *again])
  blocks = [device.alloc(400) for _ in range(6)]
  for trial in range(20):
    a, b, c = (blocks[i] for i in rng.permutation(6)[:3])
    x, y = rng.random(100, np.float32), rng.random(100, np.float32)
    device.upload(a, x)
    device.upload(b, y)
    device.upload(c, np.zeros(100, np.float32))
    done = [7]
    assert s.run([a, b, c], done) == 0 and done == [7, 0]
    expected = np.concatenate([x + y, [0] * 4]).astype(np.float32)[:100]
    expected[96:] = 0
    for _ in range(more):
      expected[1:97] += x[:96]
    assert (read(device, c, np.float32) == expected).all(), trial


def test_a_run_returns_before_its_kernels_have_run(device, lib):
  for n in (1, 4):
    block = filled(device, np.zeros(1000, np.int32))
    device.wait()
    s = device.sequence([call(lib["count"], 0, extent=1000)] * n)
    s.run([block])
    s.run([block])
    assert not peek(block).any()
    assert s.error() == 0 and not peek(block).any()  # no kernel has a guard
    device.wait()
    assert (peek(block) == 2 * n).all()


def test_a_graph_changes_only_launches_whose_memory_changed(device, lib, monkeypatch):
  updated = []
  update = cuda.Graph.update
  monkeypatch.setattr(cuda.Graph, "update", lambda self, n: (updated.append(n), update(self, n)))
  a, b, c = (filled(device, np.zeros(1000, np.int32)) for _ in range(3))
  s = device.sequence([call(lib["count"], n, extent=1000) for n in (0, 1, 0, 1)])
  for handles in ([a, b], [a, b], [a, c], [c, a]):
    s.run(handles)
    updated.append("|")
  assert updated == ["|", "|", 1, 3, "|", 0, 1, 2, 3, "|"]
  assert [read(device, x)[0] for x in (a, b, c)] == [8, 4, 4]


def test_a_graph_goes_quietly_at_the_end_of_a_process(device, lib, monkeypatch):
  """Where the modules that it uses may be gone."""
  found = []
  monkeypatch.setattr(sys, "unraisablehook", found.append)
  block = filled(device, np.zeros(1000, np.int32))
  s = device.sequence([call(lib["count"], 0, extent=1000)] * 4)
  s.run([block])
  device.wait()
  monkeypatch.setattr(driver, "os", None)
  del s
  gc.collect()
  assert not found


def test_more_handles_than_slots_are_fine_and_an_empty_sequence_too(device, lib):
  block, done = filled(device, np.zeros(1000, np.int32)), []
  assert device.sequence([]).run([block], done) == 0 and done == [0]
  assert device.sequence([]).timed([block]) == (0, [])
  assert device.sequence([call(lib["count"], 0)]).run([block, block]) == 0


@pytest.mark.parametrize("extent", [0, 1, 2, 3, 97, 1000])
def test_there_are_as_many_threads_as_the_extent_wants(device, lib, extent):
  block = filled(device, np.zeros(1024, np.int32))
  device.sequence([call(lib["visit"], 0, extent=extent)]).run([block])
  threads = int(read(device, block).sum())
  assert max(extent, 1) <= threads < 2 * max(extent, 1)


def test_a_kernel_for_groups_gets_groups_of_its_size(device, lib):
  data = np.arange(320, dtype=np.int32)
  a, b = filled(device, data), device.alloc(1280)
  for n in (1, 3):
    device.sequence([call(lib["reversed"], 1, 0, extent=5, group=64)] * n).run([a, b])
    assert (read(device, b).reshape(5, 64) == data.reshape(5, 64)[:, ::-1]).all()


def chain(lib, joined: bool):
  """0 -> 1 in queue 0, 2 -> 3 in queue 1, 1 -> 4 in queue 2: with `joined`, each waits for the one before it."""
  edges = [()] + [(n,) if joined else () for n in range(4)]
  return [call(lib["twice"], n + 1, n, queue=n % 3, waits=waits) for n, waits in enumerate(edges)]


def test_queues_wait_for_what_they_are_told(device, lib):
  """The fake runs what no edge holds back in any order."""
  blocks = [filled(device, np.array([1], np.int32)) for _ in range(6)]
  s = device.sequence(chain(lib, joined=True))
  for start in range(20):
    device.upload(blocks[0], np.array([start], np.int32))
    s.run(blocks)
    assert read(device, blocks[5])[0] == 32 * start + 31


def test_a_missing_edge_is_seen(device, lib):
  blocks = [filled(device, np.array([1], np.int32)) for _ in range(6)]
  s, wrong = device.sequence(chain(lib, joined=False)), 0
  for start in range(20):
    device.upload(blocks[0], np.array([start], np.int32))
    s.run(blocks)
    wrong += read(device, blocks[5])[0] != 32 * start + 31
  assert wrong


def test_edges_are_named_once(lib):
  calls = [call(lib["count"], 0, queue=q, waits=w) for q, w in ((0, ()), (0, (0,)), (1, (0, 1)), (0, (2,)))]
  assert cuda.dependencies(calls) == [[], [0], [0, 1], [1, 2]]


def test_the_error_word_is_kept_until_it_is_asked_for(device, lib):
  for n in (1, 4):
    s = device.sequence([call(lib["fail"], 0, -1)] * n)
    assert s.error() == 0
    for value in (7, -9, 0):
      assert s.run([filled(device, np.array([value], np.int32))]) == 0
      s.run([filled(device, np.zeros(1, np.int32))])
      assert s.error() == value and s.error() == 0
    assert s.timed([filled(device, np.array([3], np.int32))])[0] == 3


def test_a_profile_has_a_time_for_each_call(device, lib):
  block = filled(device, np.zeros(1000, np.int32))
  times = device.sequence([call(lib["count"], 0, extent=1000)] * 4).profile([block])
  assert len(times) == 4 and min(times) >= 0 and (read(device, block) == 4).all()


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("n, function", [(1, "cuLaunchKernel"), (4, "cuGraphLaunch")])
def test_a_launch_that_is_refused_names_its_kernels(device, lib, fake, n, function):
  block, done = filled(device, np.zeros(1000, np.int32)), []
  s = device.sequence([call(lib["count"], 0, extent=1000)] * n)
  s.run([block])
  fake.fail(function, 1)
  with pytest.raises(DeviceError, match=r"(?s)^CUDA: .*failed: .*invalid argument.*count"):
    s.run([block], done)
  assert done == []
  s.run([block], done)
  assert done == [0] and (read(device, block) == 2 * n).all()


def test_a_graph_that_cannot_be_made_leaves_nothing(device, lib, fake):
  block = filled(device, np.zeros(1000, np.int32))
  s = device.sequence([call(lib["count"], 0, extent=1000)] * 4)
  for function in ("cuGraphAddKernelNode_v2", "cuGraphInstantiateWithFlags"):
    fake.fail(function, 2)
    with pytest.raises(DeviceError, match="CUDA_ERROR_OUT_OF_MEMORY: out of memory"):
      s.run([block])
    gc.collect()
    assert fake.live("graph") == fake.live("program") == 0
  s.run([block])
  assert (read(device, block) == 4).all()


def test_a_graph_that_cannot_be_changed_is_made_anew(device, lib, fake):
  a, b = (filled(device, np.zeros(1000, np.int32)) for _ in range(2))
  s = device.sequence([call(lib["count"], 0, extent=1000)] * 4)
  s.run([a])
  fake.fail("cuGraphExecKernelNodeSetParams_v2", 1)
  with pytest.raises(DeviceError, match="invalid argument"):
    s.run([b])
  s.run([b])
  assert (read(device, a) == 4).all() and (read(device, b) == 4).all()


def test_a_kernel_that_needs_too_much_is_refused_by_name(device, lib, fake):
  fake.most(32)
  with pytest.raises(DeviceError, match="CUDA: kernel reversed needs groups of 64 threads, .* allow 32"):
    device.sequence([call(lib["reversed"], 1, 0, extent=5, group=64)])


@pytest.mark.parametrize("kernel, words", [("past", "illegal memory access"), ("diverge", "launch failure")])
@pytest.mark.parametrize("n", [1, 3])
def test_a_lost_device_says_so_and_others_go_on(device, fake, api, kernel, words, n):
  other = cuda.open(1, library=fake.path, compiler=compiler, api=api)
  lib = other.compile(SOURCE)
  block = filled(other, np.zeros(1024, np.int32))
  bad = other.sequence([call(lib[kernel], 0, extent=8, group=8)] * n)
  bad.run([block])
  lost = rf"^CUDA:1 is lost: CUDA_ERROR_\w+: .*{words}.*{kernel}.*start a new process"
  for use in (other.wait, lambda: read(other, block), lambda: other.alloc(1 << 20), lambda: bad.run([block])):
    with pytest.raises(DeviceError, match=lost):
      use()
  here = filled(device, np.arange(4))
  assert (read(device, here, np.int64) == np.arange(4)).all()
  block.close()
  fake.lose(1, 0)
  other.driver.lost = ""
  trim(other)


def test_memory_of_another_device_is_none(device, fake, api):
  other = cuda.open(1, library=fake.path, compiler=compiler, api=api)
  block = filled(device, np.zeros(1000, np.int32))
  other.sequence([call(other.compile(SOURCE)["count"], 0)]).run([block])
  with pytest.raises(DeviceError, match="CUDA:1 is lost: .*illegal memory access"):
    other.wait()


# ---------------------------------------------------------------- processes, threads, signals


def test_threads_share_a_device(device, lib):
  shared = device.sequence([call(lib["count"], 0, extent=1000)] * 5)
  total = filled(device, np.zeros(1000, np.int32))
  failures = []

  def work():
    block = filled(device, np.zeros(1000, np.int32))
    own = device.sequence([call(lib["count"], 0, extent=1000)] * 3)
    for _ in range(50):
      own.run([block])
      shared.run([total])
    if not (read(device, block) == 150).all():
      failures.append(read(device, block))

  threads = [threading.Thread(target=work) for _ in range(3)]
  for t in threads:
    t.start()
  for t in threads:
    t.join()
  assert not failures and (read(device, total) == 3 * 50 * 5).all()


def test_a_forked_child_is_told_and_the_parent_goes_on(fake, api):
  code = """
block = filled(device, np.zeros(1000, np.int32))
s = device.sequence([call(lib["count"], 0, extent=1000)] * 4)
s.run([block])
pid = os.fork()
if pid == 0:
  signal.alarm(20)
  for use in (device.wait, lambda: device.alloc(5), lambda: s.run([block]), lambda: device.compile(SOURCE + " ")):
    try:
      use()
    except DeviceError as e:
      print(e, flush=True)
  del s, block
  sys.exit(0)
print(os.waitpid(pid, 0)[1], (read(device, block) == 4).all())
"""
  done = run_python(fake, api, code)
  told = "CUDA was opened before this process was forked: start it with spawn\n"
  assert done.stdout == 4 * told + "0 True\n", done.stdout + done.stderr
  assert not done.stderr


def test_a_process_ends_whatever_its_device_does(fake, api):
  for code in (
    "s = device.sequence([call(lib['count'], 0, extent=1000)] * 4)\nb = device.alloc(4000)\ns.run([b])",
    "s = device.sequence([call(lib['diverge'], 0, extent=8, group=8)])\ns.run([device.alloc(4000)])",
    "t = threading.Thread(target=device.alloc, args=(99,))\nt.start()\nt.join()\nsys.exit(0)",
    "fake.lose(0, 700)",
  ):
    done = run_python(fake, api, code)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert re.fullmatch(r"(fake libcuda: .*\n)?", done.stderr)


def test_control_c_leaves_a_valid_state(fake, api):
  code = """
blocks, done = [filled(device, np.zeros(1000, np.int32)) for _ in range(2)], []
s = device.sequence([call(lib["count"], n, extent=1000) for n in (0, 1, 0)])
signal.signal(signal.SIGALRM, signal.default_int_handler)
interrupts = 0
while interrupts < 100:
  try:
    signal.setitimer(signal.ITIMER_REAL, 0.002 + 1e-5 * interrupts)
    while True:
      s.run(blocks, done)
      blocks.reverse()
  except KeyboardInterrupt:
    interrupts += 1
print(sum(read(device, block)[0] for block in blocks) == 3 * len(done) > 100, set(done))
"""
  done = run_python(fake, api, code)
  assert (done.stdout, done.stderr) == ("True {0}\n", "")


# ---------------------------------------------------------------- tensors


def test_tensors_on_it_give_what_numpy_gives(fake, api):
  code = """
import mini
from mini.engine.device import KINDS
KINDS["CUDA"] = KINDS["CUDA"]._replace(open=lambda index: device)
rng = np.random.default_rng(0)
x, w = rng.standard_normal((30, 50), np.float32), rng.standard_normal((50, 20), np.float32)
a, b = mini.Tensor(x, device="CUDA"), mini.Tensor(w, device="CUDA")
e = np.exp(x @ w)
print(np.allclose((a @ b).softmax(axis=1).numpy(), e / e.sum(1, keepdims=True), atol=1e-5))
print(np.allclose(a.sum(axis=0).numpy(), x.sum(0), atol=1e-5))
try:
  a[mini.Tensor(np.array([3, 99]), device="CUDA")].numpy()
except IndexError as e:
  print(e)
"""
  done = run_python(fake, api, code)
  assert done.stdout == "True\nTrue\ngather: index 99 is out of bounds for an axis of size 30\n", done.stderr


# ---------------------------------------------------------------- NVRTC, which needs no GPU


def test_the_compiler_is_as_exact_as_the_language():
  assert nvrtc.EXACT == language.BUILD


def test_a_code_cache_tells_compilers_apart():
  class Other(nvrtc.NVRTC):
    def __init__(self, version, architecture):
      self.version, self.architecture = version, architecture

  compilers = [Other("13.0", "sm_80"), Other("13.1", "sm_80"), Other("13.0", "sm_90")]
  assert len({c.key(source) for c in compilers for source in ("a", "b")}) == 6


@needs_nvrtc
def test_nvrtc_makes_machine_code_for_the_device_itself(caplog):
  for capability in (75, 80, 90):
    compiler = nvrtc.open(capability)
    assert compiler.architecture == f"sm_{capability}"
    assert compiler(SOURCE).startswith(b"\x7fELF") and not caplog.records


@needs_nvrtc
def test_a_device_that_nvrtc_does_not_know():
  newer = nvrtc.open(999)
  assert newer.architecture.startswith("compute_") and b".visible .entry add(" in newer(SOURCE)
  with pytest.raises(
    DeviceError, match=r"NVRTC .* and newer, this device is sm_20: pip install nvidia-cuda-nvrtc-cu12"
  ):
    nvrtc.open(20)


@needs_nvrtc
def test_nvrtc_speaks_of_kernels_by_name(caplog):
  compiler = nvrtc.open(80)
  with pytest.raises(DeviceError, match=r"(?s)^NVRTC \S+ refuses kernel wrong:\n.*\"nonsense\" is undefined"):
    compiler(SOURCE + 'extern "C" __global__ void wrong(int *a) { a[0] = nonsense; }\n' + SOURCE)
  big = "__shared__ int x[100000]; x[threadIdx.x] = a[0]; __syncthreads(); a[1] = x[a[2]];"
  with pytest.raises(DeviceError, match=r"(?s)^NVRTC \S+ refuses kernel big:\n.*too much shared data"):
    compiler(SOURCE + f'extern "C" __global__ void __launch_bounds__(64) big(int *a) {{ {big} }}')
  assert not caplog.records
  compiler(SOURCE + 'extern "C" __global__ void odd(int *a) { a[0] = 1 / 0; }')
  (record,) = caplog.records
  assert record.levelno == logging.WARNING and "kernel odd" in record.getMessage()


@needs_nvrtc
@pytest.mark.full
@pytest.mark.parametrize("capability", [75, 80, 90])
def test_rendered_kernels_compile_without_a_warning(capability, capsys):
  """Every golden kernel and every operation; and a table of what they take."""
  source = everything("CUDA", matrices=capability >= 80)  # before, there are none of ours
  _, words = nvrtc.open(capability).compile(source, ("--ptxas-options=-v",))
  assert "warning" not in words, words
  found = resources(words)
  assert len(found) == source.count("__global__ void") > 200
  with capsys.disabled():
    print(f"\nsm_{capability}: of {len(found)} kernels those with more than 40 registers, or with spills")
    for name, (registers, stored, loaded) in sorted(found.items(), key=lambda row: -row[1][0]):
      if registers > 40 or stored or loaded:
        print(f"  {name:20} {registers:3} registers, spills: {stored} bytes stored, {loaded} loaded")


def resources(words: str) -> dict[str, tuple[int, int, int]]:
  """kernel -> (registers, bytes of spills stored, loaded), from what the assembler says."""
  kernel = r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads.*?Used (\d+) registers"
  return {m[1]: (int(m[4]), int(m[2]), int(m[3])) for m in re.finditer(kernel, words, re.DOTALL)}
