"""k-means: Lloyd's iteration from farthest-first centers."""


def make_blobs(np, centers, each, spread, seed):
  rng = np.random.default_rng(seed)
  parts = [rng.normal(c, spread, (each, 2)) for c in centers]
  labels = np.repeat(np.arange(len(centers)), each)
  return np.concatenate(parts), labels


def farthest_first(np, points, k):
  chosen = [points[0]]
  for _ in range(k - 1):
    distances = np.stack([((points - c) ** 2).sum(axis=1) for c in chosen])
    chosen.append(points[np.argmax(distances.min(axis=0))])
  return np.array(chosen)


def assign(np, points, centers):
  distances = np.linalg.norm(points[:, None, :] - centers[None, :, :], axis=2)
  return np.argmin(distances, axis=1), distances.min(axis=1)


def lloyd(np, points, k, limit=20):
  centers = farthest_first(np, points, k)
  for step in range(limit):
    labels, _ = assign(np, points, centers)
    moved = np.zeros_like(centers)
    for j in range(k):
      members = points[labels == j]
      moved[j] = members.mean(axis=0) if len(members) else centers[j]
    if np.allclose(moved, centers):
      break
    centers = moved
  labels, distances = assign(np, points, centers)
  return centers, labels, (distances**2).sum(), step


def program(np):
  points, truth = make_blobs(np, [(0.0, 0.0), (4.0, 1.0), (1.0, 5.0)], 30, 0.6, seed=3)
  centers, labels, inertia, steps = lloyd(np, points, 3)
  confusion = np.zeros((3, 3), dtype=int)
  np.add.at(confusion, (truth, labels), 1)
  order = np.lexsort((centers[:, 1], centers[:, 0]))
  return centers[order], np.bincount(labels, minlength=3), confusion.max(axis=1), inertia, steps
