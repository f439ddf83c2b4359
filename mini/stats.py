"""What mini has done: counters that are always on, of this process and all of its threads.

>>> from mini import Tensor, stats
>>> stats.reset()
>>> Tensor([1.0, 2.0, 3.0]).sum().item()
6.0
>>> stats["kernels"], stats.kernels, dict(stats)["kernels"]
(1, 1, 1)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import ref

# fmt: off
COUNTERS = {
  "kernels":          "kernels launched",
  "schedules":        "graphs scheduled",
  "compiles":         "sources compiled by a compiler",
  "cache_hits":       "programs that were found in memory instead of scheduled and compiled",
  "disk_hits":        "sources whose compiled code was found on disk",
  "bytes_allocated":  "got from the system; what the free list gives out again does not count",
  "bytes_live":       "in use now",
  "bytes_peak":       "the most that was in use at once, since the last reset",
  "bytes_uploaded":   "copied to the memory of a device; the CPU's is the host's own",
  "bytes_downloaded": "copied from the memory of a device",
  "copies":           "values that went from one device to another",
}
# fmt: on


class Stats(dict[str, int]):
  """The counters by name, as items and as attributes.

  No lock: CPython does not switch threads within `stats[name] += n` on a dict, and an object that dies may count
  anywhere. So what is looked up is the dict's own but for `bytes_live`, which is reckoned when it is asked for:
  `bytes_held`, less what has died since.
  """

  def __init__(self) -> None:
    super().__init__(dict.fromkeys([*COUNTERS, "bytes_held"], 0))
    del self["bytes_live"]
    self.heaps: list[ref[Any]] = []  # which count what has died when they are asked to

  def __missing__(self, name: str) -> int:
    if name != "bytes_live":
      raise KeyError(name)
    for heap in [h for known in self.heaps if (h := known()) is not None]:
      heap.settle()
    return self["bytes_held"]

  def __contains__(self, name: object) -> bool:
    return name in COUNTERS

  def __iter__(self) -> Iterator[str]:
    return iter(COUNTERS)

  def keys(self) -> Any:
    return COUNTERS.keys()

  def values(self) -> Any:
    return [self[name] for name in COUNTERS]

  def items(self) -> Any:
    return [(name, self[name]) for name in COUNTERS]

  def __getattr__(self, name: str) -> int:
    try:
      return self[name]
    except KeyError:
      raise AttributeError(f"stats has no counter {name!r}; there are {', '.join(COUNTERS)}") from None

  def count(self, **more: int) -> None:
    """Adds to counters: `stats.count(kernels=12)`."""
    for name, n in more.items():
      self[name] += n

  def reset(self) -> None:
    """Sets every counter to 0, but `bytes_live` stays what it is and `bytes_peak` starts from there."""
    for name in COUNTERS:
      if name not in ("bytes_live", "bytes_peak"):
        self[name] = 0
    self["bytes_peak"] = self["bytes_live"]

  def __str__(self) -> str:
    width = max(map(len, COUNTERS))
    return "\n".join(f"{name:{width}}  {self[name]:>16,}  {meaning}" for name, meaning in COUNTERS.items())


stats = Stats()
