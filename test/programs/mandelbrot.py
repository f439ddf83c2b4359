"""The Mandelbrot set in real arithmetic: how soon each point escapes, a histogram, and a picture in characters."""


def grid(np, width, height):
  y, x = np.mgrid[0:height, 0:width]
  return -2.2 + 3.0 * x / (width - 1), -1.2 + 2.4 * y / (height - 1)


def escape(np, cx, cy, limit):
  x, y = np.zeros_like(cx), np.zeros_like(cy)
  steps = np.full(cx.shape, limit, dtype=np.int64)
  inside = np.ones(cx.shape, dtype=bool)
  for n in range(limit):
    x, y = np.where(inside, x * x - y * y + cx, x), np.where(inside, 2 * x * y + cy, y)
    gone = inside & (x * x + y * y > 4)
    steps[gone] = n
    inside &= ~gone
    if not inside.any():
      break
  return steps, inside


def smooth(np, steps, limit):
  """Equalized: the share of points that escape no later."""
  counts, _ = np.histogram(steps, bins=np.arange(limit + 2))
  share = np.cumsum(counts) / counts.sum()
  return share[steps]


def draw(np, steps, limit):
  shades = np.array([ord(c) for c in " .:-=+*#%@"], dtype=np.uint8)
  level = np.minimum(steps * len(shades) // limit, len(shades) - 1)
  return [bytes(row.tolist()).decode() for row in shades[level]]


def program(np):
  limit = 16
  cx, cy = grid(np, 32, 20)
  steps, inside = escape(np, cx, cy, limit)
  area = inside.mean() * 3.0 * 2.4
  columns = inside.sum(axis=0)
  widest = np.argmax(columns)
  return steps, smooth(np, steps, limit), draw(np, steps, limit), area, columns, widest, cx[0, widest]
