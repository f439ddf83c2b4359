"""Logistic regression by Newton's method and by gradient descent with momentum, with its error and its curve."""


def sigmoid(np, x):
  return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def with_bias(np, x):
  return np.hstack([np.ones((len(x), 1)), x])


def loss(np, w, x, y, ridge):
  z = x @ w
  return np.mean(np.logaddexp(0, z) - y * z) + 0.5 * ridge * np.dot(w[1:], w[1:])


def slope(np, w, x, y, ridge):
  g = x.T @ (sigmoid(np, x @ w) - y) / len(y)
  g[1:] += ridge * w[1:]
  return g


def newton(np, x, y, ridge, steps=5):
  w = np.zeros(x.shape[1])
  for _ in range(steps):
    p = sigmoid(np, x @ w)
    hessian = (x * (p * (1 - p))[:, None]).T @ x / len(y)
    hessian[1:, 1:] += ridge * np.eye(len(w) - 1)
    w = w - np.linalg.solve(hessian, slope(np, w, x, y, ridge))
  return w


def descend(np, x, y, ridge, steps=30, rate=0.5):
  w, v, losses = np.zeros(x.shape[1]), np.zeros(x.shape[1]), []
  for _ in range(steps):
    v = 0.8 * v - rate * slope(np, w, x, y, ridge)
    w += v
    losses.append(loss(np, w, x, y, ridge))
  return w, np.array(losses)


def area_under_curve(np, score, y):
  order = np.argsort(-score, kind="stable")
  hits = np.cumsum(y[order]) / y.sum()
  misses = np.cumsum(1 - y[order]) / (1 - y).sum()
  return np.trapezoid(np.concatenate(([0.0], hits)), np.concatenate(([0.0], misses)))


def program(np):
  rng = np.random.default_rng(9)
  x = with_bias(np, rng.normal(size=(120, 3)))
  y = (sigmoid(np, x @ np.array([0.5, 2.0, -1.0, 0.0])) > rng.random(120)).astype(float)
  w = newton(np, x, y, 0.01)
  other, losses = descend(np, x, y, 0.01)
  score = sigmoid(np, x @ w)
  accuracy = ((score > 0.5) == (y > 0.5)).mean()
  return (
    w,
    other,
    losses[::10],
    bool((np.diff(losses[-10:]) < 0).all()),
    accuracy,
    area_under_curve(np, score, y),
  )
