"""A random graph: its parts, the rank of its pages, shortest ways, degrees and triangles."""


def ranks(np, links, degrees):
  n = len(links)
  flow = links / np.where(degrees == 0, 1, degrees)
  p = np.full(n, 1 / n)
  for _ in range(100):
    q = 0.85 * flow @ p + 0.15 / n
    if np.abs(q - p).sum() < 1e-10:
      break
    p = q
  return p


def distances(np, links):
  """Floyd and Warshall's."""
  far = np.where(links > 0, 1.0, np.inf)
  np.fill_diagonal(far, 0)
  for k in range(len(links)):
    far = np.minimum(far, far[:, k, None] + far[None, k, :])
  return far


def program(np):
  n = 12
  links = np.triu((np.random.default_rng(3).random((n, n)) < 0.25).astype(int), 1)
  links = links + links.T
  degrees = links.sum(axis=0)
  values, _ = np.linalg.eigh(np.diag(degrees) - links)
  parts = int(np.sum(values < 1e-9))

  order = np.lexsort((np.arange(n), -degrees))
  i, j = np.triu_indices(n, 1)
  edges = np.column_stack([i, j])[links[i, j] > 0]
  counted = np.zeros(n, dtype=int)
  np.add.at(counted, edges.ravel(), 1)
  np.testing.assert_array_equal(degrees, counted)
  sizes, times = np.unique(degrees, return_counts=True)
  triangles = np.trace(np.linalg.matrix_power(links, 3)) // 6
  return values, parts, ranks(np, links, degrees), distances(np, links), order, edges, sizes, times, triangles
