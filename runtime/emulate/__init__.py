"""CUDA, Metal and OpenCL on the CPU: rendered sources run as C++ with a header for each language.

This proves what a source means: its barriers, its shared memory, its exchanges between threads, on real numbers. It
says nothing of a device's compiler, nor of its speed.

  open    a shim, as those of real devices are (device.py, sequence.py)
  build   the compile step alone (source.py), for what stands in for a driver: the bytes of a shared library

A library exports, for each kernel NAME,

  void NAME__launch(const unsigned grid[3], const unsigned block[3], void **args)
      Runs it: when this returns, everything has run. grid: groups; block: threads of each, at most 1024. args[i] points
      at argument i, as cuLaunchKernel wants it: a pointer into memory, or in OpenCL also a long (X_at). Metal's
      [[buffer(i)]] is argument i; its positions ([[thread_position_in_grid]]) are no arguments.
  void NAME__unpack(char *buffer, void **args)
      Sets args[i] to where argument i lies in a buffer that holds all of them one after another, each aligned as its
      type.

and, once,

  const char *emulate_failure(void)
      What went wrong in the last launch, with the kernel's name; "" if nothing did. A launch ends at its first failure:
      a divergent barrier, a group of 0 or of too many threads and, if it was built with check=True, an access that is
      outside of all memory or misaligned, and a race. It clears the text; the text stays valid until the next call.
  void emulate_extents(long count, void **starts, const long *nbytes)
      With check=True: all memory that the next launches may touch, until it is called again. Without it, or with a
      count of 0, addresses are not checked.
  void emulate_touched(long extent, unsigned char *flags)
      With check=True, after a launch: of each byte of extent number `extent` 2 if it was written, 1 if it was only
      read, and 0 (as far as its smallest elements tell).
  unsigned long emulate_stacks(char *memory)
      Where the threads' stacks are to be: as many bytes as it returns, most of which are never touched. Libraries may
      share them. A library that is given none takes some from malloc.
  void emulate_seed(unsigned seed)
      Of the order in which groups and threads run. It is drawn by chance; equal seeds give equal orders.

A library runs one launch at a time, and so do libraries that share stacks: their caller sees to that.
"""

from runtime.emulate.device import Emulation, open
from runtime.emulate.source import build

__all__ = ["Emulation", "build", "open"]
