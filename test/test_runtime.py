"""The CPU shim: compiling, memory, threads. Kernels here are written by hand in C."""

from __future__ import annotations

import ctypes
import gc
import importlib
import mmap
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from runtime import compiler, cpu, heap, host, pages
from runtime.base import Call, DeviceError, geometry

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = """
typedef float *floats;
void add(void **args, long lo, long hi) {
  floats c = args[0], a = args[1], b = args[2];
  for (long i = lo; i < hi; i++) c[i] = a[i] + b[i];
}
void count(void **args, long lo, long hi) {  /* a cell per index: how often it was visited */
  for (long i = lo; i < hi; i++) ((int *)args[0])[i]++;
}
void bump(void **args, long lo, long hi) { *(int *)args[0] += 1; }
void fail(void **args, long lo, long hi) { *(long long *)args[1] = *(int *)args[0]; }
void slow(void **args, long lo, long hi) {  /* about a millisecond for each index */
  for (long i = lo; i < hi; i++)
    for (long n = 0; n < 1000000; n++) __asm__ volatile("");
}
"""


@pytest.fixture(scope="module")
def device():
  return cpu.open(threads=4)


@pytest.fixture(scope="module")
def lib(device):
  return device.compile(SOURCE)


def filled(device, array):
  block = device.alloc(array.nbytes)
  device.upload(block, array)
  return block


def read(device, block, dtype=np.int32):
  return device.download(block, block.nbytes).view(dtype)


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
  return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60,
                        env={**os.environ, "PYTHONPATH": ROOT, **environment})  # fmt: skip


# ---------------------------------------------------------------- the machine and the compiler


def test_info_describes_this_machine(device):
  info = device.info
  assert info.name == "CPU" and info.threads == 4
  assert info.lanes in (4, 8, 16) and info.registers in (16, 32)
  assert 8 << 10 <= info.l1_bytes < info.l2_bytes
  assert 0 < info.memory_bytes <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("macros, issue", [("", 4), ("CLZERO", 4), ("AVXVNNI", 4), ("CLZERO AVXVNNI", 8)])
def test_a_processor_is_known_by_what_it_compiles_for(macros, issue):
  found = compiler.Compiler(["cc"], {f"__{name}__": "1" for name in macros.split()})
  assert found.issue() == issue and found.streams() == (4 if "CLZERO" in macros else 8)


@pytest.mark.parametrize(
  "macros, has, lacks",
  [
    (
      "__clang__ __x86_64__ __FLT16_MAX__",
      "-fno-unroll-loops",
      "-Wno-psabi -mtune=haswell -D_Float16=__fp16",
    ),
    ("__clang__", "-fno-unroll-loops -D_Float16=__fp16", "-Wno-psabi -mtune=haswell"),
    ("__x86_64__", "-Wno-psabi -mtune=haswell", "-fno-unroll-loops -D_Float16=__fp16"),
    ("__aarch64__", "-Wno-psabi", "-mtune=haswell -fno-unroll-loops -D_Float16=__fp16"),
  ],
)
def test_flags_are_the_compilers_own(macros, has, lacks):
  flags = compiler.Compiler(["cc"], dict.fromkeys(macros.split(), "1")).flags
  assert {*has.split()} <= {*flags} and {*lacks.split()}.isdisjoint(flags)


