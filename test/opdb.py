"""PyTorch's own database of its operators and modules, as a judge of ours: the same samples are given to the operator of the
same name here; values, types, shapes, gradients and errors have to be PyTorch's.

    python test/opdb.py [--failures] [NAME...]     # what passes, what fails and why, what is missing
    python test/opdb.py --accept [NAME...]         # what passes by now is struck from the known failures

An operator is looked up under PyTorch's name: a method of Tensor, or a function of mini, of mini.nn.functional, linalg, fft,
special, signal... What is no business of this library is EXCLUDED, with the reason. The failures that are known stand in
fixtures/opdb.txt, which only gets shorter. test/test_opdb.py has the tests.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import itertools
import operator
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import mini
from mini import Context, MiniError, Tensor, dtypes

try:
  import torch

  with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.common_modules import module_db
    from torch.testing._internal.opinfo.core import SampleInput
  WHY_NOT = ""
except ImportError as e:
  torch, op_db, module_db, WHY_NOT = None, [], [], f"PyTorch's database of operators: {e}"

# fmt: off
EXCLUDED = {  # a name, in which a star is anything: why it is not asked for
  "sparse.*": "sparse tensors", "to_sparse": "sparse tensors",
  "jiterator_*": "CUDA's own", "bmm.triton_optimized": "CUDA's own",
  "torch.*": "not public: torch.ops, torch._",
  "_*": "not public", "native_*": "not public: what layer_norm, dropout... are made of",
  "as_strided*": "strides of memory: a tensor here has values in row-major order", "empty_strided": "strides of memory",
  "new_empty_strided": "strides of memory", "empty_permuted": "strides of memory",
  "resize_*": "changes the memory of a tensor under its views",
  "max_pool2d_with_indices_backward": "not public: a backward function",
  "grid_sampler_*": "not public: grid_sample's", "hash_tensor": "new, undocumented", "slice": "not public: x[a:b]",
  "alias_copy": "not public: clone's", "masked.*": "torch.masked: a prototype",
  "linalg.ldl_*": "LAPACK's packed form of a factor that only its own solution reads", "chalf": "complex of halves",
  "nn.functional.multi_head_attention_forward": "nn.MultiheadAttention is the same, and has the parameters",
  "nn.functional.linear_cross_entropy*": "new in PyTorch, a prototype",
}
IN_PLACE = {"cauchy", "exponential", "geometric", "log_normal", "normal.in_place", "uniform"}
DRAWN = {"cauchy", "exponential", "geometric", "log_normal", "normal", "uniform", "randn", "randn_like", "rand_like",
         "randint", "randint_like", "multinomial", "bernoulli", "empty", "empty_like", "new_empty", "nn.functional.rrelu",
         "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.alpha_dropout",
         "nn.functional.feature_alpha_dropout", "svd_lowrank", "pca_lowrank",
         "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d"}  # of these, types and shapes
ORDERED = {"argsort", "kthvalue", "mode", "sort", "topk"}  # of equal elements, PyTorch may name any
ORDERED = {"argsort", "kthvalue", "mode", "sort", "topk"}  # where elements are equal, PyTorch names any of them
DIFFERENT = {  # on purpose: in which way, and why
  "rsub": ("accepted", "a number may be what is subtracted from"),
  "cov": ("accepted", "whether weights are negative is not looked at"),
  **dict.fromkeys(("special.bessel_j0", "special.bessel_y1"), ("value", "PyTorch's float64 ones are off by 1e-6")),
  **dict.fromkeys(("cholesky_inverse", "cholesky_solve"), ("gradient", "the triangle that is not read has none")),
  **dict.fromkeys(("atan2", "fmax", "fmin", "maximum", "minimum", "logical_and", "logical_or", "logical_xor",
                   "heaviside", "hypot", "nextafter", "gcd", "lcm", "igamma", "igammac", "ldexp", "isclose"), ("accepted", "a number is taken for the second tensor")),
  **dict.fromkeys(("nn.functional.adaptive_avg_pool2d", "nn.functional.adaptive_avg_pool3d",
                   "nn.functional.adaptive_max_pool2d", "nn.functional.adaptive_max_pool3d"),
                  ("accepted", "axes before the last two or three may be none")),
  **dict.fromkeys(("nn.functional.max_pool1d", "nn.functional.max_pool3d"), ("accepted", "of no channels the result is empty")),
  **dict.fromkeys(("nn.functional.max_unpool1d", "nn.functional.max_unpool2d", "nn.functional.max_unpool3d"),
                  ("gradient", "of values at one place only the one that stays gets a gradient")),
  "nn.HuberLoss": ("accepted", "a delta that is no number is refused when the loss is called"),
  **dict.fromkeys(("nn.NLLLoss", "nn.RNN", "nn.GRU", "nn.LSTM"), ("accepted", "types of floats promote")),
  "nn.CTCLoss": ("gradient", "PyTorch's holds behind log_softmax alone"),
  "nn.MaxPool2d": ("accepted", "of no channels the result is empty"),
  "nn.CircularPad1d": ("accepted", "axes before the last are as many as there are"),
  "nn.functional.ctc_loss": ("gradient", "PyTorch's holds behind log_softmax alone"),
  "einsum": ("dtype", "the type of the operands, also where nothing is multiplied"),
  "fill": ("gradient", "what is constant requires no gradient"),
  **dict.fromkeys(("normal.in_place", "uniform"), ("refused", "of complex numbers there is randn")),
  "matrix_exp": ("value", "float32: the error is relative to the largest element, as of PyTorch's, by another series"),
  **dict.fromkeys(("linalg.eig", "linalg.eigvals"), ("value", "eigenvalues are in no order")),
  "arange": ("shape", "of uint8 and a negative end, which PyTorch wraps"),
  "logsumexp": ("gradient", "of one complex number it is 1"),
  "renorm": ("gradient", "where the largest is 0 it is no NaN"),
  "nn.functional.local_response_norm": ("dtype", "of integers without elements floats, as of others"),
  "logaddexp": ("accepted refused", "a number is taken for the second tensor; not of complex numbers"),
  **dict.fromkeys(("cholesky_inverse", "cholesky_solve"), ("gradient", "of the triangle that counts alone")),
  "linalg.cross": ("accepted", "axes in front repeat, as of other operations"),
  **dict.fromkeys(("logcumsumexp", "nn.functional.rms_norm"), ("refused", "not of complex numbers")),
  **dict.fromkeys(("nn.functional.interpolate.bilinear", "nn.functional.interpolate.bicubic", "nn.functional.upsample_bilinear"),
                  ("refused", "images of bytes are made floats, whose rounding is said, first")),
  "masked_fill": ("accepted", "a value of several elements repeats to x's shape"),
}
DROPPED = {"layout", "memory_format", "pin_memory", "non_blocking"}  # options that say how memory lies
TOLERANCE = {"float64": 1e-7, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2, "complex64": 4e-5, "complex128": 1e-7}
# fmt: on


@dataclass(frozen=True)
class Failure:
  """How an operator differs from PyTorch's: the kind (refused, shape, dtype, value, gradient; of what PyTorch
  refuses: accepted, or with another class of error), and more."""

  kind: str
  what: str


def full_name(op: Any) -> str:
  return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


def excluded(name: str) -> str:
  """Why an operator is not asked for; empty if it is."""
  return next((why for pattern, why in EXCLUDED.items() if fits(pattern, name) and name not in FUNCTIONS), "")


def fits(pattern: str, name: str) -> bool:
  start, star, end = pattern.partition("*")
  return name == pattern or bool(star) and name.startswith(start) and name.endswith(end)


def ours(op: Any) -> Callable[..., Any] | None:
  """The function of an operator's name here."""
  name = op.name
  if found := FUNCTIONS.get(full_name(op)) or FUNCTIONS.get(name):
    return found
  if full_name(op) in IN_PLACE:
    return called(f"{name}_") if hasattr(Tensor, f"{name}_") else None
  *path, last = name.split(".")
  if path:
    try:
      return getattr(import_module(".".join(["mini", *path])), last, None)
    except ImportError:
      return getattr(getattr(import_module("mini"), path[0], None), last, None)
  return called(last) if hasattr(Tensor, last) else getattr(import_module("mini"), last, None)


