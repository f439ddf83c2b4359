"""Complex tensors: what there is for them, and how it is computed from the parts.

No node, schedule or kernel knows of complex numbers. A method acts on each part by itself (it is linear: EACH_PART),
or has a formula of its own (here, and the functions in analytic.py), or is Tensor's own code, which is made of these
(MADE_OF_THESE). Whatever is not in these tables refuses complex tensors.

Gradients are those of the parts, dL/d(real) + i dL/d(imag), as PyTorch's; where a function is complex differentiable,
they are g * conj(f'), by the table of analytic.py.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

from mini.gradient_rules import with_gradient
from mini.ir.uop import UOp
from mini.tensor import Tensor
from mini.tensor.aliases import ALIASES
from mini.tensor.analytic import FUNCTIONS, divide, multiply, power, whole_power
from mini.tensor.argument_check import guard
from mini.tensor.autocast import listed
from mini.tensor.autograd import enable_grad, rebuilt
from mini.tensor.complex_handle import Pair, Twofold, from_real, full, held, joined, of_tensors, pair, refuse
from mini.tensor.data import is_complex
from mini.tensor.errors import fail, named
from mini.tensor.handle import Handle, needs
from mini.tensor.multiply import meeting
from mini.tensor.promotion import result_type
from mini.tensor.trace import local
from mini.types import DTypeError, real_of

# fmt: off
# Linear: of each part by itself. With = what follows are parameters that hold values, and are taken apart, too.
EACH_PART = """
pixel_shuffle pixel_unshuffle channel_shuffle
im2col
__getitem__ __pos__ at broadcast_to chunk clone contiguous cumsum detach diag diag_embed diagonal
diff=prepend,append expand expand_as flatten flip gather index_add=source index_copy=source index_fill=value
index_put=values index_select masked_fill=value masked_scatter=source masked_select mean movedim mT nan_to_num
narrow neg pad=value pad_to=value permute repeat repeat_interleave reshape roll rot90 scatter=src scatter_add=src
select shard shrink shrink_to split squeeze sum swapaxes T take take_along_dim tile trace transpose tril triu
unbind unflatten unfold unsqueeze view
"""
# Tensor's own code is right as it stands, for it is made of what is in this table.
MADE_OF_THESE = """
normalize tanhshrink triplet_margin_loss triplet_margin_with_distance_loss pairwise_distance
add addbmm addcdiv addcmul addmm addmv addr adjoint allclose angle argwhere as_strided as_strided_scatter astype
atleast_1d atleast_2d atleast_3d baddbmm bfloat16 bilinear bmm bool byte cat cdouble cfloat char cholesky
cholesky_inverse cholesky_solve combinations concat cond conj_physical constant_pad_nd copy_ corrcoef cov cpu cross
cuda cumulative_trapezoid data det detach_ diagflat diagonal_scatter dim dist div dot double dsplit dtype eigh
eigvalsh element_size embedding empty_like eq equal fill fill_ fliplr flipud float float_power full_like geqrf
gradient H half hsplit inner int inv inverse is_complex is_contiguous is_floating_point is_realized isclose isreal
istft item kron l1_loss ldexp lerp linear logdet logical_and logical_or logical_xor long lstsq lu lu_solve lu_unpack
made matmul matrix_exp matrix_power matrix_rank mH mm mul mv names nbytes ndim ne new_empty new_full new_ones
new_tensor new_zeros newton_schulz nonzero_static numel numpy ones_like orgqr ormqr outer pca_lowrank pdist pinv
pinverse positive put qr rand_like randn_like ravel real realize rearrange renorm resolve_conj rsub select_scatter
short size slice_scatter slogdet solve stack std_mean stft stride sub sum_to_size svd svd_lowrank swish t tensor_split
tensordot tolist trapezoid triangular_solve type type_as vander var_mean vdot view_as view_as_real vsplit where zero_
zeros_like
"""
# fmt: on
# Linear in x and in the weight.
CONVOLUTIONS = "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"
ORDER = "a < b", "a > b", "a <= b", "a >= b", "maximum", "minimum"


class ComplexTensor(Twofold):
  """A tensor of complex64 or complex128: users make it as every Tensor, and it is one."""

  # ---------------------------------------------------------------- arithmetic

  def _binary(self, what: str, build: Any, other: Any, swap: bool = False, dtype: Any = None) -> Tensor:
    other = self._coerced(other)
    return other if other is NotImplemented else binary(what, *((other, self) if swap else (self, other)))

  def pow(self, exponent: Any) -> Tensor:
    return self._named("a ** b", BINARY["a ** b"], exponent)

  def square(self) -> Tensor:
    return self * self

  def reciprocal(self) -> Tensor:
    return 1 / self

  def rsqrt(self) -> Tensor:
    return 1 / self.sqrt()

  def silu(self) -> Tensor:
    return self * self.sigmoid()

  def softsign(self) -> Tensor:
    return self / (1 + self.abs())

  def sinc(self) -> Tensor:
    zero = self == 0
    turns = math.pi * zero.where(1, self)
    return zero.where(1, turns.sin() / turns)

  def conj(self) -> Tensor:
    return joined(self._re._view(("same", None)), self._im._view(("negated", None)))

  def abs(self) -> Tensor:
    return given(self._re.hypot(self._im), lambda a, b: joined(a, b).sgn()._parts(), *self._parts())

  def angle(self) -> Tensor:
    """Its slope is i z / |z|**2, and 0 at 0."""

    def slope(a: Tensor, b: Tensor) -> Sequence[Tensor]:
      size = a.hypot(b)
      zero = size == 0
      safe = zero.where(1, size)
      return zero.where(0, -b / safe / safe), zero.where(0, a / safe / safe)

    return given(self._im.atan2(self._re), slope, *self._parts())

  def sgn(self) -> Tensor:
    size = self.abs()
    zero = size == 0
    return self._mapped(lambda p: zero.where(0, p / zero.where(1, size)))

  def isnan(self) -> Tensor:
    return self._re.isnan() | self._im.isnan()

  def isinf(self) -> Tensor:
    return self._re.isinf() | self._im.isinf()

  def isfinite(self) -> Tensor:
    return self._re.isfinite() & self._im.isfinite()

  def logical_not(self) -> Tensor:
    return self == 0

  def scatter_reduce(
    self, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool = True
  ) -> Tensor:
    if reduce not in ("sum", "mean"):
      fail(DTypeError, f"scatter_reduce: of complex numbers there are sum and mean, not {reduce!r}", x=self)
    if src.dtype is not self.dtype:
      fail(DTypeError, f"scatter_reduce: src is {src.dtype.name}; src.to(x.dtype) would fit", x=self, src=src)
    pairs = zip(self._parts(), src._parts())
    return joined(*(p.scatter_reduce(dim, index, q, reduce, include_self) for p, q in pairs))

  # ---------------------------------------------------------------- reductions

  def softmax(self, axis: Any = -1, dtype: Any = None, *, dim: Any = None) -> Tensor:
    return self._in_real("softmax", axis if dim is None else dim, dtype)

  def log_softmax(self, axis: Any = -1, dtype: Any = None, *, dim: Any = None) -> Tensor:
    return self._in_real("log_softmax", axis if dim is None else dim, dtype)

  def softmin(self, axis: Any = -1, dtype: Any = None, *, dim: Any = None) -> Tensor:
    return self._in_real("softmin", axis if dim is None else dim, dtype)

  def _in_real(self, name: str, axis: Any, dtype: Any) -> Tensor:
    """Of the real part, in a real type that is asked for: complex numbers have no order."""
    return refuse(name, self) if dtype is None else getattr(self.cast(dtype), name)(axis, dtype)

  def logsumexp(self, axis: Any = None, keepdim: bool = False, *, dim: Any = None) -> Tensor:
    axis = axis if dim is None else dim
    top = self._re._peak(axis)
    out = (self - top).exp().sum(axis, keepdim).log()
    return out + (top if keepdim else top.reshape(out.shape))

  def any(self, *args: Any, **kwargs: Any) -> Tensor:
    return (self != 0).any(*args, **kwargs)

  def all(self, *args: Any, **kwargs: Any) -> Tensor:
    return (self != 0).all(*args, **kwargs)

  def count_nonzero(self, *args: Any, **kwargs: Any) -> Tensor:
    return (self != 0).count_nonzero(*args, **kwargs)

  def nonzero(self, as_tuple: bool = False) -> Any:
    return (self != 0).nonzero(as_tuple)

  def norm(
    self, p: Any = 2, axis: Any = None, keepdim: bool = False, dtype: Any = None, *, dim: Any = None
  ) -> Tensor:
    whole = self if dtype is None else self.cast(dtype)
    if isinstance(p, str) and p == "nuc":
      return Tensor.norm(whole, p, axis, keepdim, dim=dim)
    return whole.abs().norm(p, axis if dim is None else dim, keepdim)

  def var(self, *args: Any, **kwargs: Any) -> Tensor:
    """Of the distances in the plane: real."""
    return self._re.var(*args, **kwargs) + self._im.var(*args, **kwargs)

  def std(self, *args: Any, **kwargs: Any) -> Tensor:
    return self.var(*args, **kwargs).sqrt()

  def prod(self, axis: Any = None, keepdim: bool = False, dtype: Any = None, *, dim: Any = None) -> Tensor:
    """Halves times halves: log(n) products one after another."""
    axes = self._axes(axis if dim is None else dim, "prod")
    rest = [a for a in range(self.ndim) if a not in axes]
    x: Any = self if dtype is None else self.cast(dtype)
    x = x.permute(*rest, *axes) if self.ndim else x
    kept = tuple(self.shape[a] for a in rest)
    x = (
      x.reshape(*kept, -1)
      if 0 not in self.shape
      else x.sum(list(range(len(kept), self.ndim))).unsqueeze(-1) + 1
    )
    while x.shape[-1] > 1:
      half = -(-x.shape[-1] // 2)
      first, second = x.narrow(-1, 0, half), x.narrow(-1, half, x.shape[-1] - half)
      x = first * second.pad((0, 2 * half - x.shape[-1]), value=1)
    x = x.squeeze(-1)
    return x.reshape(*(1 if a in axes else n for a, n in enumerate(self.shape))) if keepdim else x

  def cumprod(self, axis: int = 0, dtype: Any = None, *, dim: int | None = None) -> Tensor:
    """Each times that 1 before it, then that 2, 4, ... before it."""
    a = self._axis(axis if dim is None else dim, "cumprod")
    x: Any = self if dtype is None else self.cast(dtype)
    n = self.shape[a] if self.ndim else 1
    step = 1
    while step < n:
      before = x.narrow(a, 0, n - step)
      x = x.narrow(a, 0, step).cat(x.narrow(a, step, n - step) * before, dim=a)
      step *= 2
    return x

  # ---------------------------------------------------------------- products

  def matmul(self, other: Tensor) -> Tensor:
    if not isinstance(other, Handle):
      coerced = self._coerced(other)
      if not isinstance(coerced, Handle):
        fail(DTypeError, f"a @ b: b is {other!r}, not a tensor", a=self)
      other = coerced  # type: ignore[assignment]
    return matmul(self, other)

  def vdot(self, other: Tensor) -> Tensor:
    """The inner product, with the conjugate of this one."""
    self._expect("vdot", 1, a=self, b=other)
    return self.conj().matmul(other)


Twofold.final = ComplexTensor


# ---------------------------------------------------------------- gradients that are given


def given(value: Tensor, slopes: Callable[..., Sequence[Tensor]], *inputs: Tensor) -> Tensor:
  """A real value of real inputs, of which these are the slopes."""
  us = [t._node for t in inputs]
  if not (local.gradients and any(map(needs, us))):
    return value

  def rule(g: UOp, out: UOp, *src: UOp) -> tuple[UOp | None, ...]:
    with enable_grad():
      return tuple((Handle._new(g) * s)._node for s in slopes(*map(Handle._new, src)))

  return Handle._new(with_gradient(value._node, rule, *us))


def analytic(value: Pair, slopes: Callable[..., Sequence[Tensor]], *inputs: Tensor) -> Tensor:
  """A complex value of complex inputs, of which these are the derivatives: from f' = u_x + i v_x = v_y - i u_y."""

  def of_part(n: int) -> Callable[..., Sequence[Tensor]]:
    def found(*parts: Tensor) -> Sequence[Tensor]:
      again = rebuilt(inputs, parts)
      return [p for s in slopes(*again) for p in ((s.real, -s.imag) if n == 0 else (s.imag, s.real))]

    return found

  parts = [p for z in inputs for p in z._parts()]
  re, im = (given(v, of_part(n), *parts) for n, v in enumerate(value))
  return joined(re, im)


