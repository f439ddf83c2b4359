"""Activations: element by element, what stands between the layers of a network."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mini.grad import Value, fn
from mini.gradient_rules import with_gradient
from mini.ir.uop import UOp, const
from mini.tensor.data import Number
from mini.tensor.elementwise import sloped
from mini.tensor.errors import fail
from mini.tensor.handle import needs
from mini.tensor.special import Special
from mini.types import ArgumentError, ShapeError, dtypes

if TYPE_CHECKING:
  from mini.tensor import Tensor

CUBIC, SCALE = 0.044715, math.sqrt(2 / math.pi)  # of the GELU by tanh

# fmt: off
GELUS = {  # (Phi of a, its slope there, of a and Phi)
  "none": (lambda a: fn("erf", a * math.sqrt(0.5)) * 0.5 + 0.5,
           lambda a, p: fn("exp", a * a * -0.5) * math.sqrt(0.5 / math.pi)),
  "tanh": (lambda a: fn("tanh", a * (a * a * (CUBIC * SCALE) + SCALE)) * 0.5 + 0.5,
           lambda a, p: (p - p * p) * (a * a * (6 * CUBIC * SCALE) + 2 * SCALE)),
}
# fmt: on


class Activations(Special):
  """relu and its like; of integers, where it is no relu, in float32."""

  def relu(self) -> Tensor:
    """max(a, 0).

    >>> Tensor([-1.0, 2.0]).relu()
    Tensor([0., 2.])
    """
    return self._alu("max", self._node, const(0, self.dtype))

  def relu6(self) -> Tensor:
    """a between 0 and 6."""
    return self.maximum(0).minimum(6)

  def leaky_relu(self, negative_slope: float = 0.01) -> Tensor:
    """a, or negative_slope * a where a is negative."""
    return (self > 0).where(self, self * negative_slope)

  def sigmoid(self) -> Tensor:
    """1 / (1 + exp(-a)); without overflow for every a.

    >>> Tensor([0.0]).sigmoid()
    Tensor([0.5])
    """
    x, kind = self._real()
    return sloped(1 / (1 + (-x).exp()), lambda x, y: x._sigmoid_slope(y), x).cast(kind)

  def _sigmoid_slope(self, s: Any) -> Tensor:
    """s * (1 - s), s being the sigmoid of a: 1 - s as s * exp(-a), which has no digits to lose where s is nearly 1."""
    e = (-self).exp().minimum(float(dtypes.finfo(self.dtype).max))  # infinite, it would make NaN of 0
    return sloped(s * (s * e), lambda x, y: y * (x * -0.5).tanh(), self)

  def silu(self) -> Tensor:
    """a * sigmoid(a)."""
    x, kind = self._real()

    def slope(x: Tensor, y: Tensor) -> Tensor:
      s = x.sigmoid()
      return s + x * x._sigmoid_slope(s)

    return sloped(x / (1 + (-x).exp()), slope, x).cast(kind)

  def swish(self) -> Tensor:
    """Another name of `silu`."""
    return self.silu()

  def gelu(self, approximate: str = "none") -> Tensor:
    """a * Phi(a), Phi the normal distribution; approximate="tanh" as GPT-2 has it. https://arxiv.org/abs/1606.08415"""
    if approximate not in GELUS:
      fail(ArgumentError, f'gelu: approximate is "none" or "tanh", not {approximate!r}', x=self)
    phi, density = GELUS[approximate]

    def rule(g: UOp, out: UOp, x: UOp) -> tuple[UOp]:
      """One factor that x alone decides, and so can be made together with the value (schedule/rematerialize.py)."""
      a = Value(x)
      p = phi(a)
      return ((Value(g) * (a * density(a, p) + p)).u,)

    x = self._float()
    value = (Value(x) * phi(Value(x))).u
    return self._new(with_gradient(value, rule, x) if needs(x) else value)

  def quick_gelu(self) -> Tensor:
    """a * sigmoid(1.702 * a)."""
    return self * (self * 1.702).sigmoid()

  def elu(self, alpha: float = 1.0) -> Tensor:
    """a, or alpha * (exp(a) - 1) where a is negative."""
    return self._elu(alpha, 1)

  def _elu(self, alpha: float, rate: float, scale: float = 1.0) -> Tensor:
    """scale times a, or alpha * (exp(a * rate) - 1) where a is negative."""
    x, kind = self._real()
    low = x.minimum(0) * rate
    out = (x > 0).where(x, alpha * low.expm1())
    return (
      scale * sloped(out, lambda x, y: (x <= 0).where(alpha * rate * (x.minimum(0) * rate).exp(), 1), x)
    ).cast(kind)

  def celu(self, alpha: float = 1.0) -> Tensor:
    """a, or alpha * (exp(a / alpha) - 1) where a is negative."""
    if isinstance(alpha, Number) and alpha == 0:
      fail(ArgumentError, "celu: alpha is 0, by which it divides", x=self)
    return self._elu(alpha, 1 / alpha)

  def selu(self) -> Tensor:
    """The self-normalizing elu. https://arxiv.org/abs/1706.02515"""
    return self._elu(1.6732632423543772, 1, 1.0507009873554805)

  def softplus(self, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * a)) / beta; a itself where beta * a > threshold."""
    x, kind = self._real()
    out = (x * beta > threshold).where(x, (x * beta).minimum(threshold).exp().log1p() / beta)
    return sloped(out, lambda x, y: (x * beta > threshold).where(1, (x * beta).sigmoid()), x).cast(kind)

  def logsigmoid(self) -> Tensor:
    """log(sigmoid(a)), without overflow."""
    x, kind = self._real()
    return sloped(x.minimum(0) - (-x.abs()).exp().log1p(), lambda x, y: (-x).sigmoid(), x).cast(kind)

  def mish(self) -> Tensor:
    """a * tanh(softplus(a))."""
    return self * self.softplus().tanh()

  def softsign(self) -> Tensor:
    """a / (1 + |a|)."""
    x, kind = self._real()
    return sloped(x / (1 + x.abs()), lambda x, y: 1 / (1 + x.abs()).square(), x).cast(kind)

  def hardtanh(self, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """a between min_val and max_val."""
    if isinstance(min_val, Number) and isinstance(max_val, Number) and min_val > max_val:
      fail(ArgumentError, f"hardtanh: min_val {min_val} is greater than max_val {max_val}", x=self)
    if self.dtype.kind in "iu":
      min_val, max_val = int(min_val), int(max_val)
    return self.maximum(min_val).minimum(max_val)

  def hardsigmoid(self) -> Tensor:
    """(a + 3) / 6 between 0 and 1."""
    return (self + 3).relu6() / 6

  def hardswish(self) -> Tensor:
    """a * hardsigmoid(a)."""
    return self * self.hardsigmoid()

  def prelu(self, weight: Tensor) -> Tensor:
    """a, or weight * a where a is negative.   weight: T[1], or T[C], one for each channel, axis 1 of a"""
    w = weight
    if weight.numel() != 1:
      if weight.shape != self.shape[1:2]:
        fail(
          ShapeError,
          "prelu: there must be one weight, or one for each channel, axis 1 of x",
          x=self,
          weight=weight,
        )
      w = weight.reshape(-1, *(1,) * (len(self.shape) - 2))
    elif not self.shape:
      w = weight.reshape(())
    return (self > 0).where(self, w * self)

  def rrelu(self, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """a, or a times a random slope in [lower, upper) where a is negative; times the mean of both unless training."""
    if isinstance(lower, Number) and isinstance(upper, Number) and lower > upper:
      fail(ArgumentError, f"rrelu: lower {lower} is greater than upper {upper}", x=self)
    x = self._new(self._float())
    slope: Any = (lower + upper) / 2
    if training:
      slope = x.rand_like() * (upper - lower) + lower
    return (x > 0).where(x, x * slope)

  def hardshrink(self, lambd: float = 0.5) -> Tensor:
    """a, or 0 where |a| <= lambd."""
    return (self.abs() <= lambd).where(0, self)

  def softshrink(self, lambd: float = 0.5) -> Tensor:
    """a, nearer to 0 by lambd; 0 where |a| <= lambd."""
    if isinstance(lambd, Number) and lambd < 0:
      fail(ArgumentError, f"softshrink: lambd is {lambd}, less than 0", x=self)
    return self - self.clamp(-lambd, lambd)

  def tanhshrink(self) -> Tensor:
    """a - tanh(a)."""
    return self - self.tanh()

  def threshold(self, threshold: float, value: float) -> Tensor:
    """a where it is above the threshold, else `value`.

    >>> Tensor([1.0, 3.0]).threshold(2, 9)
    Tensor([9., 3.])
    """
    return (self <= threshold).where(value, self).to(self.dtype)

  def glu(self, axis: int = -1, *, dim: int | None = None) -> Tensor:
    """a * sigmoid(b), a and b being the halves along an axis. https://arxiv.org/abs/1612.08083

    >>> Tensor([3.0, 0.0]).glu()
    Tensor([1.5])
    """
    at = self._axis(axis if dim is None else dim, "glu")
    if self.shape[at] % 2:
      fail(ShapeError, f"glu: axis {at} does not fall into halves", x=self)
    a, b = self._new(self._node).chunk(2, at)
    return a * b.sigmoid()

  def gumbel_softmax(
    self, tau: float = 1.0, hard: bool = False, axis: int = -1, *, dim: int | None = None
  ) -> Tensor:
    """softmax((a + noise) / tau): samples of a distribution, with gradients. https://arxiv.org/abs/1611.01144

    hard: one-hot, with the gradients of the soft ones.
    """
    at = axis if dim is None else dim
    x = self._new(self._float())
    noise = -(1 - x.rand_like()).log()
    soft = ((x - noise.maximum(1e-30).log()) / tau).softmax(at)
    if not hard:
      return soft
    best = soft.zeros_like().scatter(at, soft.argmax(at, True), 1)
    return best + (soft - soft.detach())
