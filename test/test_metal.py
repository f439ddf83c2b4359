"""The Metal shim, against test/fake/metal.c: a library that stands in for Objective-C and Metal,
and emulates the kernels."""

from __future__ import annotations

import ctypes.util
import gc
import os
import shutil
import subprocess
import sys
import threading
from collections import deque

import numpy as np
import pytest
from fake.metal import IDS, SOURCE, Fake, call, filled, make, read

from runtime import metal
from runtime.base import DeviceError

pytestmark = pytest.mark.skipif(
  sys.platform != "linux" or os.uname().machine not in ("x86_64", "aarch64"),
  reason="the fake library is for Linux, on x86-64 and aarch64",
)


@pytest.fixture(scope="session")
def built(tmp_path_factory):
  """The path of the fake library."""
  yield make(tmp_path_factory.mktemp("fake-metal"))
  del os.environ["FAKE_METAL_COMPILER"]


@pytest.fixture
def fake(request, built, tmp_path):
  """A copy of its own for each test: nothing was ever made in it. At the end nothing is left."""
  found = Fake(shutil.copy(built, tmp_path / "metal.so"))
  yield found
  request.node.funcargs.clear()
  assert found.all_live() == {}


@pytest.fixture
def device(fake):
  return metal.open(library=fake.path)


@pytest.fixture
def lib(device):
  return device.compile(SOURCE)


def run_python(fake, code: str) -> subprocess.CompletedProcess[str]:
  """Runs code in a process of its own, in which `device` and `lib` are there as here."""
  start = f"""
import os, signal, sys
import numpy as np
from fake.metal import SOURCE, Fake, call, filled, read
from runtime import metal
from runtime.base import DeviceError
device = metal.open(library={fake.path!r})
lib = device.compile(SOURCE)
"""
  env = {**os.environ, "PYTHONPATH": os.path.dirname(__file__) + os.pathsep + os.environ["PYTHONPATH"]}
  return subprocess.run(
    [sys.executable, "-c", start + code], check=False, capture_output=True, text=True, timeout=60, env=env
  )


# ---------------------------------------------------------------- the machine


def test_info_is_what_the_gpu_says(device):
  info = device.info
  assert (info.name, info.target, info.kind) == ("METAL", "fake Apple M1", "gpu")
  assert (info.group, info.warp, info.shared_bytes, info.memory_bytes) == (1024, 32, 32768, 1 << 33)
  assert "float64" not in info.dtypes and "bfloat16" in info.dtypes and info.matrices


def test_other_gpus_have_numbers_and_those_that_are_not_apples_no_simdgroups_of_32(fake):
  other = metal.open(1, library=fake.path)
  assert other.info.target == "fake eGPU" and other.info.warp == 1 and not other.info.matrices
  with pytest.raises(DeviceError, match="METAL:2: the GPUs that this machine has are numbered 0 to 1"):
    metal.open(2, library=fake.path)


def test_without_macos_one_line_says_what_would_help(monkeypatch):
  monkeypatch.setattr(sys, "platform", "linux")
  with pytest.raises(DeviceError, match="^METAL needs macOS, and this is .*EMULATE=1 [^\n]*$"):
    metal.open()


def test_without_a_gpu_or_a_library_too(fake, tmp_path):
  with pytest.raises(DeviceError, match="^METAL needs macOS 10.15 or later: [^\n]*nonesuch[^\n]*$"):
    metal.open(library=str(tmp_path / "nonesuch"))
  with pytest.raises(DeviceError, match="^METAL needs macOS 10.15 or later: [^\n]*undefined symbol[^\n]*$"):
    metal.open(library=ctypes.util.find_library("c"))


def test_the_language_is_the_newest_that_the_system_has(monkeypatch):
  for system, version in {
    "": "2.2",
    "10.15.7": "2.2",
    "10.16": "2.3",
    "12.6": "2.3",
    "14.0": "3.1",
    "26.1": "3.1",
  }.items():
    monkeypatch.setattr(metal.platform, "mac_ver", lambda system=system: (system, ("", "", ""), ""))
    major, minor = version.split(".")
    assert metal.language_version() == int(major) * 65536 + int(minor)


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


