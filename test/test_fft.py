"""Fourier transforms against NumPy and PyTorch: every function, lengths, types, gradients, devices, and what they cost."""

import numpy as np
import pytest

import mini
from mini import Tensor, dtypes
from mini.engine.plan import scheduled
from mini.engine.program import cost
from mini.tensor.fourier import PRIME, RADIX, half_radices, radices, smooth
from mini.text.printer import graph_program
from mini.types import DTypeError, ShapeError
from runtime.base import DeviceError

LENGTHS = [
  1,
  2,
  3,
  4,
  5,
  6,
  7,
  8,
  12,
  16,
  31,
  33,
  60,
  61,
  64,
  67,
  100,
  127,
  128,
  243,
  360,
  509,
  512,
  997,
  7919,
]
QUICK = [1, 12, 61, 67, 360, 7919]
MOST = {np.complex64: 1e-6, np.complex128: 1e-14}


def numbers(rng, *shape, dtype=np.complex64):
  return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def off(got, want):
  return np.linalg.norm(got - want) / max(np.linalg.norm(want), 1e-30)


# ---------------------------------------------------------------- lengths


@pytest.mark.parametrize("n", [n if n in QUICK else pytest.param(n, marks=pytest.mark.full) for n in LENGTHS])
def test_lengths(n, rng):
  compare_lengths([n], rng, "CPU")


@pytest.mark.full
def test_lengths_drawn_at_random(rng):
  compare_lengths(map(int, rng.choice(512, 16, replace=False) + 1), rng, "CPU")


@pytest.mark.full
@pytest.mark.parametrize("first", range(1, 513, 64))
def test_all_lengths(first, rng):
  compare_lengths(range(first, first + 64), rng, "INTERP")


def test_lengths_in_the_interpreter(rng):
  compare_lengths([*range(1, 65), *range(65, 513, 31), 997], rng, "INTERP")


def compare_lengths(lengths, rng, device):
  """There and back, in both types, against NumPy's in float64; all of them computed together."""
  found = {}
  for n in lengths:
    for dtype in MOST:
      x = numbers(rng, 2, n, dtype=dtype)
      t = Tensor(x, device=device)
      found[n, dtype] = x, mini.fft.fft(t), mini.fft.ifft(t)
  Tensor.realize(*(t for _, *ts in found.values() for t in ts))
  for (n, dtype), (x, there, back) in found.items():
    for got, want in ((there, np.fft.fft(x.astype(complex))), (back, np.fft.ifft(x.astype(complex)))):
      assert got.numpy().dtype == dtype
      assert off(got.numpy(), want) < MOST[dtype], (n, dtype)


def test_lengths_are_cut_into_few_small_matrices():
  assert radices(1024) == (32, 32) and radices(1) == (1,) and radices(61) == (61,) and radices(67) is None
  for n in range(1, 2000):
    sizes = radices(n)
    if sizes is None:
      assert any(n % p == 0 for p in range(PRIME + 1, n + 1))
    else:
      assert np.prod(sizes) == n and all(m <= RADIX or m <= PRIME for m in sizes)
  for n in (1, 2, 7, 1993, 15837):
    assert smooth(n) == next(m for m in range(n, 2 * n + 1) if set(_primes(m)) <= {2, 3, 5})


