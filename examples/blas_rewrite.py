"""A rewrite rule sends matrix products to a library: cblas_sgemm of OpenBLAS. It holds in its block, and nowhere else.

pip install scipy-openblas64 brings the library; without it, the one that NumPy's wheel carries is taken.
"""

import ctypes
import glob
import os
import sys

import numpy as np

import mini
from mini import Tensor, dtypes

try:
  from scipy_openblas64 import get_lib_dir

  found = glob.glob(os.path.join(get_lib_dir(), "libscipy_openblas64_*"))
except ImportError:
  found = glob.glob(os.path.join(os.path.dirname(np.__file__), "..", "numpy.libs", "libscipy_openblas64_*"))
if not found:
  sys.exit("there is no OpenBLAS: pip install scipy-openblas64")
CBLAS = ctypes.CDLL(found[0]).scipy_cblas_sgemm64_
INT, FLOAT, MEMORY = ctypes.c_int64, ctypes.c_float, ctypes.c_void_p
CBLAS.argtypes = [ctypes.c_int] * 3 + [INT] * 3 + [FLOAT, MEMORY, INT, MEMORY, INT, FLOAT, MEMORY, INT]
calls = []


@mini.wrap_as_operation(shape=lambda x, y: (x[0], y[1]), dtype=dtypes.float32)
def sgemm(x, y):
  """f32[n, k], f32[k, m]   ->   f32[n, m]"""
  (n, k), m = x.shape, y.shape[1]
  x, y, out = np.ascontiguousarray(x), np.ascontiguousarray(y), np.empty((n, m), np.float32)
  row_major, as_it_is = 101, 111
  at = [a.ctypes.data for a in (x, y, out)]
  CBLAS(row_major, as_it_is, as_it_is, n, m, k, 1.0, at[0], k, at[1], m, 0.0, at[2], m)
  calls.append((n, k, m))
  return out


def fits(m):
  return all(t.dtype == dtypes.float32 and t.ndim == 2 for t in m.values())


to_blas = mini.rule("to_blas", "matmul(x, y)", sgemm, when=fits, why="it is what BLAS is for")

if __name__ == "__main__":
  rng = np.random.default_rng(0)
  a, b = (Tensor(rng.standard_normal(s).astype(np.float32)) for s in ((300, 200), (200, 400)))
  own = (a @ b).relu().numpy()
  with mini.rewrite(to_blas):
    blas = (a @ b).relu().numpy()
  print(f"{len(calls)} product of {calls[0]} by cblas_sgemm; relu stays a kernel of ours")
  print(f"the results differ by at most {np.abs(own - blas).max():.1e} of {np.abs(own).max():.1f}")
  again = (a @ b).relu().numpy()
  print(f"behind the block: {len(calls) - 1} more calls, and the same bits as before: {(again == own).all()}")