def called(name: str) -> Callable[..., Any]:
  """A function that calls the method of its first argument, of whatever class that is; of a class's own, the class's."""

  def call(*args: Any, **options: Any) -> Any:
    method = getattr(args[0] if args and isinstance(args[0], Tensor) else Tensor, name)
    if name.startswith("__") and not isinstance(args[0], Tensor):
      raise TypeError(f"{name} is a method of tensors")
    is_static = isinstance(inspect.getattr_static(Tensor, name), (staticmethod, classmethod))
    if is_static or not (args and isinstance(args[0], Tensor)):
      return method(*args, **options)
    return method(*args[1:], **options)

  return call


# fmt: off
FUNCTIONS: dict[str, Callable[..., Any]] = {  # what is an operator, or not found by its name
  "__getitem__": operator.getitem, "__rdiv__": called("__rtruediv__"), "einsum": lambda tensors, formula: Tensor.einsum(formula, *tensors),
  "H": lambda x: x.H, "T": lambda x: x.T, "mH": lambda x: x.mH, "mT": lambda x: x.mT,
  "real": lambda x: x.real, "imag": lambda x: x.imag,
  "svd_lowrank": lambda a, b, **options: (a @ b.mT).svd_lowrank(**options),
  "pca_lowrank": lambda a, b, **options: (a @ b.mT).pca_lowrank(**options),
  "special.polygamma": lambda x, n: mini.special.polygamma(n, x),
  "linalg.pinv.singular": lambda a, b: mini.linalg.pinv(a @ b.mT),
  "linalg.lstsq.grad_oriented": lambda a, b, driver: mini.linalg.lstsq(a, b, driver=driver)[:2],
  "nn.functional.embedding": lambda weight, index, **options: mini.nn.functional.embedding(index, weight, **options),
  "nn.functional.embedding_bag": lambda weight, index, *rest, **options: mini.nn.functional.embedding_bag(index, weight, *rest, **options),
  "where": lambda x, condition, other: Tensor.where(condition, x, other),
  "cfloat": lambda x, **_: x.cast(dtypes.cfloat), "cdouble": lambda x, **_: x.cast(dtypes.cdouble),
}
# fmt: on


