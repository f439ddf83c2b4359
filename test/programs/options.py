"""The price of a European and of an American option, from simulated paths (Longstaff and Schwartz 2001)."""


def paths(np, start, rate, sigma, dt, count, steps):
  z = np.random.default_rng(42).standard_normal((count, steps))
  logs = np.cumsum((rate - 0.5 * sigma**2) * dt + sigma * np.sqrt(dt) * z, axis=1)
  return start * np.exp(np.hstack([np.zeros((count, 1)), logs]))


def american(np, s, strike, discount):
  """Backwards in time: exercised where that is worth more than what a regression expects of waiting."""
  cash = np.maximum(strike - s[:, -1], 0)
  for t in range(s.shape[1] - 2, 0, -1):
    cash *= discount
    inside = strike > s[:, t]
    if inside.sum() > 10:
      price = s[inside, t]
      basis = np.column_stack([np.ones(len(price)), price, price**2])
      w = np.linalg.lstsq(basis, cash[inside], rcond=None)[0]
      now = strike - price > basis @ w
      cash[np.flatnonzero(inside)[now]] = (strike - price)[now]
  return cash.mean() * discount


def program(np):
  rate, steps = 0.03, 10
  dt = 1.0 / steps
  s = paths(np, 100.0, rate, 0.2, dt, 300, steps)
  pay = np.maximum(s[:, -1] - 105.0, 0)
  price, error = np.exp(-rate) * pay.mean(), pay.std(ddof=1) / np.sqrt(len(pay))
  counts, _ = np.histogram(s[:, -1], bins="auto")
  fall = (np.maximum.accumulate(s, axis=1) - s).max(axis=1)
  together = np.corrcoef(s[:, 5], s[:, -1])[0, 1]
  return (price, error, american(np, s, 105.0, np.exp(-rate * dt)), np.cov(s[:, 5], s[:, -1]), together,
          np.quantile(pay, [0.5, 0.9]), counts, fall)  # fmt: skip
