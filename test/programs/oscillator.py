"""Van der Pol's oscillator by Runge and Kutta's method: where it crosses zero, its phase and its energy."""


def rate(np, y):
  x, v = y
  return np.array([v, (1 - x * x) * v - x])


def solve(np, y, times):
  h = times[1] - times[0]
  states = np.zeros((len(times), 2))
  states[0] = y
  for n in range(len(times) - 1):
    y = states[n]
    a = rate(np, y)
    b = rate(np, y + h / 2 * a)
    c = rate(np, y + h / 2 * b)
    d = rate(np, y + h * c)
    states[n + 1] = y + h / 6 * (a + 2 * b + 2 * c + d)
  return states


def program(np):
  times = np.linspace(0, 5, 41)
  states = solve(np, [2.0, 0.0], times)
  x = states[:, 0]
  before = np.where(np.diff(np.sign(x)) != 0)[0]
  zeros = [times[i] - x[i] * (times[i + 1] - times[i]) / (x[i + 1] - x[i]) for i in before]
  between = np.interp(np.arange(0, 5, 0.25), times, x)
  energy = np.trapezoid(states[:, 1] ** 2, times)
  phase = np.unwrap(np.angle(x + 1j * states[:, 1]))
  return states, np.array(zeros), between, energy, phase, f"{energy:.4f} {x[-1]:8.3f}"