def test_nothing_reaches_past_the_end_of_a_block(device):
  block, other = device.alloc(10), device.alloc(100)
  for wrong in (
    lambda: device.upload(block, bytes(8), 4),
    lambda: device.download(block, 11),
    lambda: device.download(block, 1, -1),
    lambda: device.copy(block, other, 100),
    lambda: device.copy(other, block, 100),
  ):
    with pytest.raises(ValueError, match="of a block of 10"):
      wrong()


def test_a_steady_loop_takes_nothing_from_the_system(device, fake):
  def step():
    blocks = [device.alloc(n) for n in (100, 5000, 1 << 20, 1 << 20)]
    device.free(blocks[2])
    return device.alloc(1 << 20).nbytes

  step()
  device.heap.settle()
  before, buffers = dict(device.counters), fake.live("Buffer")
  for _ in range(20):
    step()
  device.heap.settle()
  assert fake.live("Buffer") == buffers
  assert device.counters == before and before["bytes_held"] == 0 and before["bytes_allocated"] > 2 << 20


def test_memory_in_a_cycle_of_garbage_goes_back_once(device):
  cycle = [filled(device, np.arange(100, dtype=np.int32))]
  cycle.append(cycle)
  address = cycle[0].address
  del cycle
  gc.collect()
  block = filled(device, np.arange(100, dtype=np.int32))
  assert block.address == address and (read(device, block) == np.arange(100)).all()


def test_freed_memory_cannot_be_used(device, lib):
  block = device.alloc(64)
  device.free(block)
  with pytest.raises(AttributeError):
    device.sequence([call(lib["bump"], 0)]).run([block])


def test_where_there_is_no_memory_the_idle_blocks_go_first(device, fake):
  device.alloc(1 << 16)  # dies, and is idle
  fake.fail("newBufferWithLength:options:")
  block = device.alloc(1 << 20)
  assert device.heap.held == device.heap.live and fake.live("Buffer") == 1 and block.nbytes == 1 << 20


def test_memory_that_cannot_be_had_is_an_error_with_its_size_and_what_is_in_use(device, lib):
  block = filled(device, np.zeros(1, np.int32))
  with pytest.raises(
    MemoryError, match="the METAL device cannot allocate 9,000,000,000 bytes: 64 of 8,589,934,592 are in use"
  ):
    device.alloc(9 * 10**9)
  with pytest.raises(
    MemoryError, match="cannot allocate 5,000,000,000 bytes: .*: one buffer has at most 4,294,967,296"
  ):
    device.alloc(5 * 10**9)
  device.sequence([call(lib["bump"], 0)]).run([block])
  assert read(device, block)[0] == 1


# ---------------------------------------------------------------- code


def test_a_source_that_does_not_compile_is_an_error_with_the_compilers_words(device):
  with pytest.raises(DeviceError, match=r"(?s)the Metal compiler failed:.*nonsense"):
    device.compile(SOURCE.replace("a[i] + b[i]", "nonsense"))


def test_a_kernel_that_cannot_be_built_is_named(device, fake):
  fake.fail("newComputePipelineStateWithFunction:error:")
  with pytest.raises(DeviceError, match="METAL cannot build the kernel (?s:.*)no reason was given"):
    device.compile(SOURCE)
  assert device.compile(SOURCE)["add"]


def test_several_sources_compile_at_once_and_equal_ones_once(device):
  sources = [
    f"kernel void f(device int *a [[buffer(0)]], {IDS}) {{ if (id == 0) a[0] = {n}; }}" for n in (1, 2, 3, 1)
  ]
  libs = device.compile_all(sources)
  assert device.counters["compiles"] == 3 and libs[0] is libs[3] and device.compile_all([]) == []
  block = device.alloc(4)
  for lib, expected in zip(libs, (1, 2, 3, 1)):
    device.sequence([call(lib["f"], 0)]).run([block])
    assert read(device, block)[0] == expected