# ---------------------------------------------------------------- what PyTorch has, as what is here


def translated(x: Any, leaves: list[tuple[Any, Tensor]] | None = None) -> Any:
  """Tensors, types and devices in any structure; the tensors that ask for gradients are noted in `leaves`."""
  if isinstance(x, torch.Tensor):
    mine = next((m for known, m in leaves or () if known is x), None)
    mine = tensor(x) if mine is None else mine
    if leaves is None or not x.requires_grad:
      return mine
    if not mine.requires_grad:
      leaves.append((x, mine.requires_grad_()))
    return mine.clone()  # which may be written on
  if isinstance(x, torch.dtype):
    return getattr(dtypes, str(x).removeprefix("torch."))
  if isinstance(x, (torch.device, torch.Generator)):
    return None
  if isinstance(x, dict):
    return {k: translated(v, leaves) for k, v in x.items() if k not in DROPPED}
  if isinstance(x, (torch.Size, list, tuple)):
    kind = tuple if isinstance(x, tuple) else list
    return kind(translated(v, leaves) for v in x)
  if isinstance(x, torch.nn.Module) and not x.state_dict():
    return getattr(mini.nn, type(x).__name__)()
  if inspect.isfunction(x) and x.__module__ == "torch.nn.functional":
    return getattr(mini.nn.functional, x.__name__)
  return None if x == "cpu" else x


def tensor(x: Any) -> Tensor:
  x = x.detach().resolve_conj().resolve_neg()
  if x.dtype is torch.bfloat16:
    return Tensor(x.float().numpy()).cast(dtypes.bfloat16)
  return Tensor(np.array(x.numpy()))


def copied(x: Any) -> Any:
  """Tensors that an operator may write on."""
  if isinstance(x, torch.Tensor):
    return x.clone()
  if isinstance(x, dict):
    return {k: copied(v) for k, v in x.items()}
  if type(x) in (list, tuple):
    return type(x)(map(copied, x))
  return x


def flat(x: Any) -> list[Any]:
  if isinstance(x, (list, tuple)):
    return [y for part in x for y in flat(part)]
  return [x]


# ---------------------------------------------------------------- comparisons