def test_real_lengths(rng):
  """Where half the length is transformed, and where not. What is imaginary of the first and last is dropped."""
  found = []
  for n in (1, 2, 3, 9, 32, 33, 60, 62, 64, 66, 67, 122, 128, 130, 134, 360, 2 * 127):
    x, z = rng.standard_normal((2, n)), numbers(rng, 2, n // 2 + 1, dtype=complex)
    whole = np.fft.irfft(z, n=n)
    z.imag[:, 0] = np.inf
    found.append((mini.fft.rfft(Tensor(x, device="INTERP")), np.fft.rfft(x)))
    found.append((mini.fft.irfft(Tensor(z, device="INTERP"), n=n), whole))
  Tensor.realize(*(got for got, _ in found))
  for got, want in found:
    assert got.shape == want.shape and off(got.numpy(), want) < 1e-14


def test_real_numbers_take_half_the_operations():
  for n in (30, 60, 64, 68, 134, 360, 1024, 2 * 997):
    assert half_radices(n) is None or np.prod(half_radices(n) or n // 2) == n // 2
    x, z = Tensor.ones(2, n).realize(), Tensor.ones(2, n // 2 + 1).realize().cfloat()
    whole = operations(mini.fft.fft(x.cfloat()))
    assert operations(mini.fft.rfft(x)) <= 0.51 * whole and operations(mini.fft.irfft(z)) <= 0.51 * whole
  assert half_radices(1024) == (32, 16) and half_radices(2 * 997) == () and half_radices(30) is None
  assert half_radices(67) is half_radices(1) is None


def operations(x):
  kernels = scheduled(graph_program("g", tuple(p.uop for p in x._parts()))).kernels
  return sum(cost(k)[0] for k in kernels)


def _primes(n):
  return [p for p in range(2, n + 1) if n % p == 0 and all(p % q for q in range(2, p))]


# ---------------------------------------------------------------- the functions

# name: other arguments, in turn
# fmt: off
CALLS = {
  "fft":    ({}, {"n": 5}, {"n": 9}, {"dim": 0}, {"norm": "ortho"}, {"norm": "forward", "dim": 1}, {"norm": "backward"}),
  "ifft":   ({}, {"n": 5}, {"n": 9}, {"dim": 0}, {"norm": "ortho"}, {"norm": "forward"}),
  "irfft":  ({}, {"n": 5}, {"n": 12}, {"n": 7, "dim": 0}, {"norm": "ortho"}, {"norm": "forward"}),
  "hfft":   ({}, {"n": 5}, {"n": 12}, {"dim": 1}, {"norm": "ortho"}, {"norm": "forward"}),
  "fft2":   ({}, {"s": (5, 3)}, {"dim": (0, 2)}, {"norm": "ortho"}),
  "ifft2":  ({}, {"s": (5, 3)}, {"norm": "forward"}),
  "irfft2": ({}, {"s": (3, 7)}, {"dim": (0, 1)}, {"norm": "ortho"}),
  "fftn":   ({}, {"s": (5, 3)}, {"dim": (0, 2)}, {"dim": 1}, {"s": (2, -1, 9), "dim": (0, 1, 2)}),
  "ifftn":  ({}, {"s": (5, 3)}, {"norm": "ortho"}),
  "irfftn": ({}, {"s": (3, 7)}, {"dim": (1, 0)}, {"norm": "forward"}),
  "rfft":   ({}, {"n": 5}, {"n": 9}, {"dim": 0}, {"norm": "ortho"}, {"norm": "forward"}),
  "ihfft":  ({}, {"n": 5}, {"n": 9}, {"norm": "ortho"}, {"norm": "forward"}),
  "rfft2":  ({}, {"s": (5, 3)}, {"norm": "ortho"}),
  "rfftn":  ({}, {"s": (5, 3)}, {"dim": (1, 0)}, {"norm": "forward"}),
  "fftshift": ({}, {"dim": 1}, {"dim": (0, 2)}), "ifftshift": ({}, {"dim": 1}, {"dim": (0, 2)}),
}
# fmt: on
REAL = ("rfft", "ihfft", "rfft2", "rfftn")


def inputs(name, rng):
  whole = numbers(rng, 3, 4, 6)
  kinds = [whole.real, whole.real.astype(np.float64)]
  return kinds if name in REAL else [*kinds, whole, whole.astype(complex)]


@pytest.mark.parametrize("device", [pytest.param("CPU", marks=pytest.mark.full), "INTERP"])
@pytest.mark.parametrize("name", CALLS)
def test_functions(name, device, rng):
  """Values and types, of float32, float64 and complex numbers, and gradients of those of the widest type."""
  torch = pytest.importorskip("torch")
  pairs = []
  for x in inputs(name, rng):
    for options in CALLS[name]:
      mine, theirs = Tensor(x, device=device, requires_grad=True), torch.tensor(x, requires_grad=True)
      got, want = getattr(mini.fft, name)(mine, **options), getattr(torch.fft, name)(theirs, **options)
      assert got.shape == tuple(want.shape) and got.dtype.name == str(want.dtype).removeprefix("torch."), (
        options
      )
      w = np.cos(np.arange(got.numel())).reshape(got.shape)
      slope = (parts(got)[0] * Tensor(w, device=device) + parts(got)[-1] * 0.5).sum().gradient(mine)[0]
      (parts(want)[0] * torch.tensor(w) + parts(want)[-1] * 0.5).sum().backward()
      pairs += [(got, want, options), (slope, theirs.grad, options)]
  Tensor.realize(*(got for got, _, _ in pairs))
  for got, want, options in pairs:
    most = 1e-13 if got.dtype in (dtypes.float64, dtypes.complex128) else 2e-6
    assert off(got.numpy(), want.detach().resolve_conj().numpy()) < most, options


def parts(x):
  return (x.real, x.imag) if x.is_complex() else (x,)


def test_integers_halves_and_nothing():
  assert mini.fft.fft(Tensor([1, 2, 3])).dtype is dtypes.complex64
  assert mini.fft.fft(Tensor([1.0, 2.0], dtype="float16")).dtype is dtypes.complex64
  assert mini.fft.rfft(Tensor([True, False])).tolist() == [1, 1]
  assert mini.fft.fft(Tensor.zeros(0, 4)).shape == (0, 4)
  empty = mini.fft.rfft(Tensor.zeros(0, 60))
  assert empty.shape == (0, 31) and mini.fft.irfft(empty).numpy().shape == (0, 60)
  for f in (mini.fft.fftfreq, mini.fft.rfftfreq):
    for n, d in ((1, 1.0), (8, 0.5), (9, 2.0)):
      np.testing.assert_allclose(f(n, d, dtype="float64").numpy(), getattr(np.fft, f.__name__)(n, d))


def test_wrong_arguments():
  x = Tensor([[1.0, 2.0]])
  for wrong, error, says in (
    (lambda: mini.fft.fft(x, norm="half"), ValueError, "fft: norm is"),
    (lambda: mini.fft.fft(x, 0), ShapeError, "fft: 0 elements"),
    (lambda: mini.fft.fft(x, dim=2), ShapeError, "there is no axis 2"),
    (lambda: mini.fft.fft(Tensor(1.0)), ShapeError, "a 0-d tensor"),
    (lambda: mini.fft.fft([1.0]), DTypeError, "not a tensor"),
    (lambda: mini.fft.rfft(x.cfloat()), DTypeError, "rfft: x is complex64, and not real"),
    (lambda: mini.fft.irfft(x[:, :1]), ShapeError, "irfft: 0 elements"),
    (lambda: mini.fft.fftn(x, (1, 2, 3)), ShapeError, "3 sizes for the 2 axes"),
    (lambda: mini.fft.fftn(x, (1, 2), (0,)), ShapeError, "2 sizes for 1 axes"),
    (lambda: mini.fft.fftn(x, dim=(0, 0)), ShapeError, "twice"),
    (lambda: mini.fft.rfftn(x, dim=()), ShapeError, "no axis"),
    (lambda: mini.fft.fftfreq(0), ValueError, "fftfreq: n is a positive integer"),
    (lambda: x.stft(4), ValueError, "return_complex is to be told"),
    (lambda: x.stft(4, 0, return_complex=True), ValueError, "pieces of 4 samples, 0 apart"),
    (lambda: x.stft(0, 1, return_complex=True), ValueError, "pieces of 0 samples"),
    (lambda: x.cfloat().stft(4, onesided=True), ValueError, "all frequencies are needed"),
    (lambda: x[None].stft(4, return_complex=True), ShapeError, "3 axes"),
    (lambda: x.stft(4, center=False, return_complex=True), ShapeError, "fewer samples than a piece"),
    (lambda: x.stft(4, window=x[0], return_complex=True), ShapeError, "the window does not have 4 elements"),
    (lambda: x.istft(4), DTypeError, "istft: x is not complex"),
    (lambda: x.cfloat().istft(4), ShapeError, "3 frequencies"),
    (lambda: Tensor.hann_window(-1), ValueError, "-1 elements"),
  ):  # fmt: skip
    with pytest.raises(error, match=says):
      wrong()


# ---------------------------------------------------------------- together with the rest


def test_a_filter_is_trained_through_transforms(rng):
  """The gradient of the product in the frequency domain is that of the circular convolution."""
  x, w = rng.standard_normal(12), rng.standard_normal(12)
  a, b = Tensor(x, requires_grad=True), Tensor(w, requires_grad=True)
  out = mini.fft.irfft(mini.fft.rfft(a) * mini.fft.rfft(b), n=12)
  size = abs(w).sum()  # of what is added up, which may come out near 0
  want = [sum(x[j] * w[(k - j) % 12] for j in range(12)) for k in range(12)]
  np.testing.assert_allclose(out.numpy(), want, rtol=1e-12, atol=1e-14 * size * abs(x).max())
  (slope,) = (out * Tensor(np.arange(12.0))).sum().gradient(a)
  want = [sum(k * w[(k - j) % 12] for k in range(12)) for j in range(12)]
  np.testing.assert_allclose(slope.numpy(), want, rtol=1e-10, atol=1e-14 * size * 12)
  second = (slope * slope).sum().gradient(b)[0]
  near = [np.sum([sum(k * (w + s * np.eye(12)[m])[(k - j) % 12] for k in range(12)) ** 2 for j in range(12)])
          for s in (1e-6, -1e-6) for m in (3,)]  # fmt: skip
  assert second.numpy()[3] == pytest.approx((near[0] - near[1]) / 2e-6, rel=1e-6)


def test_under_jit_and_vmap(rng):
  z = numbers(rng, 3, 20)
  transform = mini.jit(lambda z: mini.fft.ifft(mini.fft.fft(z) * 2))
  for _ in range(3):
    np.testing.assert_allclose(transform(Tensor(z)).numpy(), 2 * z, atol=1e-5)
  np.testing.assert_allclose(mini.vmap(mini.fft.fft)(Tensor(z)).numpy(), np.fft.fft(z), atol=1e-4)


@pytest.mark.parametrize("device", ["CL", "CUDA", "METAL"])
def test_on_other_devices(device, rng):
  z = numbers(rng, 2, 67)
  with mini.Context(EMULATE=int(device != "CL")):
    try:
      got = [mini.fft.fft(Tensor(x, device=device)) for x in (z, z[:, :24])]
      assert all(g.device.startswith(device) for g in got)
      Tensor.realize(*got)
    except DeviceError as e:
      pytest.skip(str(e))
    for g, x in zip(got, (z, z[:, :24])):
      assert off(g.numpy(), np.fft.fft(x)) < 1e-6


# ---------------------------------------------------------------- pieces of a signal

PIECES = (
  {"n_fft": 16}, {"n_fft": 16, "hop_length": 3}, {"n_fft": 16, "win_length": 8, "hop_length": 4},
  {"n_fft": 15, "hop_length": 5, "center": False}, {"n_fft": 16, "normalized": True}, {"n_fft": 16, "onesided": False},
)  # fmt: skip


@pytest.mark.filterwarnings("ignore:A window was not provided:UserWarning")
@pytest.mark.parametrize("options", PIECES, ids=str)
def test_stft(options, rng):
  torch = pytest.importorskip("torch")
  x = rng.standard_normal((2, 50))
  mine, theirs = Tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
  w = None if "win_length" not in options else 0.1 + np.hanning(8)
  ours = {"window": None if w is None else Tensor(w), **options}
  others = {"window": None if w is None else torch.tensor(w), **options}
  a, b = mine.stft(return_complex=True, **ours), torch.stft(theirs, return_complex=True, **others)
  again, want = a.istft(length=45, **ours), torch.istft(b, length=45, **others)
  (slope,) = (a.abs().sum() + (again**3).sum()).gradient(mine)
  (b.abs().sum() + (want**3).sum()).backward()
  Tensor.realize(a, again, slope)
  for got, ref in ((a, b), (again, want), (slope, theirs.grad)):
    np.testing.assert_allclose(got.numpy(), ref.detach().numpy(), atol=1e-9)


def test_stft_of_complex_numbers(rng):
  torch = pytest.importorskip("torch")
  z = numbers(rng, 40, dtype=complex)
  options = {"window": Tensor.hann_window(8, dtype="float64")}
  a = Tensor(z).stft(8, return_complex=True, **options)
  want = torch.stft(torch.tensor(z), 8, return_complex=True, window=torch.hann_window(8, dtype=torch.float64))
  np.testing.assert_allclose(a.numpy(), want.numpy(), atol=1e-12)
  np.testing.assert_allclose(
    a.istft(8, return_complex=True, onesided=False, **options).numpy(), z, atol=1e-12
  )
  assert Tensor(z.real).stft(8, return_complex=False).shape == (5, 21, 2)
  with pytest.raises(ShapeError, match="no window covers"):
    a.istft(8, hop_length=8, return_complex=True, onesided=False, center=False, window=options["window"])


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
def test_windows(name):
  torch = pytest.importorskip("torch")
  for n in (0, 1, 2, 3, 8, 9):
    for periodic in (True, False):
      got = getattr(Tensor, f"{name}_window")(n, periodic, dtype="float64")
      np.testing.assert_allclose(
        got.numpy(), getattr(torch, f"{name}_window")(n, periodic, dtype=torch.float64), atol=1e-12
      )
  assert getattr(Tensor, f"{name}_window")(4).dtype is dtypes.float32