def function(name: str) -> Callable[[ComplexTensor], Tensor]:
  formula, slope = FUNCTIONS[name]
  return lambda self: analytic(formula(*self._parts()), lambda z: [slope(z)], self)


# ---------------------------------------------------------------- functions of several tensors


def _add(z: Pair, w: Pair) -> Tensor:
  return joined(z[0] + w[0], z[1] + w[1])


def _sub(z: Pair, w: Pair) -> Tensor:
  return joined(z[0] - w[0], z[1] - w[1])


def _mul(z: Pair, w: Pair) -> Tensor:
  return joined(*multiply(z, w))


def _div(z: Pair, w: Pair) -> Tensor:
  return analytic(divide(z, w), lambda z, w: (1 / w, -z / w / w), held(*z), held(*w))


def _power(z: Pair, w: Pair) -> Any:
  def slopes(z: Any, w: Any) -> Sequence[Tensor]:
    """Where the base is 0, the slope of the exponent is 0; where the exponent is 0, that of the base."""
    at_zero, constant = (z == 0) & (w.real >= 0), w == 0
    base = constant.where(0, w * z ** constant.where(1, w - 1))
    return base, at_zero.where(0, z**w * at_zero.where(1, z).log())

  return analytic(power(z, w), slopes, held(*z), held(*w))


