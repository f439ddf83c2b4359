"""The heat equation on a plate: explicit steps in place, fixed edges, and the steady state by Jacobi's iteration."""


def initial(np, n):
  plate = np.zeros((n, n))
  plate[0, :] = 100.0
  plate[-1, :] = 25.0
  plate[1:-1, 0] = np.linspace(100, 25, n)[1:-1]
  plate[1:-1, -1] = np.linspace(100, 25, n)[1:-1]
  plate[n // 3 : n // 2, n // 3 : n // 2] += 40.0
  return plate


def laplacian(u):
  return u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]


def explicit(np, u, steps, alpha=0.2):
  u = u.copy()
  for _ in range(steps):
    u[1:-1, 1:-1] += alpha * laplacian(u)
  return u


def jacobi(np, u, tolerance, limit=60):
  inner = u[1:-1, 1:-1]  # a view: what is written to it is written to u
  for count in range(limit):
    new = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    change = np.abs(new - inner).max()
    inner[...] = new
    if change < tolerance:
      break
  return u, count, change


def program(np):
  start = initial(np, 16)
  later = explicit(np, start, 40)
  steady, count, change = jacobi(np, start.copy(), 0.5)
  middle = later[8, 8].item()
  gradient = np.gradient(later)
  flow = np.hypot(gradient[0], gradient[1])
  return (
    later,
    steady,
    count,
    change,
    round(middle, 9),
    flow.max(),
    np.unravel_index(np.argmax(flow), flow.shape),
  )
