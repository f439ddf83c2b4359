"""A device of one's own, in fewer than 60 lines of code: TOY. Its kernels are C, its memory is arrays of bytes.

  LANGUAGE   how kernels are spelled: a table, here C's with what differs put in front
  ToyShim    what is asked of a device, in the order of use; runtime/base.py says it in full
  Launches   kernels in a row, with other memory on each run

Run this file to test every operation on the device against the interpreter. Import it to have the device in a program:
Tensor.ones(3, device="TOY").
"""

import ctypes
import subprocess
import sys
import tempfile
import time
from dataclasses import replace

import numpy as np

from mini.__main__ import main
from mini.engine.device import Device
from mini.render.c import C
from runtime.base import DeviceError, Info

# A row is an operation, the types for which it is, and the spelling; the first that matches counts. `python -m mini
# ops` lists the operations. mini/render/spelling.py says what may stand in a row, and has those that all languages
# share.
ROWS = (("sqrt", "f64", "__builtin_sqrt({0})"), *C(1).rows)
# A kernel of C(1), which is C without vectors, gets an array of addresses and a part of the parallel range. Here each
# address is a parameter, and one thread does it all.
# fmt: off
LANGUAGE = replace(
  C(1), name="Toy C", rows=ROWS, head="void {name}({params}) {{\n", param="{const}{T} *{name}", between=", ",
  par="for (long {i} = 0; {i} < {n}; {i}++) {{", error="long long *err",
)
COMPILE = ["cc", "-O1", "-fwrapv", "-fno-strict-aliasing", "-fPIC", "-shared", "-x", "c", "-", "-lm", "-o"]


class ToyShim:
  """An open device. What is asked of it has happened when the method returns: there is nothing to wait for. Memory goes
  back when its handle dies."""

  # What recipes are written for: one float32 at a time in 16 registers, one thread. And what the device can hold.
  info = Info(name="TOY", target="C", lanes=1, registers=16, threads=1, l1_bytes=32 << 10, l2_bytes=512 << 10,
              stack_bytes=64 << 10, memory_bytes=1 << 30, dtypes=frozenset(d.name for d in LANGUAGE.types))
  # fmt: on

  def alloc(self, nbytes):  # a handle: whatever the methods below know memory by
    return np.empty(nbytes, np.uint8)

  def upload(self, handle, data, offset=0):
    data = np.frombuffer(data, np.uint8)
    handle[offset : offset + len(data)] = data

  def compile_all(self, sources):
    return [self.compile(source) for source in sources]

  def compile(self, source):  # kernels by name
    with tempfile.NamedTemporaryFile(suffix=".so") as f:
      done = subprocess.run([*COMPILE, f.name], input=source, text=True, capture_output=True, check=False)
      if done.returncode:
        raise DeviceError(f"TOY cannot compile a kernel:\n{done.stderr}")
      return ctypes.CDLL(f.name)

  def sequence(self, calls):
    return Launches(calls)

  def wait(self):
    pass

  def copy(self, target, source, nbytes):
    target[:nbytes] = source[:nbytes]

  def download(self, handle, nbytes, offset=0):
    return handle[offset : offset + nbytes].copy()


class Launches(list):
  """Calls in order. A call has a function and for each parameter (slot, byte offset): memory is handles[slot], and slot
  -1 is the error word, which a kernel sets where an index is out of bounds. After a Ctrl-C some may have run: the
  devices of runtime/ launch all of them by one call into C."""

  def timed(self, handles):  # the error word, the seconds of each call
    word, seconds = np.zeros(1, np.int64), []
    addresses = [memory.ctypes.data for memory in (*handles, word)]
    for call in self:
      start = time.perf_counter()
      call.function(*(ctypes.c_void_p(addresses[slot] + offset) for slot, offset in call.args))
      seconds.append(time.perf_counter() - start)
    return int(word[0]), seconds

  def run(self, handles, done=None):
    word, _ = self.timed(handles)
    (done if done is not None else []).append(word)  # it tells that all has run
    return word

  def error(self):  # of the runs that could not say yet
    return 0


Device.register("TOY", open=lambda index: ToyShim(), language=LANGUAGE)

if __name__ == "__main__":
  sys.exit(main(["test-device", "TOY", *sys.argv[1:]]))
