"""A filter by FFT: a spectrum, a low pass, a convolution by products, and Poisson's equation on a torus."""


def spectrum(np, x, rate):
  power = np.abs(np.fft.rfft(x)) ** 2 / len(x)
  return np.fft.rfftfreq(len(x), 1 / rate), power


def lowpass(np, x, rate, cutoff):
  transformed = np.fft.rfft(x)
  transformed[np.fft.rfftfreq(len(x), 1 / rate) > cutoff] = 0
  return np.fft.irfft(transformed, n=len(x))


def convolved(np, a, b):
  n = len(a) + len(b) - 1
  return np.fft.ifft(np.fft.fft(a, n) * np.fft.fft(b, n)).real


def poisson(np, source):
  n, m = source.shape
  kx = 2 * np.pi * np.fft.fftfreq(n)[:, None]
  ky = 2 * np.pi * np.fft.fftfreq(m)[None, :]
  weight = 2 * np.cos(kx) + 2 * np.cos(ky) - 4
  weight[0, 0] = 1.0
  transformed = np.fft.fft2(source - source.mean()) / weight
  return np.real(np.fft.ifft2(transformed))


def analytic(np, x):
  """The signal whose imaginary part is the Hilbert transform: its magnitude is the envelope."""
  weight = np.zeros(len(x))
  weight[0] = weight[len(x) // 2] = 1
  weight[1 : len(x) // 2] = 2
  return np.fft.ifft(np.fft.fft(x) * weight)


def program(np):
  rate, rng = 64.0, np.random.default_rng(4)
  t = np.arange(128) / rate
  clean = (1 + 0.5 * np.sin(2 * np.pi * t)) * np.cos(2 * np.pi * 6 * t)
  noisy = clean + 0.4 * rng.standard_normal(128)
  frequencies, power = spectrum(np, noisy, rate)
  filtered = lowpass(np, noisy, rate, 9.0)
  taps = np.hanning(7) / np.hanning(7).sum()
  smooth = convolved(np, noisy, taps)
  source = np.zeros((8, 8))
  source[2, 3], source[5, 6] = 1.0, -1.0
  potential = poisson(np, source)
  back = sum(np.roll(potential, s, axis=a) for a in (0, 1) for s in (1, -1)) - 4 * potential
  z = analytic(np, clean)
  turned = np.exp(1j * np.angle(z)) * np.abs(z)
  return (
    frequencies[np.argmax(power)], filtered, smooth, np.allclose(smooth, np.convolve(noisy, taps)),
    potential, np.abs(back - source).max() < 1e-12, np.abs(z), np.allclose(turned, z), z.imag[:5],
  )  # fmt: skip