def test_a_group_that_is_too_large_for_a_kernels_registers_is_an_error_with_both_numbers(fake):
  fake.limit_threads(32)
  device = metal.open(library=fake.path)
  lib = device.compile(SOURCE)
  with pytest.raises(DeviceError, match="METAL cannot run mirror in groups of 64 threads: .* at most 32;"):
    device.sequence([call(lib["reversed"], 1, 0, extent=5, group=64, name="mirror")])
  block = filled(device, np.zeros(1000, np.int32))  # one that any number of threads can run takes fewer
  device.sequence([call(lib["count"], 0, extent=1000)]).run([block])
  assert (read(device, block) == 1).all()


# ---------------------------------------------------------------- sequences


def test_a_sequence_binds_memory_anew_on_each_run(device, lib):
  rng = np.random.default_rng(0)
  s = device.sequence([call(lib["add"], 2, 0, 1, extent=96), call(lib["add"], (2, 4), (2, 4), 0)])
  blocks = [device.alloc(400) for _ in range(6)]
  for trial in range(20):
    a, b, c = (blocks[i] for i in rng.permutation(6)[:3])
    x, y = rng.random(100, np.float32), rng.random(100, np.float32)
    device.upload(a, x)
    device.upload(b, y)
    done = []
    assert s.run([a, b, c], done) == 0 and done == [0]
    expected = x + y
    expected[1:97] = np.append(expected[1:96], read(device, c, np.float32)[96] - x[95]) + x[:96]
    assert (read(device, c, np.float32)[:96] == expected[:96]).all(), trial


def test_groups_that_share_memory(device, lib):
  x = np.arange(320, dtype=np.int32)
  a, b = filled(device, x), device.alloc(x.nbytes)
  device.sequence([call(lib["reversed"], 1, 0, extent=5, group=64)]).run([a, b])
  assert (read(device, b).reshape(5, 64) == x.reshape(5, 64)[:, ::-1]).all()


@pytest.mark.parametrize("extent", [1, 2, 255, 256, 257, 1000])
def test_any_grid_runs_every_index_once(device, lib, extent):
  block = filled(device, np.zeros(1000, np.int32))
  s = device.sequence([call(lib["count"], 0, extent=extent)] * 3)
  s.run([block])
  assert (read(device, block) == 3).all()


def test_more_handles_than_slots_are_fine_and_an_empty_sequence_too(device, lib):
  block = filled(device, np.zeros(1, np.int32))
  assert device.sequence([]).run([block]) == 0
  device.sequence([call(lib["bump"], 0)]).run([block, block])
  assert read(device, block)[0] == 1


def test_the_error_word_is_kept_until_it_is_asked_for(device, lib):
  s = device.sequence([call(lib["fail"], 0, -1)])
  good, bad = (filled(device, np.array([n], np.int32)) for n in (0, 7))
  assert s.run([bad]) == 0 and s.run([good]) == 0
  assert s.error() == 7 and s.error() == 0
  s.run([good])
  assert s.error() == 0
  assert s.timed([bad])[0] == 7


def test_a_sequence_without_guards_has_no_error_word_to_wait_for(device, lib):
  s = device.sequence([call(lib["bump"], 0)])
  s.run([filled(device, np.zeros(1, np.int32))])
  assert s.error() == 0 and device.flight
  device.wait()


def test_each_call_has_a_time(device, lib):
  block = filled(device, np.zeros(1000, np.int32))
  s = device.sequence([call(lib["bump"], 0), call(lib["count"], 0, extent=1000)])
  tiny, long = s.profile([block])
  assert 0 < tiny < 1 and 0 < long < 1 and read(device, block)[:2].tolist() == [2, 1]


# ---------------------------------------------------------------- order


def test_nobody_waits_who_does_not_ask_for_results(device, lib, fake):
  block, s = filled(device, np.zeros(1000, np.int32)), device.sequence([call(lib["count"], 0, extent=1000)])
  for n in range(10):
    s.run([block])
    assert len(device.flight) == fake.live("CommandBuffer") == n + 1
  device.wait()
  assert not device.flight and fake.live("CommandBuffer") == 0 and (read(device, block) == 10).all()


