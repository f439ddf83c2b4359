"""Random numbers: counter-based, so the same seed gives the same numbers on every device, in any order of execution.

The generator is Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3,
SC 2011). Its state is two 0-d tensors, a key and the number of calls so far: element i of call c is made from the block
threefry(key, (i, c)), two words of 32 bits. Each call rebinds the count, so a jitted step draws new numbers each time,
and a mask that is needed again in the backward pass is computed again instead of kept.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
from typing import TYPE_CHECKING, Any

from mini.ir import graph
from mini.ir.uop import UOp, const
from mini.tensor.creation import Creation, checked_sizes, placed
from mini.tensor.data import Sizes, complex_numbers, default_device, device_named
from mini.tensor.errors import fail
from mini.tensor.handle import Handle, on_device
from mini.tensor.promotion import broadcast_shape, wide
from mini.tensor.trace import local, outside
from mini.types import ArgumentError, DTypeError, ShapeError, as_dtype, dtypes, prod, real_of

if TYPE_CHECKING:
  from mini.tensor import Tensor


Words = tuple[UOp, UOp]  # uint32: two times 32 random bits for each element


def _halves(u: UOp) -> Words:
  """A uint64 as two words, the lower one first."""
  upper = graph.alu("div", u, const(1 << 32, dtypes.uint64))
  return graph.cast(u, dtypes.uint32), graph.cast(upper, dtypes.uint32)


def joined(words: Words) -> UOp:
  """As one uint64."""
  low, high = (graph.cast(w, dtypes.uint64) for w in words)
  return graph.alu("or", graph.alu("mul", high, const(1 << 32, dtypes.uint64)), low)


class Generator:
  """A seed, and how many calls have drawn from it. What draws random numbers takes one as `generator=`; else it draws
  from `Tensor.generator`, which `Tensor.manual_seed` seeds.

  >>> g = mini.Generator().manual_seed(3)
  >>> x = Tensor.rand(2, generator=g)
  >>> x.equal(Tensor.rand(2, generator=g.manual_seed(3)))
  True
  """

  def __init__(self, device: str | None = None) -> None:
    self.key = Handle._new(const(0, dtypes.uint64))
    self.calls = Handle._new(const(0, dtypes.uint64))
    self.seeded = False
    self.known = (-1, 0)  # (serial of the node of `calls`, its value)

  def manual_seed(self, seed: int) -> Generator:
    """Begin anew; the low 64 bits of `seed` count."""
    self.set_state((seed & (2**64 - 1), 0))
    return self

  def seed(self) -> int:
    """Begin anew with a seed that nobody knows; it is returned."""
    with outside():  # or a jitted function would begin anew at each call
      return self.manual_seed(int.from_bytes(os.urandom(8), "little")).initial_seed()

  def initial_seed(self) -> int:
    """The seed with which it began."""
    return self.key.item()

  def words(self, shape: tuple[int, ...], device: str | None = None) -> Words:
    """Random bits for each element, made on the device from a copy of the state; advances the count."""
    if local.samples is not None:
      return local.samples.draw(lambda s: self.words(s, device), shape)
    if not self.seeded:  # not when mini is imported: that would open the device
      self.seed()
    elif self.calls.device != default_device():  # another DEV holds for a block: the state goes along
      with outside():
        self.set_state(self.get_state())
    device = default_device() if device is None else device_named(device)
    calls, key = on_device(self.advance(), device), on_device(self.key._node, device)
    n = prod(shape)
    x, y = graph.iota(n, dtypes.uint32), graph.cast(calls, dtypes.uint32)
    if n > 1 << 32:
      x, more = _halves(graph.iota(n, dtypes.uint64))
      y = graph.alu("add", more, y)
    block = x, y, *_halves(key)
    return (
      graph.reshape(graph.alu("threefry", *block), shape),
      graph.reshape(graph.alu("threefry2", *block), shape),
    )

  def advance(self) -> UOp:
    """The number of calls so far. It is one more afterwards: memory of its own, so that the same graph comes again."""
    before = self.calls._node
    if local.current is not None:
      self.calls._node = _plus(before, 1)
      return before
    serial, count = self.known
    if before.serial != serial:
      count = self.calls.item()
    self.calls.replace(Handle._final(count + 1, dtype=dtypes.uint64))
    self.known = self.calls._uop.serial, count + 1
    return before

  def get_state(self) -> tuple[int, int]:
    """(key, calls): what `set_state` takes."""
    return self.key.item(), self.calls.item()

  def set_state(self, state: tuple[int, int]) -> None:
    """Go on from where `get_state` was called."""
    for t, value in zip((self.key, self.calls), state):
      t.replace(Handle._final(value, dtype=dtypes.uint64))
    self.seeded = True


def _plus(u: UOp, n: int) -> UOp:
  """u + n, a sum of one constant however often it is called."""
  if u.op == "add" and u.src[1].op == "const":
    return _plus(u.src[0], u.src[1].arg + n)
  return graph.alu("add", u, const(n, u.dtype))


def unit(word: UOp) -> UOp:
  """Uniform float32 in [0, 1): the upper 24 bits."""
  return graph.alu(
    "mul",
    graph.cast(graph.alu("div", word, const(1 << 8, dtypes.uint32)), dtypes.float32),
    const(2.0**-24, dtypes.float32),
  )


def unit64(words: Words) -> UOp:
  """Uniform float64 in [0, 1): the upper 53 bits of both words."""
  bits = graph.cast(graph.alu("div", joined(words), const(1 << 11, dtypes.uint64)), dtypes.int64)
  return graph.alu("mul", graph.cast(bits, dtypes.float64), const(2.0**-53, dtypes.float64))


class Random(Creation):
  """Tensors of random numbers: others in every process, unless `Tensor.manual_seed(n)` makes them repeat."""

  generator: Generator

  @staticmethod
  def manual_seed(seed: int = 0) -> None:
    """Begin anew: after the same seed come the same numbers, on every device.

    >>> Tensor.manual_seed(1); a = Tensor.rand(3).tolist()
    >>> Tensor.manual_seed(1); a == Tensor.rand(3).tolist()
    True
    """
    Random.generator.manual_seed(seed)

  @staticmethod
  def rand(*size: Sizes, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """Uniform in [0, 1): multiples of 2**-24, in float64 of 2**-53.

    >>> bool((Tensor.rand(100) < 1).all())
    True
    """
    if _is_complex(dtype):
      return _of_two(Random.rand, size, dtype, device, requires_grad)
    s, kind = checked_sizes("rand", size), _float_dtype("rand", dtype)
    words = random_words(s, device)
    if kind.itemsize == 2:  # rounded down to its own 11 or 8 bits, or 1.0 would be among them
      bits = 11 if kind is dtypes.float16 else 8
      word = graph.alu("div", words[0], const(1 << (32 - bits), dtypes.uint32))
      u = graph.alu("mul", graph.cast(word, kind), const(2.0**-bits, kind))
    else:
      u = unit64(words) if kind is dtypes.float64 else unit(words[0])
    return placed(u, device, requires_grad)

  @staticmethod
  def randn(
    *size: Sizes, dtype: Any = None, device: str | None = None, requires_grad: bool = False
  ) -> Tensor:
    """From the normal distribution: mean 0, variance 1.

    Box-Muller: sqrt(-2 log u) * cos(2 pi v), u in (0, 1] and v from the two words of one block. In float32 no value is
    beyond 5.77.

    >>> Tensor.randn(2, 3).shape
    (2, 3)
    """
    if _is_complex(dtype):
      return _of_two(Random.normal, size, dtype, device, requires_grad, std=0.5**0.5)
    kind = _float_dtype("randn", dtype)
    first, second = random_words(checked_sizes("randn", size), device)
    flipped = graph.alu("mul", unit(first), const(-1.0, dtypes.float32))
    u = Handle._new(graph.alu("add", flipped, const(1.0, dtypes.float32)))
    v = Handle._new(unit(second))
    if kind is dtypes.float64:
      u, v = u.to(kind), v.to(kind)
    normal = (-2 * u.log()).sqrt() * (2 * math.pi * v).cos()
    return placed(graph.cast(normal._node, kind), device, requires_grad)

  @staticmethod
  def randint(
    low: int = 0,
    high: Sizes = None,
    size: Sizes = None,
    dtype: Any = None,
    device: str | None = None,
  ) -> Tensor:
    """Integers in low..high-1, as PyTorch: `randint(high, size)` or `randint(low, high, size)`; int64.

    >>> Tensor.randint(3, 5, (100,)).min().item() >= 3
    True
    """
    if size is None or high is None or isinstance(high, (tuple, list)):
      low, high, size = 0, low, high if size is None else size
    s = checked_sizes(
      "randint", (size,) if isinstance(size, (tuple, list)) else (size,) if size is not None else ((),)
    )
    kind = as_dtype(dtype) if dtype is not None else dtypes.default_int
    span = int(high) - int(low)
    if span < 1 or span > 2**64:
      fail(ArgumentError, f"randint: there are no integers from {low} up to, but without, {high}")
    words = random_words(s, device)
    if span <= 2**32:  # the upper word of the product: no bias beyond 2**-32
      product = graph.alu("mul", graph.cast(words[0], dtypes.uint64), const(span, dtypes.uint64))
      value = graph.alu("div", product, const(1 << 32, dtypes.uint64))
    else:
      value = joined(words)
      value = value if span == 2**64 else graph.alu("mod", value, const(span, dtypes.uint64))
    shifted = graph.alu("add", graph.cast(value, dtypes.int64), const(int(low), dtypes.int64))
    return placed(graph.cast(shifted, kind), device, False)

  @staticmethod
  def uniform(
    *size: Sizes,
    low: float = 0.0,
    high: float = 1.0,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
  ) -> Tensor:
    """Uniform in [low, high); of complex numbers both parts."""
    if _is_complex(dtype):
      return _of_two(Random.uniform, size, dtype, device, requires_grad, low=low, high=high)
    t = Random.rand(*size, dtype=dtype, device=device) * (high - low) + low
    return t.requires_grad_() if requires_grad else t

  @staticmethod
  def normal(
    *size: Sizes,
    mean: float = 0.0,
    std: float = 1.0,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
  ) -> Tensor:
    """From the normal distribution with this mean and standard deviation; PyTorch's `normal(mean, std, size)`, too, of
    which the first two are tensors or floats, and of two tensors there is no size."""
    if len(size) > 1 and any(isinstance(x, (Handle, float)) for x in size[:2]):
      (centre, spread), rest = size[:2], size[2:]
      both = broadcast_shape(*(x.shape for x in (centre, spread) if isinstance(x, Handle)))
      kind = dtype or next((x.dtype for x in (centre, spread) if isinstance(x, Handle)), None)
      t = Random.randn(*(rest or (both or (),)), dtype=kind, device=device) * spread + centre
      return t.requires_grad_() if requires_grad else t
    t = Random.randn(*size, dtype=dtype, device=device) * std + mean
    return t.requires_grad_() if requires_grad else t

  @staticmethod
  def exponential(*size: Sizes, rate: float = 1.0, dtype: Any = None, device: str | None = None) -> Tensor:
    """From the exponential distribution, whose mean is 1 / rate: -log(1 - u) / rate.

    >>> bool((Tensor.exponential(100) >= 0).all())
    True
    """
    if not rate > 0:
      fail(ArgumentError, f"exponential: rate is positive, not {rate}")
    return -(1 - Random.rand(*size, dtype=dtype, device=device)).log() / rate

  @staticmethod
  def gamma(
    *size: Sizes, shape: float = 1.0, rate: float = 1.0, dtype: Any = None, device: str | None = None
  ) -> Tensor:
    """From the gamma distribution, whose mean is shape / rate.

    G. Marsaglia and W. W. Tsang, A simple method for generating gamma variables, 2000. One try in twenty or fewer is
    rejected; all of eight tries are drawn at once, so that less than one number in 10**10 is from a try that was.
    """
    if not (shape > 0 and rate > 0):
      fail(ArgumentError, f"gamma: shape and rate are positive, not {shape} and {rate}")
    kind = _float_dtype("gamma", dtype)
    return standard_gamma(Random.full(checked_sizes("gamma", size), shape, kind, device)) / rate

  @staticmethod
  def beta(*size: Sizes, a: float, b: float, dtype: Any = None, device: str | None = None) -> Tensor:
    """From the beta distribution, whose mean is a / (a + b): x / (x + y) of two gamma variables.

    >>> Tensor.beta(5, a=2.0, b=3.0).shape
    (5,)
    """
    x, y = (Random.gamma(*size, shape=shape, dtype=dtype, device=device) for shape in (a, b))
    return x / (x + y)

  @staticmethod
  def scaled_uniform(*size: Sizes, **kwargs: Any) -> Tensor:
    """Uniform in [-1, 1), over the square root of the number of elements."""
    s = checked_sizes("scaled_uniform", size)
    return Random.uniform(*s, low=-1.0, high=1.0, **kwargs) * max(prod(s), 1) ** -0.5

  @staticmethod
  def glorot_uniform(*size: Sizes, **kwargs: Any) -> Tensor:
    """Uniform within sqrt(6 / (fan in + fan out)) of 0; size is (out, in, ...). Glorot and Bengio, AISTATS 2010."""
    s = checked_sizes("glorot_uniform", size)
    bound = math.sqrt(6 / (s[0] + prod(s[1:])))
    return Random.uniform(*s, low=-bound, high=bound, **kwargs)

  @staticmethod
  def kaiming_uniform(*size: Sizes, a: float = 0.01, **kwargs: Any) -> Tensor:
    """Uniform within sqrt(6 / ((1 + a**2) fan in)) of 0; size is (out, in, ...). https://arxiv.org/abs/1502.01852"""
    s = checked_sizes("kaiming_uniform", size)
    bound = math.sqrt(6 / ((1 + a * a) * prod(s[1:])))
    return Random.uniform(*s, low=-bound, high=bound, **kwargs)

  @staticmethod
  def kaiming_normal(*size: Sizes, a: float = 0.01, **kwargs: Any) -> Tensor:
    """Normal with the standard deviation sqrt(2 / ((1 + a**2) fan in)); size is (out, in, ...)."""
    s = checked_sizes("kaiming_normal", size)
    return Random.normal(*s, std=math.sqrt(2 / ((1 + a * a) * prod(s[1:]))), **kwargs)

  @staticmethod
  def randperm(n: int, dtype: Any = None, device: str | None = None) -> Tensor:
    """The integers 0..n-1 in a random order, as int64: the order of n random words, of which no two are likely equal.

    >>> sorted(Tensor.randperm(5).tolist())
    [0, 1, 2, 3, 4]
    """
    if n < 0:
      fail(ShapeError, f"randperm: there are no {n} integers")
    order = Handle._new(joined(random_words((n,), device))).argsort()
    return placed(graph.cast(order._node, as_dtype(dtype or dtypes.default_int)), device, False)

  def bernoulli(self, p: float | None = None) -> Tensor:
    """1 with the probability that the element is, or with p, else 0; in self's type."""
    if p is not None and not 0 <= p <= 1:
      fail(ArgumentError, f"bernoulli: a probability is between 0 and 1, and p is {p}", x=self)
    return (Random.rand(*self.shape, device=self.device) < (self if p is None else p)).to(self.dtype)

  def multinomial(self, num_samples: int = 1, replacement: bool = False) -> Tensor:
    """Places drawn with probabilities proportional to the last axis's elements, as int64.

    T[.., n] -> int64[.., num_samples]

    With replacement, a search for uniform numbers in the running sum;
    without, the largest of log(weight) + Gumbel noise.
    IndexError, when computed, if weights are negative, infinite or NaN, or all of them are 0.
    """
    if self.dtype.kind != "f":
      fail(DTypeError, f"multinomial: weights are floats, not {self.dtype.name}", x=self)
    x: Any = self._new(graph.cast(self._node, wide(self.dtype)))
    n = self.shape[-1] if self.ndim else 0
    if not 1 <= self.ndim <= 2 or n > 2**24:
      message = "multinomial: weights are a vector or a matrix, of at most 2**24 places"
      fail(ShapeError, message, x=self)
    if num_samples < 1 or n < (1 if replacement else num_samples):
      fail(ArgumentError, f"multinomial: {num_samples} draws from {n} places", x=self)
    if replacement:
      upto = x.cumsum(-1)
      u = Random.rand(*self.shape[:-1], num_samples, device=self.device) * upto[..., -1:]
      found = upto.searchsorted(u, right=True)
    else:
      noisy = x.log() - (-(1 - Random.rand(*self.shape, device=self.device)).log()).log()
      found = noisy.argmax(-1, True) if num_samples == 1 else noisy.topk(num_samples)[1]
    good = ((x >= 0) & (x < math.inf)).all(-1, True) & (x > 0).any(-1, True)
    return good.where(found, n)._place(n)

  def rand_like(self, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """Uniform in [0, 1), in this shape and type."""
    return Random.rand(
      *self.shape, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad
    )

  def randn_like(self, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """From the normal distribution, in this shape and type."""
    return Random.randn(
      *self.shape, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad
    )

  def randint_like(
    self, low: int = 0, high: int | None = None, dtype: Any = None, device: str | None = None
  ) -> Tensor:
    """Integers in low..high-1, or, of one number, from 0 up to it, in this shape and type."""
    low, high = (0, low) if high is None else (low, high)
    return Random.randint(low, high, self.shape, dtype or self.dtype, device or self.device)


DRAWING = """
bernoulli bernoulli_ beta cauchy_ exponential exponential_ gamma geometric_ glorot_uniform kaiming_normal
kaiming_uniform log_normal_ multinomial normal normal_ rand rand_like randint randint_like randn randn_like random_
randperm scaled_uniform uniform uniform_
"""


def random_words(shape: tuple[int, ...], device: str | None = None) -> Words:
  """Random bits for each element, of the generator that the caller gave, or of all."""
  return (local.generator or Random.generator).words(shape, device)


def from_generator(method: Any) -> Any:
  """The method, which draws from `generator=`, if one is given."""

  def gated(*args: Any, generator: Generator | None = None, **options: Any) -> Any:  # see autocast.py
    if generator is None:
      return method(*args, **options)
    before, local.generator = local.generator, generator
    try:
      return method(*args, **options)
    finally:
      local.generator = before

  signature = inspect.signature(method)
  added = inspect.Parameter(
    "generator", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Generator | None"
  )
  taken = [*signature.parameters.values()]
  at = len(taken) - (bool(taken) and taken[-1].kind is inspect.Parameter.VAR_KEYWORD)
  functools.update_wrapper(gated, method)
  gated.__signature__ = signature.replace(parameters=[*taken[:at], added, *taken[at:]])  # type: ignore[attr-defined]
  return gated


def drawing(family: type) -> None:
  """Give the methods of a class that draw random numbers their `generator=`."""
  for name in DRAWING.split():
    method = vars(family).get(name)
    if isinstance(method, staticmethod):
      setattr(family, name, staticmethod(from_generator(method.__func__)))
    elif method is not None:
      setattr(family, name, from_generator(method))


def standard_gamma(shape: Any) -> Tensor:
  """Of a gamma variable of rate 1 for each shape."""
  s, how = shape.shape, {"dtype": shape.dtype, "device": shape.device}
  below = shape < 1  # as of shape + 1, times u ** (1 / shape)
  d = below.where(shape + 1, shape) - 1 / 3
  x: Any = Random.randn(8, *s, **how)  # a row for each try
  root = 1 + x / (9 * d).sqrt()
  v = (root > 0).where(root, 1)
  v = v * v * v
  u = 1 - Random.rand(8, *s, **how)
  accepted = (root > 0) & (u.log() < 0.5 * x * x + d - d * v + d * v.log())
  first = accepted.cast("int32").argmax(0, True)
  rows = Handle._new(graph.iota(8, dtypes.int64)).reshape(8, *(1 for _ in s))
  out = (rows == first).where(d * v, 0).sum(0)
  u = 1 - Random.rand(*s, **how)
  return below.where(out * u ** (1 / below.where(shape, 1)), out)


def _is_complex(dtype: Any) -> bool:
  return dtype is not None and as_dtype(dtype).kind == "c"


def _of_two(make: Any, size: Any, dtype: Any, device: Any, requires_grad: bool, **options: Any) -> Tensor:
  """Complex numbers whose parts are drawn one after the other."""
  kind = real_of(as_dtype(dtype))
  z = complex_numbers().joined(*(make(*size, dtype=kind, device=device, **options) for _ in range(2)))
  return z.requires_grad_() if requires_grad else z


def _float_dtype(what: str, dtype: Any) -> Any:
  kind = as_dtype(dtype) if dtype is not None else dtypes.default_float
  if kind.kind != "f":
    fail(DTypeError, f"{what}: random numbers in [0, 1) are no {kind.name}; randint makes integers")
  return kind