def _equal(z: Pair, w: Pair) -> Tensor:
  return (z[0] == w[0]) & (z[1] == w[1])


def _not_equal(z: Pair, w: Pair) -> Tensor:
  return (z[0] != w[0]) | (z[1] != w[1])


# fmt: off
BINARY: dict[str, Callable[..., Any]] = {
  "a + b": _add, "a - b": _sub, "a * b": _mul, "a / b": _div, "a ** b": _power, "a == b": _equal, "a != b": _not_equal,
  "logical_and": lambda z, w: held(*z).bool() & held(*w).bool(),
  "logical_or":  lambda z, w: held(*z).bool() | held(*w).bool(),
  "logical_xor": lambda z, w: held(*z).bool() ^ held(*w).bool(),
}
# fmt: on


def binary(what: str, a: Any, b: Any) -> Tensor:
  """An operation of elementwise.py, by what errors call it, of operands of which one is complex."""
  if what not in BINARY:
    why = ", which have no order" if what in ORDER else ""
    fail(DTypeError, f"{what}: not of complex numbers{why}", **named((a, b)))
  kind = real_of(result_type(a, b))
  real: list[Any] = [x.to(kind) if isinstance(x, Tensor) else x for x in (a, b) if not is_complex(x)]
  if real and (what == "a * b" or (what == "a / b" and is_complex(a))):  # by a real number: of each part
    z = a if is_complex(a) else b
    if isinstance(z, Handle) or isinstance(real[0], Handle):
      re, im = (p * real[0] if what == "a * b" else p / real[0] for p in pair(z, kind))
      return joined(re, im)
  whole = isinstance(b, (int, float)) and not isinstance(b, bool) and what == "a ** b"
  if whole and (b == 0.5 or (b == int(b) and abs(b) <= 64)):
    return by_number(a, b)
  return BINARY[what](*of_tensors(what, (a, b)))