def array(x: Any) -> np.ndarray:
  if isinstance(x, Tensor):
    return x.numpy()
  if isinstance(x, torch.Tensor):
    x = x.detach().resolve_conj().resolve_neg()
    return (x.float() if x.dtype is torch.bfloat16 else x).numpy(force=True)
  return np.asarray(x)


def differs(got: Any, want: Any, drawn: bool = False, gradient: bool = False) -> Failure | None:
  """How a result, tensor by tensor, is not what PyTorch gives."""
  mine, theirs = flat(got), flat(want)
  if len(mine) != len(theirs):
    return Failure("shape", f"{len(mine)} results, not {len(theirs)}")
  for a, b in zip(mine, theirs):
    if isinstance(b, torch.dtype):
      if a is not translated(b):
        return Failure("value", f"{a}, not {b}")
      continue
    if isinstance(b, torch.Tensor) != isinstance(a, Tensor):
      return Failure("value", f"a {type(a).__name__}, not {type(b).__name__}")
    if isinstance(b, torch.Tensor):
      if a.shape != tuple(b.shape):
        return Failure("shape", f"{a.shape}, not {tuple(b.shape)}")
      kind = str(b.dtype).removeprefix("torch.")
      if a.dtype.name != kind:
        return Failure("dtype", f"{a.dtype.name}, not {kind}")
    kind = a.dtype.name if isinstance(a, Tensor) else "float64"
    if not drawn and (found := apart(array(a), array(b), TOLERANCE.get(kind, 0) * (10 if gradient else 1))):
      return Failure("value", found)
  return None


def apart(a: np.ndarray, b: np.ndarray, tolerance: float) -> str:
  if b.dtype.kind not in "fc":
    return "" if np.array_equal(a, b) else f"{brief(a)}, not {brief(b)}"
  with np.errstate(all="ignore"):
    near = np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
  return "" if near else f"{brief(a)}, not {brief(b)}"


def brief(a: np.ndarray) -> str:
  return np.array2string(a.ravel()[:4], precision=5, threshold=4) + f" of {a.shape}"


# ---------------------------------------------------------------- one operator


MOST_SAMPLES = 12  # of a type
LARGEST = 20000  # cells in the tensors of a sample
KINDS = ("float64", "float32", "int64", "complex64", "bool", "bfloat16", "uint8")


def kinds(op: Any) -> Iterator[Any]:
  """The types in which an operator is tried."""
  taken = op.supported_dtypes("cpu")
  return (d for d in (getattr(torch, k) for k in KINDS) if d in taken)


def tensors(x: Any) -> Iterator[Any]:
  """Those in a structure, or a sample."""
  if hasattr(x, "kwargs"):
    x = [x.input, x.args, x.kwargs]
  if isinstance(x, (list, tuple, dict)):
    for part in x.values() if isinstance(x, dict) else x:
      yield from tensors(part)
  elif isinstance(x, torch.Tensor):
    yield x


def chosen(samples: Any, most: int) -> list[Any]:
  """Some of what a generator gives, from its start to its end."""
  found = [s for s in itertools.islice(samples, 200) if sum(x.numel() for x in tensors(s)) <= LARGEST]
  step = max(1, len(found) / most)
  return [found[int(i * step)] for i in range(min(most, len(found)))]


def tried(op: Any) -> list[Failure]:
  """The failures of an operator: of each kind the first."""
  fn = ours(op)
  assert fn is not None
  found: dict[str, Failure] = {}
  for dtype in kinds(op):
    graded = (dtype.is_floating_point or dtype.is_complex) and dtype.itemsize == 8
    graded = graded and op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    for sample in chosen(op.sample_inputs("cpu", dtype, requires_grad=graded), MOST_SAMPLES):
      if f := tried_sample(op, fn, sample, graded):
        short = str(dtype).removeprefix("torch.")
        found.setdefault(f.kind, Failure(f.kind, f"{short}: {f.what}\n      {said(sample)}"))
  for e in op.error_inputs("cpu") if op.error_inputs_func is not None else ():
    if f := tried_error(op, fn, e):
      found.setdefault(f.kind, Failure(f.kind, f"{f.what}\n      {said(e.sample_input)}"))
  return [f for f in found.values() if f.kind not in DIFFERENT.get(full_name(op), ("", ""))[0].split()]


