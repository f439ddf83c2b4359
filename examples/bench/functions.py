"""Vector math on one thread, from cache: nanoseconds and cycles for an element, what the call itself costs taken off,
and the greatest error in units in the last place that a sample shows. Float32; in NumPy float32, too."""

import json
import os

os.environ.setdefault("THREADS", "1")

import numpy as np
from common import arguments, in_turns, peer

from mini import Tensor, jit
from mini.ir.composites import numpy_erf

COUNT, FEW = 1 << 15, 1 << 4
SAMPLE = 1 << 17

sigmoid = lambda x: 1 / (1 + np.exp(-x))
softplus = lambda x: np.where(x > 20, x, np.log1p(np.exp(np.minimum(x, 20))))
gelu = lambda x: 0.5 * x * (1 + numpy_erf(x / np.sqrt(2)))
gelu_tanh = lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

# name, from, to, NumPy's or the formula, ours, PyTorch's
# fmt: off
WORK = [
  ("exp",      -87, 88,    np.exp,     Tensor.exp,      lambda t: t.exp),
  ("exp2",     -126, 127,  np.exp2,    Tensor.exp2,     lambda t: t.exp2),
  ("log",      1e-30, 1e9, np.log,     Tensor.log,      lambda t: t.log),
  ("log2",     1e-30, 1e9, np.log2,    Tensor.log2,     lambda t: t.log2),
  ("sin",      -100, 100,  np.sin,     Tensor.sin,      lambda t: t.sin),
  ("sin, large", -6e3, 6e3, np.sin,    Tensor.sin,      lambda t: t.sin),
  ("cos",      -100, 100,  np.cos,     Tensor.cos,      lambda t: t.cos),
  ("tan",      -9, 9,      np.tan,     Tensor.tan,      lambda t: t.tan),
  ("tanh",     -10, 10,    np.tanh,    Tensor.tanh,     lambda t: t.tanh),
  ("erf",      -4, 4,      numpy_erf,  Tensor.erf,      lambda t: t.erf),
  ("atan",     -50, 50,    np.arctan,  Tensor.atan,     lambda t: t.atan),
  ("asin",     -1, 1,      np.arcsin,  Tensor.asin,     lambda t: t.asin),
  ("sinh",     -20, 20,    np.sinh,    Tensor.sinh,     lambda t: t.sinh),
  ("cosh",     -20, 20,    np.cosh,    Tensor.cosh,     lambda t: t.cosh),
  ("expm1",    -10, 10,    np.expm1,   Tensor.expm1,    lambda t: t.expm1),
  ("log1p",    -0.9, 1e3,  np.log1p,   Tensor.log1p,    lambda t: t.log1p),
  ("x ** 2.5", 1e-3, 1e3,  lambda x: x**2.5, lambda x: x**2.5, lambda t: lambda x: x**2.5),
  ("sqrt",     0, 1e9,     np.sqrt,    Tensor.sqrt,     lambda t: t.sqrt),
  ("sigmoid",  -30, 30,    sigmoid,    Tensor.sigmoid,  lambda t: t.sigmoid),
  ("silu",     -30, 30,    lambda x: x * sigmoid(x), Tensor.silu, lambda t: t.nn.functional.silu),
  ("softplus", -15, 30,    softplus,   Tensor.softplus, lambda t: t.nn.functional.softplus),
  ("gelu",     -3, 10,     gelu,       Tensor.gelu,     lambda t: t.nn.functional.gelu),
  ("gelu tanh", -3, 10,    gelu_tanh,  lambda x: x.gelu(approximate="tanh"), lambda t: lambda x: t.nn.functional.gelu(x, approximate="tanh")),
  ("x % 1.5",  -100, 100,  lambda x: x % 1.5, lambda x: x % 1.5, lambda t: lambda x: x % 1.5),
]
# fmt: on


def sample(lo, hi, count):
  return np.random.default_rng(0).uniform(lo, hi, count).astype(np.float32)


def ulps(got, x, exact):
  """The greatest distance from the exact value, in units in the last place of float32."""
  with np.errstate(all="ignore"):
    want = exact(x.astype(np.float64))
    unit = np.ldexp(1.0, np.clip(np.frexp(want)[1] - 1, -126, 127) - 23)
  return float((np.abs(np.asarray(got, np.float64) - want) / unit).max())


def gigahertz():
  try:
    with open("/proc/cpuinfo") as f:
      return next(float(line.split(":")[1]) for line in f if line.startswith("cpu MHz")) / 1e3
  except (OSError, StopIteration):
    return float("nan")


if __name__ == "__main__":
  args, torch, rows = arguments(__doc__), peer("torch"), []
  if torch:
    torch.set_num_threads(1)
  clock = gigahertz()
  for name, lo, hi, exact, ours, theirs in WORK:
    libraries = {"mini": (jit(ours), Tensor, lambda y: y.numpy()), "numpy": (exact, lambda x: x, lambda y: y)}
    if torch:
      libraries["torch"] = theirs(torch), torch.from_numpy, lambda y: y.numpy()
    row = {"case": name}
    for library, (f, make, back) in libraries.items():
      x = sample(lo, hi, SAMPLE)
      row[library] = {"ulp": ulps(back(f(make(x))), x, exact)}
    inputs = {
      n: {lib: make(sample(lo, hi, n)) for lib, (_, make, _) in libraries.items()} for n in (FEW, COUNT)
    }
    calls = {
      (lib, n): lambda f=f, x=x[lib]: f(x) for n, x in inputs.items() for lib, (f, _, _) in libraries.items()
    }
    times = in_turns(calls, args.seconds / 10)
    for library in libraries:
      ns = (times[library, COUNT].best - times[library, FEW].best) / (COUNT - FEW) * 1e9
      row[library] |= {"ns": ns, "cycles": ns * clock}
    rows.append(row)
    if not args.json:
      if len(rows) == 1:
        print(f"{'ns, cycles, ulp':12}" + "".join(f"{lib:>26}" for lib in libraries))
      parts = [f"{r['ns']:.2f} {r['cycles']:6.2f} {r['ulp']:8.3g}" for r in map(row.get, libraries)]
      print(f"{name:12}" + "".join(f"{p:>26}" for p in parts), flush=True)
  if args.json:
    print(json.dumps({"rows": rows}))
