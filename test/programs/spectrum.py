"""Spectra of a noisy signal in windows, the tone that is loudest in each, a running average and a histogram."""


def signal(np, rate):
  t = np.arange(0, 2, 1 / rate)
  noise = 0.2 * np.random.default_rng(1).standard_normal(t.size)
  return np.sin(2 * np.pi * 17 * t) + 0.5 * np.cos(2 * np.pi * 40 * t) + noise


def spectrogram(np, x, size, hop, rate):
  frames = np.lib.stride_tricks.sliding_window_view(x, size)[::hop]
  power = np.abs(np.fft.rfft(frames * np.hanning(size), axis=-1)) ** 2
  return np.fft.rfftfreq(size, 1 / rate), power


def program(np):
  rate = 256
  x = signal(np, rate)
  frequencies, power = spectrogram(np, x, 128, 64, rate)
  decibels = 10 * np.log10(np.maximum(power, 1e-12))
  loudest = frequencies[np.argmax(power, axis=1)]
  smooth = np.convolve(x, np.ones(5) / 5, mode="same")
  counts, edges = np.histogram(smooth, bins=10, range=(-2, 2))
  with np.printoptions(precision=3, suppress=True):
    text = str(np.round(decibels[0, :4], 1))
  quantiles = np.percentile(x, [5, 50, 95])
  np.testing.assert_allclose(quantiles[1], np.median(x))
  energy = np.trapezoid(x**2, dx=1 / rate)
  assert power.shape == (len(loudest), size_of(128))
  return power, loudest, smooth, counts, edges, text, quantiles, f"{energy:.6f}"


def size_of(n):
  return n // 2 + 1