def said(sample: Any) -> str:
  text = " ".join(sample.summary().split()).replace(', device="cpu"', "").replace("size=torch.Size", "")
  return text.replace(", broadcasts_input=False, name=''", "")[:300]


def attempt(f: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, Exception | None]:
  """What a function gives, computed; or the error that it raises."""
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    try:
      found = f(*args, **options)
      for x in flat(found):
        if isinstance(x, Tensor):
          x.realize()
    except Exception as e:  # noqa: BLE001  whatever it is: that is what is judged
      return None, e
    return found, None


def both(op: Any, fn: Callable[..., Any], sample: Any, leaves: list[tuple[Any, Tensor]] | None = None) -> Any:
  """(what PyTorch gives, its error), (what is here, its error)"""
  if op.gradcheck_wrapper.__name__.endswith(("hermitian_input", "triangular_input")):
    op, fn = (functools.partial(op.gradcheck_wrapper, f) for f in (op, fn))
  arguments = translated((sample.input, *sample.args), leaves)
  options = translated({k: v for k, v in sample.kwargs.items() if k != "device"}, leaves)
  given, more, named = copied((sample.input, sample.args, sample.kwargs))
  return attempt(op, given, *more, **named), attempt(fn, *arguments, **options)


def tried_sample(op: Any, fn: Callable[..., Any], sample: Any, graded: bool) -> Failure | None:
  leaves: list[tuple[Any, Tensor]] = []
  (want, beyond), (got, error) = both(op, fn, sample, leaves)
  if beyond:
    return None
  if error:
    return Failure("refused", line(error))
  drawn = op.name in DRAWN or bool(sample.kwargs.get("dropout_p"))
  found = differs(got, want, drawn)
  if found and op.name in ORDERED and flat(want)[0].dtype not in (torch.float32, torch.float64):
    found = differs(flat(got)[:-1], flat(want)[:-1])
  if found and found.kind == "value":  # of what is defined up to signs, say, PyTorch compares what is not
    processed = [attempt(sample.output_process_fn_grad, x)[0] for x in (got, want)]
    found = differs(*processed) if processed[0] is not None else found
    found = found and near_in_float64(op, sample, got, found)
  return found or (tried_gradient(sample, got, want, leaves) if graded and not drawn else None)


def near_in_float64(op: Any, sample: Any, got: Any, found: Failure) -> Failure | None:
  """Of what PyTorch rounds in between, in halves or float32: is what is here near to what PyTorch has in float64?"""
  kind = next((x.dtype for x in flat(got) if isinstance(x, Tensor)), None)
  if kind not in (dtypes.bfloat16, dtypes.float32):
    return found
  narrow = getattr(torch, kind.name)
  wide = sample.transform(lambda x: x.double() if getattr(x, "dtype", None) is narrow else x)
  want, error = attempt(op, wide.input, *wide.args, **wide.kwargs)
  if error:
    return found
  return differs(flat(got), [x.to(narrow) if x.dtype is torch.float64 else x for x in flat(want)])


def tried_gradient(sample: Any, got: Any, want: Any, leaves: list[tuple[Any, Tensor]]) -> Failure | None:
  """The gradients of a sum, weighted, of all that the operator gives."""
  processed = [attempt(sample.output_process_fn_grad, x)[0] for x in (got, want)]
  if processed[0] is not None:  # or what PyTorch does with it is not for tensors of ours
    got, want = processed
  pairs = [(a, b) for a, b in zip(flat(got), flat(want)) if isinstance(b, torch.Tensor) and b.requires_grad]
  if not pairs or not leaves:
    return None
  draw = np.random.default_rng(0)
  weights = [draw.uniform(0.5, 1.5, tuple(b.shape)) for _, b in pairs]
  outputs, inputs = [b for _, b in pairs], [x for x, _ in leaves]
  given = [torch.as_tensor(w).to(b.dtype) for w, b in zip(weights, outputs)]
  theirs, beyond = attempt(torch.autograd.grad, outputs, inputs, given, allow_unused=True)
  if beyond:
    return None
  _, error = attempt(
    lambda: sum((total_of(a, w) for w, (a, _) in zip(weights, pairs)), start=Tensor(0.0)).backward()
  )
  if error:
    return Failure("gradient", line(error))
  for (leaf, mine), b in zip(leaves, theirs):  # none is zero
    a = Tensor.zeros(*mine.shape, dtype=mine.dtype) if mine.grad is None else mine.grad
    if found := differs(a, torch.zeros_like(leaf) if b is None else b, gradient=True):
      return Failure("gradient", found.what)
  return None


