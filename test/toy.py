"""A device for tests that needs no compiler: its language is the text of kernels, and it runs them in NumPy.

It has queues. How the calls of a sequence are run is said by `how`: one after another, in a thread for each queue that
waits for nothing but what it has to, and takes its time, or in an order of the test's own. Nothing has run when `run`
returns; memory is full of NaNs at first.
"""

from __future__ import annotations

import random
import threading
import time
from math import prod
from types import SimpleNamespace

import numpy as np

from mini.engine.device import KINDS, Code, Device
from mini.ir.interp import run_kernel
from mini.ir.kernel import directions
from mini.text.parser import parse_file
from mini.text.printer import text
from mini.types import dtypes, from_storage, to_storage
from runtime.base import Info

QUEUES = 4


class Toy:
  """An open device. `launched` are the sequences that ran, with their memory."""

  def __init__(self, index, queues=QUEUES):
    types = frozenset(d.name for d in dtypes.all)
    self.info = Info(
      "TOY", "kernels in NumPy", 4, 16, 1, 1 << 15, 1 << 20, 1 << 18, 1 << 30, types, queues=queues
    )
    self.how = in_order
    self.running = None
    self.lock = threading.RLock()
    self.failed = []
    self.launched = []
    self.uploads = self.downloads = 0

  def alloc(self, nbytes):
    return np.full(nbytes, 255, np.uint8)

  def upload(self, handle, data, offset=0):
    self.wait()
    self.uploads += 1
    data = (
      np.frombuffer(data, np.uint8) if not isinstance(data, np.ndarray) else data.reshape(-1).view(np.uint8)
    )
    handle[offset : offset + data.nbytes] = data

  def download(self, handle, nbytes, offset=0):
    self.wait()
    self.downloads += 1
    return handle[offset : offset + nbytes].copy()

  def copy(self, target, source, nbytes):
    self.wait()
    target[:nbytes] = source[:nbytes]

  def compile(self, source):
    return self.compile_all([source])[0]

  def compile_all(self, sources):
    return [{k.arg.what: k for k in parse_file(s)} for s in sources]

  def sequence(self, calls):
    return Sequence(self, list(calls))

  def wait(self):
    with self.lock:
      if self.running is not None:
        self.running.join()
        self.running = None
      if self.failed:
        raise self.failed.pop()

  def free(self, handle):
    pass


class Sequence:
  def __init__(self, shim, calls):
    self.shim, self.calls = shim, calls

  def run(self, handles, done=None):
    handles = list(handles)
    with self.shim.lock:
      self.shim.wait()
      self.shim.launched.append((self.calls, handles))
      self.shim.running = threading.Thread(target=self.work, args=(self.shim.how, handles))
      self.shim.running.start()
    (done if done is not None else []).append(0)
    return 0

  def work(self, how, handles):
    try:
      how(self.calls, handles)
    except Exception as e:  # noqa: BLE001 (raised by who waits)
      self.shim.failed.append(e)

  def error(self):
    self.shim.wait()
    return 0

  def timed(self, handles):
    self.run(handles)
    return self.error(), [1e-6] * len(self.calls)


# ---------------------------------------------------------------- running the calls of a sequence


def memory_of(call, handles):
  """(parameter, direction, its bytes) of a call."""
  found = []
  for (slot, offset), (p, d) in zip(call.args, directions(call.function).items()):
    nbytes = prod(p.arg[1]) * p.dtype.itemsize
    found.append((p, d, handles[slot][offset : offset + nbytes]))
  return found


def run_call(call, handles):
  memory = memory_of(call, handles)
  data = {p.arg[0]: from_storage(raw.view(p.dtype.storage), p.dtype) for p, _, raw in memory}
  run_kernel(call.function, data)
  for p, d, raw in memory:
    if d != "in" and data[p.arg[0]].base is not raw:
      raw[:] = np.ascontiguousarray(to_storage(data[p.arg[0]], p.dtype)).reshape(-1).view(np.uint8)


def in_order(calls, handles):
  for call in calls:
    run_call(call, handles)


def in_queues(seed, most_seconds=5e-4):
  """A thread for each queue; calls wait for what stands before them in their queue, and for what they say."""

  def how(calls, handles):
    done = [threading.Event() for _ in calls]
    failed = []

    def queue(q, rng):
      for n, call in enumerate(calls):
        if call.queue != q:
          continue
        for w in call.waits:
          done[w].wait()
        time.sleep(rng.random() * most_seconds)
        try:
          run_call(call, handles)
        except Exception as e:  # noqa: BLE001 (raised below)
          failed.append(e)
        done[n].set()

    threads = [threading.Thread(target=queue, args=(q, random.Random(f"{seed} {q}"))) for q in range(QUEUES)]
    for t in threads:
      t.start()
    for t in threads:
      t.join()
    if failed:
      raise failed[0]

  return how


def before(calls):
  """For each call, as bits, the calls that have run when it begins."""
  found, last = [], {}
  for n, call in enumerate(calls):
    bits = 0
    for d in (*call.waits, *([last[call.queue]] if call.queue in last else ())):
      bits |= found[d] | 1 << d
    found.append(bits)
    last[call.queue] = n
  return found


def as_early_as_allowed(late):
  """One after another, but call number `late` as soon as all has run that it has to wait for."""

  def how(calls, handles):
    first = before(calls)[late]
    order = [n for n in range(len(calls)) if first >> n & 1]
    order += [late, *(n for n in range(len(calls)) if not first >> n & 1 and n != late)]
    for n in order:
      run_call(calls[n], handles)

  return how


def races(calls, handles):
  """Pairs of calls that touch the same bytes, one of them writing, with nothing that says which is first."""
  touched = []
  for call in calls:
    spans = []
    for _, d, raw in memory_of(call, handles):
      start = raw.__array_interface__["data"][0]
      spans.append((start, start + raw.nbytes, d != "in"))
    touched.append(spans)
  first = before(calls)
  return [
    (m, n)
    for n in range(len(calls))
    for m in range(n)
    if not first[n] >> m & 1
    and any(a < d and c < b and (x or y) for a, b, x in touched[m] for c, d, y in touched[n])
  ]


def opened(index=0):
  """The device TOY, or TOY:1, ...; registered when it is first asked for."""
  if "TOY" not in KINDS:
    Device.register("TOY", Toy, lambda kernel, info: SimpleNamespace(prelude=""))
  device = Device[f"TOY:{index}"]
  device.render = printed
  return device


def printed(kernel):
  return Code("KERNEL", text(kernel).replace(f"kernel {kernel.arg.what}(", "kernel KERNEL(", 1), (), "")
