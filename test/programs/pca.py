"""Principal components, by the covariance and by the singular values, and whitening."""


def standardize(np, data):
  mean = data.mean(axis=0, keepdims=True)
  scale = data.std(axis=0, ddof=1, keepdims=True)
  scale[scale == 0] = 1.0
  return (data - mean) / scale


def fixed_signs(np, vectors):
  """Each column with its largest entry positive."""
  largest = np.argmax(np.abs(vectors), axis=0)
  signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
  return vectors * signs


def by_covariance(np, data, count):
  covariance = np.cov(data, rowvar=False)
  values, vectors = np.linalg.eigh(covariance)
  order = np.argsort(values)[::-1][:count]
  return values[order], fixed_signs(np, vectors[:, order])


def by_svd(np, data, count):
  centered = data - data.mean(axis=0)
  _, s, vh = np.linalg.svd(centered, full_matrices=False)
  return s[:count] ** 2 / (len(data) - 1), fixed_signs(np, vh.T[:, :count])


def program(np):
  rng = np.random.default_rng(11)
  mixing = rng.normal(size=(5, 5))
  data = standardize(np, rng.normal(size=(80, 5)) * np.array([5.0, 3.0, 1.0, 0.5, 0.1]) @ mixing)
  values, vectors = by_covariance(np, data, 3)
  again, others = by_svd(np, data, 3)
  scores = data @ vectors
  whitened = scores / np.sqrt(values)
  rebuilt = scores @ vectors.T
  error = np.mean((data - rebuilt) ** 2)
  explained = values / np.trace(np.cov(data.T))
  agree = np.allclose(values, again) and np.allclose(vectors, others)
  return values, vectors, np.cumsum(explained), np.corrcoef(whitened.T).round(9), error, agree
