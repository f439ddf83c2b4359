"""Signals without complex numbers: a moving average, a window's filter, its response, peaks, and a resampling."""


def signal(np, n, rng):
  t = np.arange(n) / n
  clean = np.sin(2 * np.pi * 5 * t) + 0.5 * np.cos(2 * np.pi * 12 * t)
  return t, clean, clean + 0.3 * rng.standard_normal(n)


def lowpass(np, cutoff, length):
  k = np.arange(length) - (length - 1) / 2
  taps = np.sinc(2 * cutoff * k) * np.hamming(length)
  return taps / taps.sum()


def response(np, taps, frequencies):
  k = np.arange(len(taps))
  angle = 2 * np.pi * np.outer(frequencies, k)
  return np.hypot((np.cos(angle) * taps).sum(axis=1), (np.sin(angle) * taps).sum(axis=1))


def peaks(np, x):
  inner = (x[1:-1] > x[:-2]) & (x[1:-1] >= x[2:])
  return np.flatnonzero(inner) + 1


def median_filter(np, x, width):
  padded = np.pad(x, width // 2, mode="edge")
  windows = np.stack([padded[i : i + len(x)] for i in range(width)])
  return np.median(windows, axis=0)


def program(np):
  rng = np.random.default_rng(21)
  t, clean, noisy = signal(np, 160, rng)
  taps = lowpass(np, 0.1, 21)
  filtered = np.convolve(noisy, taps, mode="same")
  averaged = np.convolve(noisy, np.ones(5) / 5, mode="valid")
  gains = response(np, taps, np.linspace(0, 0.5, 9))
  spiky = clean.copy()
  spiky[::40] += 5.0
  repaired = median_filter(np, spiky, 5)
  found = peaks(np, filtered)
  resampled = np.interp(np.linspace(0, 0.9, 7), t, filtered)
  envelope = np.maximum.accumulate(np.abs(filtered))
  error = np.sqrt(np.mean((filtered - clean)[20:-20] ** 2))
  return filtered, averaged, 20 * np.log10(gains[:3]), found, repaired, resampled, envelope[-1], error