def test_threads_follow_the_affinity_mask_and_the_control_group(monkeypatch):
  monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)), raising=False)
  files = {"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/cpu.max": "250000 100000\n",
           "/sys/fs/cgroup/cpu.max": "max 100000", "/sys/fs/cgroup/a/b/memory.max": "1000000"}  # fmt: skip
  monkeypatch.setattr(host, "read", lambda path, nbytes=-1: files.get(path, ""))
  assert host.available_threads() == 3
  assert host.available_memory() == 1000000
  files.update({"/proc/self/cgroup": "4:cpu,cpuacct:/x\n", "/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us": "200000",
                "/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "100000"})  # fmt: skip
  assert host.available_threads() == 2
  files.clear()
  assert host.available_threads() == 64


@pytest.mark.sample(2)
@pytest.mark.parametrize("threads", ["1", "2"])
def test_stages_fit_into_the_stack_that_there_is(threads):
  """A product whose operands are packed, where a thread's stack has a quarter of what it has otherwise."""
  done = run_python(
    """
import resource
resource.setrlimit(resource.RLIMIT_STACK, (2 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))
import numpy as np
from mini import Device, Tensor
a, b = (np.random.default_rng(n).standard_normal((1500, 700), np.float32) for n in (0, 1))
got = (Tensor(a).realize().T @ Tensor(b).realize()).numpy()
np.testing.assert_allclose(got, a.T.astype(np.float64) @ b, atol=1e-3)
print(Device["CPU"].shim.info.stack_bytes)
""",
    THREADS=threads,
  )
  assert (done.stdout, done.stderr) == (f"{1 << 20}\n", "")


def test_stages_that_do_not_fit_the_stack_are_an_error():
  """A kernel that a user wrote, beside one that fits: before, the process ended."""
  done = run_python(
    """
import resource
resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))
import numpy as np
from mini.engine.launch import Launchable
from mini.text.parser import parse
TEXT = '''kernel big(%y: out f32[N, N], %x: in f32[N, N]) {
  %i = range N
  %j = range N
  %i.0 = range N
  %j.0 = range N
  %0 = load %x[%i.0, %j.0] : f32
  %1 = stage %0 at [%i.0, %j.0] over (%i.0, %j.0) stack : f32[N, N]
  %2 = load %1[%i, %j] : f32
  store %y[%i, %j], %2
  end over (%i, %j)
}'''
for n in (443, 444):
  x = np.arange(n * n, dtype=np.float32).reshape(n, n)
  try:
    got, _ = Launchable(parse(TEXT.replace("N", str(n)))).run({"x": x, "y": np.zeros_like(x)}, 0)
    print(np.array_equal(got["y"], x))
  except RuntimeError as e:
    print(type(e).__name__, e)
""",
    THREADS="1",
  )
  fits, *error = done.stdout.splitlines()
  assert fits == "True" and done.stderr == ""
  assert error[0].endswith("take 788,544 bytes of a thread's stack, which has 786,432 for them")
  assert error[0].startswith("DeviceError CPU: ") and "ulimit -s" in error[1]


def test_a_source_that_does_not_compile_is_an_error_with_the_compilers_words(device):
  with pytest.raises(DeviceError, match=r"(?s)failed.*nonsense"):
    device.compile("void f(void **args, long lo, long hi) { nonsense; }")


def test_several_sources_compile_at_once_and_equal_ones_once(device):
  before = device.counters["compiles"]
  sources = [f"void f(void **args, long lo, long hi) {{ *(int *)args[0] = {n}; }}" for n in (1, 2, 3, 1)]
  libs = device.compile_all(sources)
  assert device.counters["compiles"] == before + 3 and libs[0] is libs[3]
  block = device.alloc(4)
  for lib, expected in zip(libs, (1, 2, 3, 1)):
    device.sequence([Call(lib["f"], [(0, 0)], 1, 0)]).run([block])
    assert read(device, block)[0] == expected


def test_no_compiler_is_one_line_that_says_what_to_install(monkeypatch):
  monkeypatch.setenv("PATH", "/nonexistent")
  monkeypatch.setattr(compiler, "_ziglang", list)
  with pytest.raises(DeviceError) as e:
    cpu.open()
  assert "\n" not in str(e.value)
  assert "apt install gcc" in str(e.value) and "pip install ziglang" in str(e.value)


def test_code_of_other_flags_is_not_found(monkeypatch):
  """A library that is still held was compiled with the flags of then."""
  device = cpu.open()
  first = device.compile(SOURCE)
  assert device.compile(SOURCE) is first
  monkeypatch.setattr(compiler, "BASE_FLAGS", [*compiler.BASE_FLAGS, "-DOTHER"])
  assert device.compile(SOURCE) is not first


def test_a_compiler_that_was_asked_for_must_exist():
  with pytest.raises(
    DeviceError,
    match="CC=nonesuch: there is no such command; without CC the first of cc, gcc, clang is taken",
  ):
    cpu.open(cc="nonesuch")


def test_ziglang_is_used_when_only_it_is_there(monkeypatch, tmp_path):
  package = tmp_path / "ziglang"
  package.mkdir()
  (package / "__init__.py").touch()
  zig = package / "zig"
  zig.write_text(f'#!/bin/sh\nshift\nPATH={os.environ["PATH"]} exec cc "$@"\n')
  zig.chmod(0o755)
  monkeypatch.syspath_prepend(str(tmp_path))
  monkeypatch.setenv("PATH", "/nonexistent")
  found = cpu.open()
  assert found.compiler.command == [str(zig), "cc"]
  assert found.compile(SOURCE)["add"]


def test_a_compiler_may_have_arguments():
  found = compiler.find("cc -DVALUE=7")
  assert found.command[1:] == ["-DVALUE=7"] and found.macros["VALUE"] == "7"
  assert found.key("x") != compiler.find("cc").key("x")


def test_no_flag_that_changes_float_arithmetic_of_others():
  assert not {"-ffast-math", "-Ofast"} & set(compiler.find().flags)


# ---------------------------------------------------------------- memory


def test_memory_is_aligned_and_copied_in_and_out(device):
  for nbytes in (0, 1, 63, 64, 1000, 1 << 20):
    block = device.alloc(nbytes)
    assert block.address % 64 == 0
    data = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)
    device.upload(block, data.tobytes())
    assert (device.download(block, nbytes) == data).all()
    device.upload(block, data[::-1])
    assert (np.asarray(block) == data[::-1]).all()


def test_a_view_keeps_its_memory(device):
  view = np.asarray(filled(device, np.arange(1000, dtype=np.int32))).view(np.int32)
  gc.collect()
  other = filled(device, np.zeros(1000, np.int32))
  assert (view == np.arange(1000)).all() and other.nbytes == 4000


def test_freed_memory_cannot_be_used(device, lib):
  block = device.alloc(64)
  device.free(block)
  with pytest.raises(AttributeError):
    device.sequence([Call(lib["bump"], [(0, 0)], 1, 0)]).run([block])


def test_a_steady_loop_takes_nothing_from_the_system(device):
  def step():
    blocks = [device.alloc(n) for n in (100, 5000, 1 << 20, 3 << 20, 1 << 20)]
    device.free(blocks[2])
    return device.alloc(1 << 20).nbytes

  step()
  before = dict(device.counters)
  for _ in range(100):
    step()
  assert device.counters["bytes_allocated"] == before["bytes_allocated"]
  assert device.counters["bytes_held"] == before["bytes_held"]


def test_what_is_idle_goes_back_rather_than_adding_up():
  device = cpu.open(threads=1)
  for n in range(40):
    device.alloc((16 << 20) + (n << 21))  # one at a time, each of another size
  assert device.heap.held <= 2 * (16 << 20) + (40 << 21) + heap.SLACK_BYTES
  device.heap.trim()
  assert device.heap.held == 0 == device.counters["bytes_held"]


def test_zeros_are_zeros_in_memory_that_was_used_before_too(device):
  for nbytes in (0, 64, 1000, 3 << 20):
    for _ in range(3):
      block = device.zeros(nbytes)
      assert not np.asarray(block).any()
      np.asarray(block)[:] = 255
      del block


def test_big_blocks_are_touched_ahead_and_nothing_is_lost(device, lib):
  """Whoever writes meanwhile, and however soon a block goes back; a child has a thread of its own."""
  cpu.Native.of(device)
  size = 3 * pages.AHEAD_BYTES

  def resident():
    pages = host.read("/proc/self/statm").split()
    return int(pages[1]) * os.sysconf("SC_PAGE_SIZE") if pages else 0

  def check():
    device.heap.trim()
    before = resident()
    blocks = [device.zeros(size + n) for n in range(3)]
    for n, block in enumerate(blocks):
      np.asarray(block)[: size // 2 : 4096 + n] = n + 1
    while pages.ahead.todo or pages.ahead.touching:
      time.sleep(0.001)
    assert sys.platform != "linux" or resident() - before > 2.9 * size
    for n, block in enumerate(blocks):
      want = np.zeros(size + n, np.uint8)
      want[: size // 2 : 4096 + n] = n + 1
      assert np.array_equal(np.asarray(block), want)
    del block
    for wait in (0, 0.003, 0):
      blocks.clear()
      device.heap.trim()
      blocks += [device.alloc(size + n) for n in range(3)]
      time.sleep(wait)
    return True

  assert check()
  pid = os.fork()
  if pid == 0:
    os._exit(0 if check() else 1)
  assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.skipif(
  not os.path.isdir("/sys/kernel/mm/transparent_hugepage"), reason="a system without huge pages"
)
def test_big_blocks_are_of_huge_pages_and_go_back_as_a_whole():
  def flags(address):
    """Of the mapping that has an address, as Linux tells it; none where nothing is mapped."""
    inside = False
    for line in host.read("/proc/self/smaps").splitlines():
      if found := re.match("([0-9a-f]+)-([0-9a-f]+) ", line):
        inside = int(found[1], 16) <= address < int(found[2], 16)
      elif inside and line.startswith("VmFlags:"):
        return line.split()[1:]
    return []

  def is_mapped(page):
    return pages.LIBC.msync(ctypes.c_void_p(page), 1, 1) == 0

  for nbytes in (pages.HUGE_PAGE, pages.HUGE_PAGE + 1, 5_000_000, 3 * pages.HUGE_PAGE - 1):
    address = pages.take(nbytes)
    ends = (address, (address + nbytes - 1) // mmap.PAGESIZE * mmap.PAGESIZE)
    assert not is_mapped(ends[1] + mmap.PAGESIZE)
    assert address % pages.HUGE_PAGE == 0
    whole = np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))
    assert not whole.any()
    whole[:] = 255
    assert all("hg" in flags(end) for end in ends)
    pages.give(address)
    assert not any(map(is_mapped, ends))
  small = pages.take(pages.MAPPED_BYTES)
  assert "hg" not in flags(small)
  pages.give(small)


def test_memory_that_cannot_be_had_is_an_error_with_its_size(device, lib):
  with pytest.raises(MemoryError, match="cannot allocate 1,125,899,906,842,624 bytes"):
    device.alloc(1 << 50)
  block = filled(device, np.zeros(1, np.int32))
  device.sequence([Call(lib["bump"], [(0, 0)], 1, 0)]).run([block])
  assert read(device, block)[0] == 1


# ---------------------------------------------------------------- sequences


def test_a_sequence_binds_memory_anew_on_each_run(device, lib):
  rng = np.random.default_rng(0)
  s = device.sequence(
    [Call(lib["add"], [(2, 0), (0, 0), (1, 0)], 96, 1e6), Call(lib["add"], [(2, 4), (2, 4), (0, 0)], 1, 0)]
  )
  blocks = [device.alloc(400) for _ in range(6)]
  for trial in range(20):
    a, b, c = (blocks[i] for i in rng.permutation(6)[:3])
    x, y = rng.random(100, np.float32), rng.random(100, np.float32)
    device.upload(a, x)
    device.upload(b, y)
    assert s.run([a, b, c]) == 0
    expected = x + y
    expected[1] += x[0]
    assert (read(device, c, np.float32)[:96] == expected[:96]).all(), trial


def test_more_handles_than_slots_are_fine_and_an_empty_sequence_too(device, lib):
  block = filled(device, np.zeros(1, np.int32))
  assert device.sequence([]).run([block]) == 0
  assert device.sequence([Call(lib["bump"], [(0, 0)], 1, 0)]).run([block, block]) == 0


@pytest.mark.parametrize("extent", [0, 1, 2, 3, 4, 5, 97, 1000])
def test_every_index_runs_once_whoever_runs_it(device, lib, extent):
  block = filled(device, np.zeros(1000, np.int32))
  s = device.sequence([Call(lib["count"], [(0, 0)], extent, 1e6)] * 200)
  s.run([block])
  s.run([block])
  assert (read(device, block)[:extent] == 400).all() and not read(device, block)[extent:].any()


def test_the_error_word_comes_back_and_is_0_again_in_the_next_run(device, lib):
  s = device.sequence([Call(lib["fail"], [(0, 0), (-1, 0)], 1, 0)])
  assert s.run([filled(device, np.array([7], np.int32))]) == 7
  assert s.run([filled(device, np.array([-9], np.int32))]) == -9
  assert s.run([filled(device, np.array([0], np.int32))]) == 0


def test_profile_has_a_time_for_each_call(device, lib):
  block = filled(device, np.zeros(8, np.int32))
  tiny, slow = device.sequence([Call(lib["bump"], [(0, 0)], 1, 0), Call(lib["slow"], [], 8, 0)]).profile(
    [block]
  )
  assert 0 <= tiny < slow and read(device, block)[0] == 1


# ---------------------------------------------------------------- processes, threads, signals


def test_two_threads_run_at_once(device, lib):
  shared = device.sequence([Call(lib["bump"], [(0, 0)], 1, 0)] * 50)
  total = filled(device, np.zeros(1, np.int32))
  failures = []

  def work():
    block = filled(device, np.zeros(1000, np.int32))
    own = device.sequence([Call(lib["count"], [(0, 0)], 1000, 1e6)] * 20)
    for _ in range(50):
      own.run([block])
      shared.run([total])
    if not (read(device, block) == 1000).all():
      failures.append(read(device, block))

  threads = [threading.Thread(target=work) for _ in range(3)]
  for t in threads:
    t.start()
  for t in threads:
    t.join()
  assert not failures and read(device, total)[0] == 3 * 50 * 50


def test_other_python_threads_go_on_while_kernels_run(device, lib):
  s = device.sequence([Call(lib["slow"], [], 100, 0)])
  t = threading.Thread(target=s.run, args=([],))
  t.start()
  turns = 0
  while t.is_alive():
    turns += 1
    time.sleep(0.001)
  assert turns > 3


def test_a_forked_child_has_a_pool_of_its_own(device, lib):
  block = filled(device, np.zeros(1000, np.int32))
  s = device.sequence([Call(lib["count"], [(0, 0)], 1000, 1e6)] * 50)
  s.run([block])
  busy = threading.Thread(target=device.sequence([Call(lib["slow"], [], 200, 1e9)]).run, args=([],))
  busy.start()  # the pool is in use while we fork
  for _ in range(5):
    pid = os.fork()
    if pid == 0:
      ok = False
      try:
        signal.alarm(20)
        child = filled(device, np.zeros(1000, np.int32))
        s.run([child])
        other = device.compile("void f(void **args, long lo, long hi) { *(int *)args[0] = 5; }")
        device.sequence([Call(other["f"], [(0, 0)], 1, 0)]).run([block])
        ok = (read(device, child) == 50).all() and read(device, block)[0] == 5 and tasks() == 4
      finally:
        os._exit(0 if ok else 1)
    assert os.waitpid(pid, 0)[1] == 0
  busy.join()
  s.run([block])
  assert (read(device, block) == 100).all()


def tasks() -> int:
  """Threads of this process, of the pool or of Python."""
  return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 4


def test_the_pool_sleeps_when_it_is_idle(device, lib):
  block = filled(device, np.zeros(1000, np.int32))
  device.sequence([Call(lib["count"], [(0, 0)], 1000, 1e6)]).run([block])
  time.sleep(0.05)
  before = resource.getrusage(resource.RUSAGE_SELF)
  time.sleep(0.5)
  after = resource.getrusage(resource.RUSAGE_SELF)
  assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.05


PROGRAM = f"""
import sys, threading, time, os, signal
import numpy as np
from runtime import cpu
from runtime.base import Call
device = cpu.open(threads=2)
lib = device.compile({SOURCE!r})
block = device.alloc(4000)
device.upload(block, np.zeros(1000, np.int32))
count = device.sequence([Call(lib["count"], [(0, 0)], 1000, 1e6)])
slow = device.sequence([Call(lib["slow"], [], 100, 1e9)] * 4)
count.run([block])
"""


def test_the_process_ends_with_a_pool_that_is_awake():
  begun = time.perf_counter()
  done = run_python(PROGRAM + "slow.run([])")
  assert done.returncode == 0, done.stderr
  assert time.perf_counter() - begun < 20


def test_control_c_leaves_a_valid_state():
  code = (
    PROGRAM
    + """
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
  while True:
    slow.run([])
except KeyboardInterrupt:
  count.run([block])
  print((device.download(block, 4000).view(np.int32) == 2).all())
"""
  )
  done = run_python(code)
  assert done.stdout.strip() == "True", done.stderr


def slow_compiler(folder, first=""):
  """A compiler that says what it is at once, and compiles for half a minute. first: a command before that."""
  fake = folder / "slowcc"
  fake.write_text(f'#!/bin/sh\ncase "$*" in *-dM*) exec cc "$@";; *) {first} exec sleep 30;; esac\n')
  fake.chmod(0o755)
  return fake


def test_control_c_while_compiling_ends_the_compiler(tmp_path):
  fake = slow_compiler(tmp_path)
  code = f"""
import os, signal, threading
from runtime import cpu
device = cpu.open(cc={str(fake)!r})
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
  device.compile("x")
except KeyboardInterrupt:
  device.close()
  print(os.listdir({str(tmp_path)!r}))
  try:
    os.waitpid(-1, os.WNOHANG)
  except ChildProcessError:
    print("no child is left")
"""
  begun = time.perf_counter()
  done = run_python(code, TMPDIR=str(tmp_path))
  assert done.stdout.split("\n")[:2] == ["['slowcc']", "no child is left"], done.stderr
  assert time.perf_counter() - begun < 10


@pytest.mark.parametrize(
  "module, name",
  [("cpu", "Sequence"), ("heap", "Memory"), ("opencl", "Sequence"), ("driver", "Graph"), ("objc", "Owned")],
)
def test_what_a_control_c_kept_from_being_made_ends_quietly(module, name, monkeypatch):
  """It may come before the first line of a constructor."""
  kind, ignored = getattr(importlib.import_module(f"runtime.{module}"), name), []
  monkeypatch.setattr(sys, "unraisablehook", ignored.append)
  made = object.__new__(kind)
  del made
  assert not ignored


def test_who_closes_the_cpu_ends_its_compilers(tmp_path):
  fake = slow_compiler(tmp_path)
  code = f"""
import os
from runtime import cpu
device = cpu.open(cc={str(fake)!r})
print(len(device.begun))
device.close()
print(device.begun)
try:
  os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
  print("no child is left")
"""
  done = run_python(code)
  assert done.stdout.split("\n")[:3] == ["1", "{}", "no child is left"], done.stderr


@pytest.mark.parametrize(
  "extent, group, most, found",
  [(1, 0, 256, (1, 1)), (0, 0, 256, (1, 1)), (300, 0, 256, (2, 256)), (300, 0, 64, (5, 64)), (5, 0, 256, (1, 8)),
   (1 << 30, 0, 256, (1 << 16, 256)), (1 << 30, 128, 256, (1 << 16, 128)), (7, 128, 256, (7, 128))],
)  # fmt: skip
def test_groups_and_threads_of_a_launch(extent, group, most, found):
  info = SimpleNamespace(group=most)
  assert geometry(Call(0, [], extent, 1.0, group), info) == found


@pytest.mark.skipif(sys.platform == "darwin", reason="sysctl says it there")
def test_data_caches_are_read_by_their_level(monkeypatch):
  rows = [
    ("1", "Data", "48K"),
    ("1", "Instruction", "32K"),
    ("2", "Unified", "2048K"),
    ("3", "Unified", "105M"),
  ]
  files = {
    f"/sys/devices/system/cpu/cpu0/cache/index{n}/{name}": text + "\n"
    for n, row in enumerate(rows)
    for name, text in zip(("level", "type", "size"), row)
  }
  monkeypatch.setattr(host, "read", lambda path: files.get(path, ""))
  assert host.cache_bytes() == (48 << 10, 2048 << 10)
  files.clear()
  assert host.cache_bytes() == (32 << 10, 512 << 10)


def test_compilers_end_with_the_process(tmp_path):
  told = tmp_path / "pid"
  fake = slow_compiler(tmp_path, f"echo $$ > {told};")
  code = f"""
import os, time
from runtime import cpu
device = cpu.open(cc={str(fake)!r})
while not os.path.exists({str(told)!r}) or not open({str(told)!r}).read():
  time.sleep(0.01)
"""
  assert not run_python(code).stderr
  with pytest.raises(ProcessLookupError):
    os.kill(int(told.read_text()), 0)
