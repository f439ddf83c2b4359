"""What the machine under this process is: processors and memory that it may use, caches, kind of processor."""

from __future__ import annotations

import os
import resource
import sys


def available_threads() -> int:
  """Processors that this process may use: its affinity mask, and its control group's quota, rounded up."""
  count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
  for text in _control_group("cpu", "cpu.max"):
    quota, _, period = text.partition(" ")
    if quota.isdigit():
      count = min(count, -(-int(quota) // int(period)))
  quotas, periods = _control_group("cpu", "cpu.cfs_quota_us"), _control_group("cpu", "cpu.cfs_period_us")
  for quota, period in zip(quotas, periods):
    if quota.isdigit() and period.isdigit():  # without a limit the quota is -1
      count = min(count, -(-int(quota) // int(period)))
  return max(count, 1)


def available_memory() -> int:
  """Bytes of memory that this process may hold: the machine's, or its control group's limit."""
  limits = [*_control_group("memory", "memory.max"), *_control_group("memory", "memory.limit_in_bytes")]
  physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
  return min([physical, *(int(text) for text in limits if text.isdigit())])


def _control_group(controller: str, name: str) -> list[str]:
  """The texts of a control file, from this process's group up to the root (both versions of control groups)."""
  texts = []
  for line in read("/proc/self/cgroup").splitlines():
    _, controllers, path = line.split(":", 2)
    if controllers and controller not in controllers.split(","):
      continue
    parts = ["/sys/fs/cgroup", *([controllers] if controllers else []), *(p for p in path.split("/") if p)]
    texts += [read("/".join([*parts[:n], name])).strip() for n in range(len(parts), 0, -1)]
  return [t for t in texts if t]


def cache_bytes() -> tuple[int, int]:
  """The data cache of one core: its first and its second level."""
  found = {"1": 32 << 10, "2": 512 << 10}
  for n in range(4):
    at = f"/sys/devices/system/cpu/cpu0/cache/index{n}/"
    level, kind, size = (read(at + name).strip() for name in ("level", "type", "size"))
    if kind in ("Data", "Unified") and level in found and size.endswith("K"):
      found[level] = int(size[:-1]) << 10
  if sys.platform == "darwin":
    found = {"1": sysctl("hw.l1dcachesize") or found["1"], "2": sysctl("hw.l2cachesize") or found["2"]}
  return found["1"], found["2"]


def stack_bytes() -> int:
  """What a kernel's stages may take of a thread's stack: half of it. Threads have as much as the system's limit says;
  without one, glibc's have 2 MB."""
  limit = resource.getrlimit(resource.RLIMIT_STACK)[0]
  return (2 << 20 if limit == resource.RLIM_INFINITY else limit) // 2


def processor() -> str:
  """Text that is equal on machines for which `-march=native` means the same."""
  x86 = ["vendor_id", "cpu family", "model", "stepping", "flags"]
  arm = ["CPU implementer", "CPU variant", "CPU part", "Features"]
  first = read("/proc/cpuinfo", 8192).split("\n\n")[0]  # of many alike
  lines = [line for line in first.splitlines() if line.partition(":")[0].strip() in x86 + arm]
  if sys.platform == "darwin":
    lines = [f"cpu family {sysctl('hw.cpufamily')}"]
  return "\n".join([os.uname().sysname, os.uname().machine, *lines])


def sysctl(name: str) -> int:
  """A number that macOS knows; 0 where there is none."""
  import ctypes

  value, nbytes = ctypes.c_int64(), ctypes.c_size_t(8)
  failed = ctypes.CDLL(None).sysctlbyname(name.encode(), ctypes.byref(value), ctypes.byref(nbytes), None, 0)
  return 0 if failed else value.value


def read(path: str, nbytes: int = -1) -> str:
  """The file's text, "" where it cannot be read."""
  try:
    with open(path, "rb") as f:
      return f.read(nbytes).decode(errors="replace")
  except OSError:
    return ""
