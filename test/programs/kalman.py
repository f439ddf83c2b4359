"""A Kalman filter that follows a falling ball from noisy heights, and the smoother that runs back."""


def simulate(np, steps, dt, rng):
  times = np.arange(steps) * dt
  truth = 50.0 + 4.0 * times - 0.5 * 9.81 * times**2
  return truth, truth + rng.normal(0, 2.0, steps)


def predict(np, x, p, f, q, u):
  return f @ x + u, f @ p @ f.T + q


def update(np, x, p, z, h, r):
  y = z - h @ x
  s = h @ p @ h.T + r
  k = p @ h.T @ np.linalg.inv(s)
  x = x + k @ y
  return x, (np.eye(len(x)) - k @ h) @ p, y, s


def smooth(np, means, covariances, predicted, spreads, f):
  out = [means[-1]]
  for t in reversed(range(len(means) - 1)):
    gain = covariances[t] @ f.T @ np.linalg.inv(spreads[t + 1])
    out.append(means[t] + gain @ (out[-1] - predicted[t + 1]))
  return np.stack(out[::-1])


def program(np):
  dt, rng = 0.1, np.random.default_rng(5)
  truth, heights = simulate(np, 25, dt, rng)
  f = np.array([[1.0, dt], [0.0, 1.0]])
  u = np.array([-0.5 * 9.81 * dt**2, -9.81 * dt])
  h, r, q = np.array([[1.0, 0.0]]), np.array([[4.0]]), np.diag([1e-3, 1e-2])
  x, p = np.array([heights[0], 0.0]), np.eye(2) * 10
  means, covariances, predicted, spreads, likelihood = [], [], [], [], 0.0
  for z in heights:
    x, p = predict(np, x, p, f, q, u)
    predicted.append(x)
    spreads.append(p)
    x, p, y, s = update(np, x, p, np.atleast_1d(z), h, r)
    means.append(x)
    covariances.append(p)
    likelihood += -0.5 * (np.log(2 * np.pi * s[0, 0]) + y[0] ** 2 / s[0, 0])
  filtered = np.array(means)
  smoothed = smooth(np, means, covariances, predicted, spreads, f)
  errors = [np.sqrt(np.mean((e - truth) ** 2)) for e in (heights, filtered[:, 0], smoothed[:, 0])]
  return filtered, smoothed, np.array(errors), likelihood, p
