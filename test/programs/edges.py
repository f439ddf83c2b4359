"""Edges of a picture by Sobel's operator, its histogram made even, and what of it is shown."""


def filtered(np, picture, kernel):
  padded = np.pad(picture.astype(float), 1, mode="reflect")
  rows, columns = picture.shape
  out = np.zeros(picture.shape)
  for i in range(3):
    for j in range(3):
      out += kernel[i, j] * padded[i : i + rows, j : j + columns]
  return out


def evened(np, picture):
  below = np.bincount(picture.ravel(), minlength=256).cumsum()
  table = (below - below.min()) * 255 // (below.max() - below.min())
  return table.astype(np.uint8)[picture]


def program(np):
  y, x = np.mgrid[:32, :48]
  picture = ((np.sin(x / 5) + np.cos(y / 7)) * 60 + 128).astype(np.uint8)
  kernel = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]])
  gx, gy = filtered(np, picture, kernel), filtered(np, picture, kernel.T)
  size, angle = np.hypot(gx, gy), np.arctan2(gy, gx)
  edges = np.where(size > np.percentile(size, 90), 255, 0).astype(np.uint8)

  weights, _, _ = np.histogram2d(x.ravel(), y.ravel(), bins=(4, 4), weights=size.ravel())
  colours = np.stack([picture, edges, evened(np, picture)], axis=-1)
  small = colours.reshape(16, 2, 24, 2, 3).mean(axis=(1, 3))
  mirrored = colours[::-1, :, ::-1].copy()
  rows, columns = np.nonzero(edges)
  box = np.array([rows.min(), rows.max(), columns.min(), columns.max()])
  slopes = np.gradient(picture.astype(float))
  return size, angle, weights, small, mirrored, box, slopes[0], colours.dtype.name