def by_number(z: Any, n: float) -> Tensor:
  """z ** n, where there is something better than pow."""
  if n == 0.5:
    return z.sqrt()
  if n == 0:
    return z.ones_like()
  positive = joined(*whole_power(z._parts(), int(abs(n))))
  return positive if n > 0 else 1 / positive


def matmul(a: Handle, b: Handle) -> Tensor:
  meeting(a, b)  # whose error shows the factors, and not their parts
  kind = real_of(result_type(a, b))
  if a._complex and b._complex:
    (ar, ai), (br, bi) = pair(a, kind), pair(b, kind)
    return joined(ar @ br - ai @ bi, ar @ bi + ai @ br)
  if a._complex:
    other = pair(b, kind)[0]
    return joined(*(p @ other for p in pair(a, kind)))
  other = pair(a, kind)[0]
  return joined(*(other @ p for p in pair(b, kind)))


def einsum(formula: str, operands: Sequence[Any], op: Any, reduce: str, sizes: dict[str, int]) -> Tensor:
  """Linear in each operand: of the parts of the first complex one."""
  if op != "mul" or reduce not in ("sum", "mean"):
    fail(
      DTypeError, f'einsum("{formula}"): of complex numbers are sums and means of products', **named(operands)
    )
  kind = result_type(*operands)
  n, first = next((n, x) for n, x in enumerate(operands) if is_complex(x))
  several = ((*operands[:n], p, *operands[n + 1 :]) for p in first._parts())
  found = [Tensor.einsum(formula, *ts, reduce=reduce, **sizes) for ts in several]
  if not any(map(is_complex, operands[n + 1 :])):
    return joined(*found).to(kind)
  (a, b), (c, d) = (z._parts() for z in found)
  return joined(a - d, b + c).to(kind)


