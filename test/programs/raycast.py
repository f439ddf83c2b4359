"""Ray casting: spheres above a plane, with a light, shadows, and a depth image."""


def unit(np, v):
  return v / np.linalg.norm(v, axis=-1, keepdims=True)


def rays(np, width, height):
  x = np.linspace(-1, 1, width)
  y = np.linspace(0.75, -0.75, height)
  xx, yy = np.meshgrid(x, y)
  return unit(np, np.stack([xx, yy, np.full_like(xx, 1.5)], axis=-1))


def hit_sphere(np, origin, direction, center, radius):
  """The distance along each ray, infinite where it misses."""
  to = origin - center
  b = (direction * to).sum(axis=-1)
  c = (to * to).sum(axis=-1) - radius**2
  under = b * b - c
  root = np.sqrt(np.where(under > 0, under, 0.0))
  near, far = -b - root, -b + root
  t = np.where(near > 1e-4, near, far)
  return np.where((under > 0) & (t > 1e-4), t, np.inf)


def hit_plane(np, origin, direction, height):
  with np.errstate(divide="ignore", invalid="ignore"):
    t = (height - origin[..., 1]) / direction[..., 1]
  return np.where(t > 1e-4, t, np.inf)


def program(np):
  spheres = [
    (np.array([0.0, 0.0, 4.0]), 1.0),
    (np.array([1.4, -0.4, 3.2]), 0.6),
    (np.array([-1.5, -0.5, 3.5]), 0.5),
  ]
  light = np.array([3.0, 4.0, -2.0])
  direction = rays(np, 24, 18)
  origin = np.zeros(3)
  depths = np.stack(
    [hit_sphere(np, origin, direction, c, r) for c, r in spheres]
    + [hit_plane(np, direction * 0, direction, -1.0)]
  )
  which = np.argmin(depths, axis=0)
  depth = np.min(depths, axis=0)
  seen = np.isfinite(depth)
  point = direction * np.where(seen, depth, 0.0)[..., None]
  normal = np.zeros_like(point)
  normal[..., 1] = 1.0
  for n, (center, radius) in enumerate(spheres):
    mask = which == n
    normal[mask] = ((point - center) / radius)[mask]
  to_light = unit(np, light - point)
  shaded = np.clip((normal * to_light).sum(-1), 0, None)
  blocked = np.zeros(shaded.shape, dtype=bool)
  for center, radius in spheres:
    blocked |= np.isfinite(hit_sphere(np, point + 1e-3 * normal, to_light, center, radius))
  image = np.where(seen, 0.1 + 0.9 * np.where(blocked, 0.0, shaded), 0.0)
  pixels = (image * 255).round().astype(np.uint8)
  return pixels, which[seen].sum(), depth[seen].min(), np.count_nonzero(blocked & seen), image.mean()
