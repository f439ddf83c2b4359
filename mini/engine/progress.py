"""How far compilers are, on a terminal: a first step of a large network waits for them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE, EVERY = 2.0, 0.5  # seconds after which something is said, and then again


@contextmanager
def compiling(kernels: int, done: Callable[[], int]) -> Iterator[None]:
  """Says `compiling 37/120 kernels, 12 s` until the block ends. done: how many there are by then."""
  if not kernels or not sys.stderr or sys.stderr.closed or not sys.stderr.isatty():
    yield
    return
  ended = threading.Event()
  thread = threading.Thread(target=tell, args=(kernels, done, ended), daemon=True)
  thread.start()
  try:
    yield
  finally:
    ended.set()
    thread.join()


def tell(kernels: int, done: Callable[[], int], ended: threading.Event) -> None:
  begun, wait, line = time.monotonic(), PATIENCE, ""
  while not ended.wait(wait):
    line = f"compiling {done()}/{kernels} kernels, {time.monotonic() - begun:.0f} s"
    sys.stderr.write(f"\r{line}")
    sys.stderr.flush()
    wait = EVERY
  if line:  # leaves nothing behind
    sys.stderr.write(f"\r{' ' * len(line)}\r")
    sys.stderr.flush()
