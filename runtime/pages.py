"""The memory that the system has for the CPU: small blocks from its allocator, big ones mapped in huge pages, which
are touched ahead.

A page of 4 KB costs the system time when it is touched first: some 2 us, where a virtual machine gets it from its host
8. So a thread touches those of a big block while Python does something else; a kernel that comes before it touches its
own.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
from collections import deque
from ctypes import c_int, c_long, c_size_t, c_void_p
from typing import Any

LIBC = ctypes.CDLL(None)
LIBC.free.argtypes = [c_void_p]
LIBC.memcpy.argtypes = [c_void_p, c_void_p, c_size_t]
LIBC.memcpy.restype = None
LIBC.memset.argtypes = [c_void_p, c_int, c_size_t]
LIBC.memset.restype = None
LIBC.posix_memalign.argtypes = [c_void_p, c_size_t, c_size_t]
LIBC.mmap.argtypes = [c_void_p, c_size_t, c_int, c_int, c_int, c_long]
LIBC.mmap.restype = c_void_p
LIBC.munmap.argtypes = [c_void_p, c_size_t]
LIBC.madvise.argtypes = [c_void_p, c_size_t, c_int]
PROTECTION = mmap.PROT_READ | mmap.PROT_WRITE
IN_HUGE_PAGES = getattr(mmap, "MADV_HUGEPAGE", None)  # Linux's
HUGE_PAGE = 2 << 20
MAPPED_BYTES = 1 << 20
AHEAD_BYTES = 16 << 20  # a block of so many is touched ahead

mapped: dict[int, int] = {}  # the blocks that were mapped: address -> bytes


def take(nbytes: int) -> int:
  """The address of a new block, aligned to 64 bytes; 0 when the system has none. One of MAPPED_BYTES or more is zeros.

  A big one is mapped by itself, so that it goes back as a whole.
  """
  if nbytes < MAPPED_BYTES:
    block = c_void_p()
    failed = LIBC.posix_memalign(ctypes.byref(block), 64, nbytes)
    return 0 if failed else block.value or 0
  address = zeros(nbytes) if nbytes < HUGE_PAGE else huge_zeros(nbytes)
  if address:
    mapped[address] = nbytes
  return address


def zeros(nbytes: int) -> int:
  """The address of a new mapping, or 0."""
  start = LIBC.mmap(None, nbytes, PROTECTION, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
  return 0 if start in (None, c_void_p(-1).value) else start


def huge_zeros(nbytes: int) -> int:
  """The same in huge pages if the system has them, from the begin of one on.

  Each of rows that are far apart is in a page that has to be looked up: a product that reads 2048 x 2048 down its
  columns takes 0.8 of the time so on a Zen 3, a step of GPT-2 0.97. Touched for the first time, 2.3 GB in huge pages
  take 0.4 s in place of 2.4, but 4 to 8 on a virtual machine that has given free ones back to its host.
  """
  room = nbytes + HUGE_PAGE
  start = zeros(room)
  if not start:
    return 0
  address = -(-start // HUGE_PAGE) * HUGE_PAGE
  end = -(-(address + nbytes) // mmap.PAGESIZE) * mmap.PAGESIZE
  for first, last in ((start, address), (end, start + room)):
    if first < last:
      LIBC.munmap(first, last - first)
  if IN_HUGE_PAGES is not None:
    LIBC.madvise(address, nbytes, IN_HUGE_PAGES)
  return address


def give(address: int) -> None:
  """Back to the system."""
  nbytes = mapped.pop(address, 0)
  if nbytes:
    ahead.leave(address, nbytes)
    LIBC.munmap(address, nbytes)
  else:
    LIBC.free(address)


class Ahead:
  """The blocks whose pages are to be touched, and the thread that does it, which ends when there are none."""

  def __init__(self) -> None:
    self.change = threading.Condition()
    self.todo: deque[tuple[Any, int, int]] = deque()  # (mini_touch of pool.c, from, to)
    self.touching = 0  # the end of the block that is being touched
    self.stop = c_long()  # has the thread leave that

  def touch(self, function: Any, address: int, nbytes: int) -> None:
    """Have the first bytes of a mapped block touched soon."""
    with self.change:
      self.todo.append((function, address, address + nbytes))
      if len(self.todo) == 1 and not self.touching:
        threading.Thread(target=self.work, daemon=True, name="mini-pages").start()

  def work(self) -> None:
    with self.change:
      while self.todo:
        function, start, self.touching = self.todo.popleft()
        self.stop.value = 0
        self.change.release()
        function(start, self.touching, ctypes.byref(self.stop))
        self.change.acquire()
        self.touching = 0
        self.change.notify_all()

  def leave(self, address: int, nbytes: int) -> None:
    """No more of this block: when this returns, nobody touches it."""
    with self.change:
      self.todo = deque(block for block in self.todo if not address < block[2] <= address + nbytes)
      while address < self.touching <= address + nbytes:
        self.stop.value = 1
        self.change.wait()


ahead = Ahead()


def in_child() -> None:
  """After a fork: the thread does not exist here."""
  global ahead
  ahead = Ahead()


os.register_at_fork(after_in_child=in_child)