def total_of(a: Tensor, w: np.ndarray) -> Tensor:
  """The sum, weighted; of complex numbers the real part of it."""
  t = a * Tensor(w).cast(a.dtype)
  return (t.real if a.dtype.kind == "c" else t).sum()


def tried_error(op: Any, fn: Callable[..., Any], e: Any) -> Failure | None:
  """What PyTorch refuses has to be refused, with an error that a user of PyTorch would catch."""
  given = e.sample_input
  if {"out", "layout"} & {*given.kwargs} or any(
    x.device.type != "cpu" or x.ndim > 64 for x in tensors(given)
  ):
    return None  # 64 axes are all that NumPy has
  (_, refused), (_, error) = both(op, fn, given)
  if refused is None:
    return None
  if error is None:
    return Failure("accepted", f"not refused: {e.error_regex}")
  if isinstance(error, e.error_type) and isinstance(error, (MiniError, TypeError)):
    return None
  names = " and ".join(c.__name__ for c in type(error).__mro__[:-3])
  return Failure("error", f"{names}, not {e.error_type.__name__}: {line(error)}")


def line(error: Exception) -> str:
  return f"{type(error).__name__}: {error}".split("\n")[0]


# ---------------------------------------------------------------- one module


MODULES_EXCLUDED = {
  "nn.TransformerEncoder": "its samples are made of a layer of PyTorch's; TransformerEncoderLayer is asked for",
  **dict.fromkeys(
    (
      "nn.LazyConv1d",
      "nn.LazyConv2d",
      "nn.LazyConv3d",
      "nn.LazyConvTranspose1d",
      "nn.LazyConvTranspose2d",
      "nn.LazyConvTranspose3d",
    ),
    "a size that is not known yet is mini.Unknown, of any module",
  ),
  "nn.LinearCrossEntropyLoss": "new in PyTorch, a prototype",
}


def modules() -> dict[str, Any]:
  return {info.name: info for info in module_db if info.name not in MODULES_EXCLUDED}


def judged_module(info: Any) -> list[Failure]:
  """What is wrong with a module, in training and not: nothing, that it is missing, or how it differs."""
  cls = getattr(mini.nn, info.name.removeprefix("nn."), None)
  if cls is None:
    return [Failure("missing", "")]
  found: dict[str, Failure] = {}
  with Context(DEV="INTERP"), np.errstate(all="ignore"):
    for training in (True, False):
      torch.manual_seed(0)
      given = {"device": "cpu", "dtype": torch.float64, "requires_grad": True, "training": training}
      for sample in chosen(info.module_inputs_func(info, **given), MOST_SAMPLES):
        if f := tried_module(info, cls, sample, training):
          found.setdefault(f.kind, Failure(f.kind, f"{f.what}\n      {sample.desc} training={training}"))
    for e in info.module_error_inputs_func(info, **given) if info.module_error_inputs_func else ():
      if f := tried_module_error(info, cls, e):
        found.setdefault(f.kind, f)
  return [f for f in found.values() if f.kind not in DIFFERENT.get(info.name, ("", ""))[0].split()]


