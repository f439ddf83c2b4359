"""In place: `a += b`, and PyTorch's methods that end in an underscore.

Each is a method of the same name, or an operator, and gives its result to the handle, and to what shares its memory
(views.py). Shape and type stay - the result is cast to a float type from a wider one, but no float is kept in an
integer tensor. Gradients pass, as through the method. A leaf that requires a gradient is changed under no_grad() alone.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mini.tensor.aliases import Aliases
from mini.tensor.data import Number, Operand
from mini.tensor.errors import SIGNS, fail
from mini.tensor.promotion import broadcast_shape
from mini.tensor.views import set_data
from mini.types import ArgumentError, ShapeError, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor

OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"

RESHAPING = (
  "squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_"  # those that give the handle another shape
)


def underscored(self: Any, *args: Any, **options: Any) -> Tensor:
  """Stands for the method of the name without the underscore, whose result the handle is bound to."""
  raise NotImplementedError


class InPlace(Aliases):
  """What is done to the handle."""

  # fmt: off
  abs_ = absolute_ = acos_ = acosh_ = add_ = addbmm_ = addcdiv_ = addcmul_ = addmm_ = addmv_ = addr_ = arccos_ = \
    arccosh_ = arcsin_ = arcsinh_ = arctan_ = arctan2_ = arctanh_ = asin_ = asinh_ = atan_ = atan2_ = atanh_ = \
    baddbmm_ = bitwise_and_ = bitwise_left_shift_ = bitwise_not_ = bitwise_or_ = bitwise_right_shift_ = \
    bitwise_xor_ = ceil_ = clamp_ = clamp_max_ = clamp_min_ = clip_ = conj_physical_ = copysign_ = cos_ = cosh_ = \
    cumprod_ = cumsum_ = deg2rad_ = digamma_ = div_ = divide_ = eq_ = erf_ = erfc_ = erfinv_ = exp_ = exp2_ = \
    expm1_ = fix_ = float_power_ = floor_ = floor_divide_ = fmod_ = frac_ = gcd_ = ge_ = greater_ = greater_equal_ \
    = gt_ = heaviside_ = hypot_ = i0_ = igamma_ = igammac_ = index_add_ = index_copy_ = index_fill_ = index_put_ = \
    index_reduce_ = lcm_ = ldexp_ = le_ = lerp_ = less_ = less_equal_ = lgamma_ = log_ = log10_ = log1p_ = log2_ = \
    logical_and_ = logical_not_ = logical_or_ = logical_xor_ = logit_ = lshift_ = lt_ = masked_fill_ = \
    masked_scatter_ = mul_ = multiply_ = mvlgamma_ = nan_to_num_ = ne_ = neg_ = negative_ = nextafter_ = \
    not_equal_ = polygamma_ = pow_ = put_ = rad2deg_ = reciprocal_ = relu_ = remainder_ = renorm_ = round_ = \
    rshift_ = rsqrt_ = scatter_ = scatter_add_ = scatter_reduce_ = sgn_ = sigmoid_ = sign_ = sin_ = sinc_ = sinh_ \
    = sqrt_ = square_ = squeeze_ = sub_ = subtract_ = swapaxes_ = swapdims_ = t_ = tan_ = tanh_ = transpose_ = \
    tril_ = triu_ = true_divide_ = trunc_ = unsqueeze_ = xlogy_ = underscored
  # fmt: on

  @property
  def data(self) -> Tensor:
    """The same values, to which no gradient is passed; what is done to it in place is done to x as well, leaf or not.
    Set to a tensor, of any shape, x shares its memory. (PyTorch's; for tinygrad's memoryview, `memoryview(x.numpy())`.)

    >>> w = Tensor([1.0, -2.0], requires_grad=True)
    >>> w.data.clamp_(min=0)
    Tensor([1., 0.])
    >>> w
    Tensor([1., 0.], requires_grad=True)
    """
    return self.detach()

  @data.setter
  def data(self, value: Tensor) -> None:
    for own, new in zip(self._parts(), value.to(self.dtype)._parts()):
      set_data(own, new)

  def copy_(self, src: Tensor) -> Tensor:
    """The elements of src, which repeat to this shape, cast to this type. A gradient passes to src. ShapeError where
    they do not.

    >>> Tensor([1, 2]).copy_(Tensor(3.5))
    Tensor([3, 3])
    """
    if broadcast_shape(src.shape, self.shape) != self.shape:
      fail(
        ShapeError,
        f"a.copy_(b): b has shape {src.shape}, which does not repeat to that of a, {self.shape}",
        a=self,
        b=src,
      )
    return self._update(src.to(self.device).expand(self.shape).cast(self.dtype), "a.copy_(b)")

  def fill_(self, value: Operand) -> Tensor:
    """One value everywhere: a number, or a tensor without axes, to which a gradient passes.

    >>> Tensor([1, 2]).fill_(7)
    Tensor([7, 7])
    """
    return (
      self._update(self.full_like(value), "a.fill_(b)") if isinstance(value, Number) else self.copy_(value)
    )

  def einsum_(self, formula: str, *operands: Any, op: Any = "mul", **sizes: int) -> Tensor:
    """Accumulate what `einsum` gives: "row col += row k, k col", or *= max= min= |= &=, which also is the reduction.

    Names are words here, with blanks between them. The axes on the left are this tensor's: the elements at a diagonal,
    at an integer or at a reckoned index change, and the others stay. ShapeError where sizes do not fit.

    >>> Tensor([[1, 1], [1, 1]]).einsum_("i i += i", Tensor([10, 20]))
    Tensor([[11,  1],
            [ 1, 21]])
    >>> Tensor([5, 5, 5]).einsum_("i+1 max= i k", Tensor([[1, 9], [2, 3]]))
    Tensor([5, 9, 5])
    """
    from mini.tensor.einsum import accumulated

    return self._update(accumulated(self, formula, operands, op, sizes), "a.einsum_(...)")

  def zero_(self) -> Tensor:
    """Zeros."""
    return self.fill_(0)

  def detach_(self) -> Tensor:
    """The same values, to which no gradient is passed; a leaf requires none any longer."""
    return self.replace(self.detach())

  def uniform_(self, low: float = 0.0, high: float = 1.0) -> Tensor:
    """Numbers that are uniform in [low, high)."""
    if not low <= high:
      fail(ArgumentError, f"uniform_: from {low} to {high} there is nothing", x=self)
    return self._update(self.uniform(*self.shape, low=low, high=high, **self._like()), "a.uniform_(...)")

  def normal_(self, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Numbers from the normal distribution."""
    if not std >= 0:
      fail(ArgumentError, f"normal_: std is not negative, as {std} is", x=self)
    return self._update(self.normal(*self.shape, mean=mean, std=std, **self._like()), "a.normal_(...)")

  def exponential_(self, lambd: float = 1.0) -> Tensor:
    """Numbers from the exponential distribution, whose mean is 1 / lambd."""
    return self._update(self.exponential(*self.shape, rate=lambd, **self._like()), "a.exponential_(...)")

  def cauchy_(self, median: float = 0.0, sigma: float = 1.0) -> Tensor:
    """Numbers from Cauchy's distribution."""
    if not sigma > 0:
      fail(ArgumentError, f"cauchy_: sigma is positive, not {sigma}", x=self)
    turns = math.pi * (self.rand(*self.shape, **self._like()) - 0.5)
    return self._update(turns.tan() * sigma + median, "a.cauchy_(...)")

  def log_normal_(self, mean: float = 1.0, std: float = 2.0) -> Tensor:
    """Numbers whose logarithm is from the normal distribution."""
    if not std > 0:
      fail(ArgumentError, f"log_normal_: std is positive, not {std}", x=self)
    drawn = self.normal(*self.shape, mean=mean, std=std, **self._like())
    return self._update(drawn.exp(), "a.log_normal_(...)")

  def geometric_(self, p: float) -> Tensor:
    """How many tries, of which each succeeds with probability p, it takes up to the first success."""
    if not 0 < p < 1:
      fail(ArgumentError, f"geometric_: a probability is between 0 and 1, and p is {p}", x=self)
    tries = self.exponential(*self.shape, rate=-math.log1p(-p), device=self.device).ceil()
    return self._update(tries.clamp(min=1).cast(self.dtype), "a.geometric_(...)")

  def random_(self, low: int = 0, high: int | None = None) -> Tensor:
    """Integers in low..high-1 or, of one number, from 0 up to it; without any, as many as the type has exactly."""
    if high is None:
      digits = {
        "f": 1 - round(math.log2(float(dtypes.finfo(self.dtype).eps))) if self.is_floating_point() else 0
      }
      most = 1 << digits.get(self.dtype.kind, 8 * self.dtype.itemsize - 1)
      low, high = 0, low or (2 if self.dtype is dtypes.bool else most)
    drawn = self.randint(low, high, self.shape, device=self.device)
    return self._update(drawn.cast(self.dtype), "a.random_(...)")

  def bernoulli_(self, p: Operand = 0.5) -> Tensor:
    """1 with probability p, a number or a tensor, else 0."""
    return self._update(self.rand(*self.shape, device=self.device) < p, "a.bernoulli_(...)")

  def _like(self) -> dict[str, Any]:
    return {"dtype": self.dtype, "device": self.device}


def _operator(name: str) -> Callable[..., Tensor]:
  apply = getattr(operator, f"__{name}__")
  what = f"a {SIGNS[name]}= b"
  return lambda self, other: self._update(apply(self, other), what)


def _method(name: str) -> Callable[..., Tensor]:
  own = name.removesuffix("_")
  what, shaped = f"a.{name}(...)", name not in RESHAPING.split()

  def in_place(self: InPlace, *args: Any, **kwargs: Any) -> Tensor:
    return self._update(getattr(self, own)(*args, **kwargs), what, shaped)

  in_place.__doc__ = f"`{own}`, whose result this tensor is bound to."
  in_place.__name__, in_place.__qualname__ = name, f"Tensor.{name}"
  return functools.update_wrapper(in_place, getattr(Aliases, own), assigned=(), updated=())


for name in OPERATORS.split():
  setattr(InPlace, f"__i{name}__", _operator(name))
for name in [name for name, method in vars(InPlace).items() if method is underscored]:
  setattr(InPlace, name, _method(name))
