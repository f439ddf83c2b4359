"""A parabola through noisy points: least squares in three ways, leverages, residuals and cross-validation."""


def fit(np, a, y):
  coefficients, _, rank, _ = np.linalg.lstsq(a, y, rcond=None)
  return coefficients, rank


def cross_validated(np, a, y, folds):
  errors = []
  for k, held in enumerate(folds):
    rest = np.concatenate([f for j, f in enumerate(folds) if j != k])
    w, _ = fit(np, a[rest], y[rest])
    errors.append(np.mean((a[held] @ w - y[held]) ** 2))
  return np.array(errors)


def program(np):
  rng = np.random.default_rng(0)
  x = np.linspace(-3, 3, 60)
  y = 1.5 * x**2 - 2 * x + 0.5 + rng.normal(0, 0.1, x.shape)
  a = np.vander(x, 3)
  w, rank = fit(np, a, y)
  np.testing.assert_allclose(w, np.polyfit(x, y, 2), rtol=1e-6)
  q, r = np.linalg.qr(a)
  assert np.allclose(w, np.linalg.solve(r, q.T @ y))

  fitted = a @ w
  r2 = 1 - np.sum((y - fitted) ** 2) / np.sum((y - y.mean()) ** 2)
  leverage = np.diag(a @ np.linalg.inv(a.T @ a) @ a.T)
  residuals = np.empty_like(y)
  np.subtract(y, fitted, out=residuals)
  residuals /= np.sqrt(np.clip(1 - leverage, 1e-9, None))
  worst = np.argsort(np.abs(residuals))[::-1][:5]
  errors = cross_validated(np, a, y, np.array_split(rng.permutation(60), 5))
  return w, rank, float(r2), leverage, residuals, worst, errors