def test_what_is_uploaded_meanwhile_is_seen_by_later_launches_only(device, lib):
  total, x = filled(device, np.zeros(96, np.float32)), device.alloc(400)
  s = device.sequence([call(lib["add"], 0, 0, 1, extent=96)])
  for n in range(10):
    data = np.full(100, n, np.float32)
    device.upload(x, data)
    data[:] = 1000  # the caller's to change
    s.run([total, x])
  assert len(device.flight) == 19
  assert (read(device, total, np.float32) == 45).all()


@pytest.mark.parametrize(("nbytes", "offset"), [(metal.STAGED_BYTES + 4, 0), (3, 0), (4, 2)])
def test_what_the_gpu_cannot_copy_itself_waits(device, lib, nbytes, offset):
  block = filled(device, np.zeros((nbytes + offset + 3) // 4, np.int32))
  device.sequence([call(lib["bump"], 0)]).run([block])
  device.upload(block, np.full(nbytes, 7, np.uint8), offset)
  assert not device.flight
  assert device.download(block, 4).tolist() == ([1, 0, 7, 7] if offset else [7, 7, 7, 7 if nbytes > 3 else 0])


def test_copies_are_made_in_their_turn(device, lib):
  a, b, c = (filled(device, np.zeros(1, np.int32)) for _ in range(3))
  s = device.sequence([call(lib["bump"], 0)])
  for target in (b, c):
    s.run([a])
    device.copy(target, a, 4)
  s.run([a])
  assert len(device.flight) == 5
  assert [int(read(device, x)[0]) for x in (a, b, c)] == [3, 1, 2]
  odd = device.alloc(3)
  device.copy(odd, c, 3)
  assert device.download(odd, 3).tolist() == [2, 0, 0]


def test_memory_may_die_while_the_gpu_uses_it(device, lib, fake):
  total, s = filled(device, np.zeros(96, np.float32)), device.sequence([call(lib["add"], 0, 0, 1, extent=96)])
  for n in range(5):
    s.run([total, filled(device, np.full(96, n, np.float32))])
  device.heap.trim()
  assert fake.live("Buffer") > device.counters["bytes_held"] // 384
  assert (read(device, total, np.float32) == 10).all() and fake.live("Buffer") == 1


def test_more_launches_than_metal_has_command_buffers(device, lib):
  block, s = filled(device, np.zeros(1, np.int32)), device.sequence([call(lib["bump"], 0)])
  for _ in range(200):
    s.run([block])
  assert len(device.flight) <= 65
  assert read(device, block)[0] == 200


def chain(device, lib, *waits):
  """Three calls, each on a queue of its own, of which each reads what the one before writes: x, 2x+1, 2(2x+1)+1, ..."""
  calls = [call(lib["twice"], n + 1, n, queue=n, waits=edges) for n, edges in enumerate(waits)]
  blocks = [filled(device, np.array([n], np.int32)) for n in (5, 0, 0, 0)]
  return device.sequence(calls), blocks


def test_queues_run_at_once_and_barriers_keep_the_order_that_is_asked_for(device, lib):
  s, blocks = chain(device, lib, (), (0,), (1,))
  assert [step.barrier for step in s.steps] == [False, True, True]
  s.run(blocks)
  assert [int(read(device, b)[0]) for b in blocks] == [5, 11, 23, 47]


def test_a_barrier_serves_all_that_comes_after_it(device, lib):
  twice = lib["twice"]  # on two queues at once: a -> b, and a -> c; then d of b and c
  s = device.sequence(
    [
      call(twice, 1, 0),
      call(twice, 2, 1),
      call(twice, 3, 1, queue=1, waits=(0,)),
      call(twice, 4, 3, waits=(2,)),
    ]
  )
  assert [step.barrier for step in s.steps] == [False, True, False, True]
  blocks = [filled(device, np.array([n], np.int32)) for n in (5, 0, 0, 0, 0)]
  s.run(blocks)
  assert [int(read(device, b)[0]) for b in blocks] == [5, 11, 23, 23, 47]
  assert s.timed(blocks)[0] == 0


def test_a_call_may_wait_for_one_that_is_not_the_last(device, lib):
  twice, bump = lib["twice"], lib["bump"]
  s = device.sequence([call(twice, 1, 0), call(bump, 3, queue=1), call(twice, 2, 1, queue=2, waits=(0,))])
  blocks = [filled(device, np.array([n], np.int32)) for n in (5, 0, 0, 0)]
  s.run(blocks)
  assert [int(read(device, b)[0]) for b in blocks] == [5, 11, 23, 1]


@pytest.mark.parametrize("waits", [((), (), (1,)), ((), (0,), ())])
def test_without_an_edge_that_no_other_implies_the_result_is_wrong(device, lib, waits):
  s, blocks = chain(device, lib, *waits)
  s.run(blocks)
  assert [int(read(device, b)[0]) for b in blocks] != [5, 11, 23, 47]


# ---------------------------------------------------------------- failures


def test_work_that_failed_is_an_error_for_who_waits_next_and_all_goes_on(device, lib, fake):
  block = filled(device, np.zeros(1000, np.int32))
  s = device.sequence([call(lib["bump"], 0), call(lib["count"], 0, extent=1000, name="counting")])
  fake.fail("commit", 1)
  for _ in range(3):
    s.run([block])
  with pytest.raises(DeviceError, match="METAL failed in bump, counting: told to fail"):
    device.download(block, 4)
  assert read(device, block)[:2].tolist() == [4, 2]


def test_an_argument_past_the_end_of_its_memory_is_an_error_with_the_kernels_name(device, lib):
  block = filled(device, np.zeros(1, np.int32))
  device.sequence([call(lib["bump"], (0, 1 << 20))]).run([block])
  with pytest.raises(DeviceError, match="METAL failed in bump: .* past its end"):
    device.wait()
  device.wait()


@pytest.mark.parametrize("message", ["commandBuffer", "computeCommandEncoderWithDispatchType:"])
def test_a_command_buffer_that_cannot_be_had_is_an_error(device, lib, fake, message):
  block, s = filled(device, np.zeros(1, np.int32)), device.sequence([call(lib["bump"], 0)])
  fake.fail(message)
  done = []
  with pytest.raises(DeviceError, match="METAL gave no .* for bump"):
    s.run([block], done)
  s.run([block], done)
  assert read(device, block)[0] == 1 and done == [0]


# ---------------------------------------------------------------- processes, threads, signals


def test_two_threads_run_at_once(device, lib):
  shared, total = device.sequence([call(lib["bump"], 0)]), filled(device, np.zeros(1, np.int32))
  failures = []

  def work():
    own, block = (
      device.sequence([call(lib["count"], 0, extent=1000)]),
      filled(device, np.zeros(1000, np.int32)),
    )
    for n in range(20):
      own.run([block])
      shared.run([total])
      if n % 5 == 0 and not (read(device, block) == n + 1).all():
        failures.append(n)

  threads = [threading.Thread(target=work) for _ in range(3)]
  for t in threads:
    t.start()
  for t in threads:
    t.join()
  assert not failures and read(device, total)[0] == 60


def test_a_forked_child_is_told_and_ends_well(fake):
  code = """
block = filled(device, np.zeros(1, np.int32))
s = device.sequence([call(lib["bump"], 0)])
s.run([block])
child = os.fork()
if not child:
  device.lock = None  # whoever holds it does not exist here
  for use in (lambda: s.run([block]), lambda: device.alloc(4), lambda: device.download(block, 4), lambda: device.compile("")):
    try:
      use()
    except DeviceError as e:
      assert "METAL cannot be used in a forked process" in str(e)
    else:
      os._exit(1)
  del block, s
  sys.exit(0)
print(os.waitpid(child, 0)[1], read(device, block)[0])
"""
  done = run_python(fake, code)
  assert (done.stdout, done.stderr) == ("0 1\n", "")


def test_the_process_ends_while_work_is_under_way(fake):
  code = 'device.sequence([call(lib["bump"], 0)]).run([filled(device, np.zeros(1, np.int32))])\nprint(len(device.flight))'
  done = run_python(fake, code)
  assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_control_c_comes_before_a_launch_or_after_it(fake):
  code = """
block, s, done, interrupts, armed = filled(device, np.zeros(1, np.int32)), device.sequence([call(lib["bump"], 0)]), [], 0, False
def interrupt(number, frame):
  global armed, interrupts
  if armed:
    armed, interrupts = False, interrupts + 1
    raise KeyboardInterrupt
sys.unraisablehook = lambda caught: None  # what comes in a finalizer Python reports, and goes on
signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.0003)
def work():  # a function: from Python 3.13 on what comes at the test of a loop is not within the `try` around it
  global armed
  armed = True
  while armed:
    s.run([block], done)
while interrupts < 500:
  try:
    work()
  except KeyboardInterrupt:
    pass
signal.setitimer(signal.ITIMER_REAL, 0)
print(read(device, block)[0] == len(done) > 100)
"""
  done = run_python(fake, code)
  assert (done.stdout, done.stderr) == ("True\n", "")


def test_what_control_c_left_uncommitted_nobody_waits_for(device, lib):
  class Interrupted(deque):
    def append(self, item):
      super().append(item)
      raise KeyboardInterrupt

  block, s, done = filled(device, np.zeros(1, np.int32)), device.sequence([call(lib["bump"], 0)]), []
  device.flight = Interrupted()
  with pytest.raises(KeyboardInterrupt):
    s.run([block], done)
  device.flight = deque(device.flight)
  assert read(device, block)[0] == 0 == len(done)
  s.run([block], done)
  assert read(device, block)[0] == 1 == len(done)


# ---------------------------------------------------------------- tensors


def test_tensors_on_it_give_what_numpy_gives(fake):
  code = """
import mini
from mini.engine.device import KINDS, Device
KINDS["METAL"] = KINDS["METAL"]._replace(open=lambda index: device)
rng = np.random.default_rng(0)
x, w = rng.standard_normal((30, 50), np.float32), rng.standard_normal((50, 20), np.float32)
a, b = mini.Tensor(x, device="METAL"), mini.Tensor(w, device="METAL")
e = np.exp(x @ w)
print(np.allclose((a @ b).softmax(axis=1).numpy(), e / e.sum(1, keepdims=True), atol=1e-5))
print(np.allclose(a.sum(axis=0).numpy(), x.sum(0), atol=1e-5))
try:
  a[mini.Tensor(np.array([3, 99]), device="METAL")].numpy()
except IndexError as e:
  print(e)
"""
  done = run_python(fake, code)
  assert done.stdout == "True\nTrue\ngather: index 99 is out of bounds for an axis of size 30\n", done.stderr


# ---------------------------------------------------------------- the fake


@pytest.mark.sample(3)
@pytest.mark.parametrize(("code", "words"), [
  ("b = device.alloc(4); device.send(b.address, 'release'); read(device, b)", "contents was sent to a Buffer that was freed"),
  ("o = device.queue; device.send(o, 'release'); device.send(o, 'release')", "release was sent to a Queue that was freed"),
  ("device.send(device.queue, 'commandBuffer')", "a CommandBuffer was autoreleased without a pool"),
  ("with device.objc.pool(): device.send(device.send(device.queue, 'commandBuffer'), 'blitCommandEncoder')", "before endEncoding"),
  ("with device.objc.pool(): device.send(device.send(device.queue, 'commandBuffer'), 'waitUntilCompleted')", "waits for ever"),
  ("device.send(device.queue, 'contents')", "-[Queue contents]: unrecognized selector"),
])  # fmt: skip
def test_what_a_mac_would_not_survive_ends_the_process(fake, code, words):
  done = run_python(fake, code)
  assert done.returncode < 0 and done.stderr.startswith("fake Metal: ") and words in done.stderr