def tried_module(info: Any, cls: Any, sample: Any, training: bool) -> Failure | None:
  made = sample.constructor_input
  theirs = info.module_cls(*made.args, **made.kwargs).double().train(training)
  if training and any(getattr(m, "dropout", 0) not in (0, None) for m in theirs.modules()):
    theirs.eval()  # what is drawn at random is not compared
  given = sample.forward_input
  mine, error = attempt(lambda: cls(*translated(made.args), **translated(made.kwargs)).double())
  if error:
    return Failure("made", line(error))
  mine.train(theirs.training)
  leaves: list[tuple[Any, Tensor]] = []
  args, options = translated((given.args, given.kwargs), leaves)
  if info.is_lazy:
    theirs(*given.args, **given.kwargs)
    if error := attempt(mine, *args, **options)[1]:
      return Failure("refused", line(error))
  # what begins with _ is nobody's state here: the samples of fractional pooling
  state = {name: tensor(x) for name, x in theirs.state_dict().items() if not name.startswith("_")}
  if error := attempt(mine.load_state_dict, state)[1]:
    return Failure("state", line(error))
  want, beyond = attempt(theirs, *given.args, **given.kwargs)
  if beyond:
    return None
  got, error = attempt(mine, *args, **options)
  if error:
    return Failure("refused", line(error))
  parameters = dict(mine.named_parameters())
  leaves += [(p, parameters[name]) for name, p in theirs.named_parameters()]
  return differs(got, want) or tried_gradient(SampleInput(None), got, want, leaves)


def tried_module_error(info: Any, cls: Any, e: Any) -> Failure | None:
  """What PyTorch refuses, when the module is made or when it is called."""
  made, given = e.module_error_input.constructor_input, e.module_error_input.forward_input

  def run(kind: Any, change: Callable[[Any], Any]) -> Any:
    module = kind(*change(made.args), **change(made.kwargs))
    return module(*change(given.args), **change(given.kwargs)) if given is not None else module

  if attempt(run, info.module_cls, lambda x: x)[1] is None:
    return None
  error = attempt(run, cls, translated)[1]
  if error is None:
    return Failure("accepted", f"not refused: {e.error_regex}")
  return None if isinstance(error, e.error_type) else Failure("error", line(error))


# ---------------------------------------------------------------- all of them


@functools.cache
def operators() -> dict[str, Any]:
  """Those that are asked for, by name."""
  return {full_name(op): op for op in op_db if not excluded(full_name(op)) and not excluded(op.name)}


def judged(name: str) -> list[Failure]:
  """What is wrong with an operator, or a module: nothing, that it is missing, or how it differs."""
  if name in modules():
    return judged_module(modules()[name])
  op = operators()[name]
  if ours(op) is None:
    return [Failure("missing", "")]
  with Context(DEV="INTERP"), np.errstate(all="ignore"):
    return tried(op)


FILE = Path(__file__).parent / "fixtures" / "opdb.txt"


def known() -> dict[str, list[str]]:
  """The kinds of failures that are known, by operator: this list only gets shorter."""
  lines = FILE.read_text().splitlines()
  return {name: kinds.split() for name, _, kinds in (line.partition(": ") for line in lines)}


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--failures", action="store_true", help="say why those that fail do")
  parser.add_argument("--slow", action="store_true", help="say what takes longest")
  parser.add_argument("--accept", action="store_true", help="strike what passes from the known failures")
  parser.add_argument("names", nargs="*", help="of operators, all unless given")
  options = parser.parse_args()
  failed, seconds, before = {}, {}, known()
  every = [(n, op.name) for n, op in operators().items()] + [(n, n) for n in modules()]
  names = [n for n, short in every if not options.names or {n, short} & {*options.names}]
  for name in names:
    start = time.perf_counter()
    failed[name] = judged(name)
    seconds[name] = time.perf_counter() - start
    if failed[name] and (options.failures or options.names):
      print(name, *(f"    {f.kind}: {f.what}" for f in failed[name]), sep="\n", flush=True)
  kinds = {name: sorted({f.kind for f in found}) for name, found in failed.items()}
  if options.accept:
    now = {n: [k for k in kinds.get(n, ks) if k in ks or "missing" in ks] for n, ks in before.items()}
    FILE.write_text("".join(f"{n}: {' '.join(ks)}\n" for n, ks in now.items() if ks))
  if options.slow:
    print(*(f"{seconds[n]:6.2f} s {n}" for n in sorted(names, key=seconds.__getitem__)[-30:]), sep="\n")
  missing = [n for n in names if kinds[n] == ["missing"]]
  print("missing:", *missing)
  exist = len(names) - len(missing)
  passing = sum(not kinds[n] for n in names)
  share = f"{passing} of {exist} that exist pass ({passing / max(1, exist):.1%})"
  print(f"{share}, {len(missing)} are missing; {sum(seconds.values()):.0f} s")


if __name__ == "__main__":
  main()