def cat(tensors: Sequence[Any], dim: int) -> Tensor:
  pairs = [pair(t, real_of(result_type(*tensors))) for t in tensors]
  return joined(*(Tensor.concat(parts, dim) for parts in zip(*pairs)))


def where(condition: Any, a: Any, b: Any) -> Tensor:
  (ar, ai), (br, bi) = of_tensors("where", (a, b))
  return joined(condition.where(ar, br), condition.where(ai, bi))


# ---------------------------------------------------------------- the methods


def of_each_part(name: str, valued: Sequence[str]) -> Any:
  """Tensor's method or property, of the real and of the imaginary part."""
  own = inspect.getattr_static(Tensor, name)
  if isinstance(own, property):
    return property(lambda self: self._mapped(own.__get__))
  signature = inspect.signature(own)
  first = next(iter(signature.parameters))

  def method(self: ComplexTensor, *args: Any, **kwargs: Any) -> Any:
    bound = signature.bind(self, *args, **kwargs)
    options = bound.arguments
    if options.get("dtype") is not None:
      return getattr(self.cast(options.pop("dtype")), name)(*bound.args[1:], **bound.kwargs)
    values = {n: pair(v, self._re.dtype) for n in valued if (v := options.get(n)) is not None}
    found = []
    for n, part in enumerate(self._parts()):
      options[first] = part
      options.update((name, halves[n]) for name, halves in values.items())
      found.append(own(*bound.args, **bound.kwargs))
    return tuple(map(joined, *found)) if isinstance(found[0], tuple) else joined(*found)

  return update_wrapper(method, own)


def convolution(name: str) -> Any:
  """Tensor's method, of the parts of x, the weight and the bias."""
  own = getattr(Tensor, name)

  def method(self: ComplexTensor, weight: Any, bias: Any = None, *args: Any, **options: Any) -> Tensor:
    kind = real_of(result_type(self, weight))
    (a, b), (c, d) = pair(self, kind), pair(weight, kind)
    p, q = (None, None) if bias is None else pair(bias, kind)
    re, im = own(a, c, p, *args, **options), own(b, c, q, *args, **options)
    if is_complex(weight):
      re, im = re - own(b, d, None, *args, **options), im + own(a, d, None, *args, **options)
    return joined(re, im)

  return update_wrapper(method, own)


def refusing(name: str, own: Any) -> Any:
  def method(self: ComplexTensor, *args: Any, **kwargs: Any) -> Any:
    refuse(name, self)

  return property(method) if isinstance(own, property) else update_wrapper(method, own)


def install() -> None:
  """Gives ComplexTensor the methods of the table; those of Tensor that are not in it refuse."""
  for row in EACH_PART.split():
    name, _, valued = row.partition("=")
    setattr(ComplexTensor, name, of_each_part(name, valued.split(",") if valued else ()))
  for name in FUNCTIONS:
    method = update_wrapper(function(name), getattr(Tensor, name))
    setattr(ComplexTensor, name, method)
  for name in CONVOLUTIONS.split():
    setattr(ComplexTensor, name, convolution(name))
  known = {*vars(Twofold), *vars(ComplexTensor), *MADE_OF_THESE.split(), *ALIASES}
  for name in dir(Tensor):
    own = inspect.getattr_static(Tensor, name)
    if name.startswith("_") or name in known or name.removesuffix("_") in known:
      continue
    if isinstance(own, property) or inspect.isfunction(own):
      setattr(ComplexTensor, name, refusing(name, own))


guard(Twofold)
install()
guard(ComplexTensor)
listed(ComplexTensor)

__all__ = ["ComplexTensor", "binary", "cat", "einsum", "from_real", "full", "joined", "matmul", "where"]
