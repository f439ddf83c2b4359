"""Bodies under gravity: leapfrog steps, with the energy, the momentum and the closest approach."""


def accelerations(np, position, mass, softening=0.05):
  apart = position[None, :, :] - position[:, None, :]
  distance = np.sqrt((apart**2).sum(axis=-1) + softening**2)
  strength = mass[None, :] / distance**3
  np.fill_diagonal(strength, 0.0)
  return (strength[:, :, None] * apart).sum(axis=1)


def energy(np, position, velocity, mass, softening=0.05):
  kinetic = 0.5 * np.sum(mass * np.sum(velocity**2, axis=1))
  apart = position[None, :, :] - position[:, None, :]
  distance = np.sqrt((apart**2).sum(axis=-1) + softening**2)
  i, j = np.triu_indices(len(mass), k=1)
  return kinetic - np.sum(mass[i] * mass[j] / distance[i, j])


def closest(np, position):
  apart = np.linalg.norm(position[:, None] - position[None], axis=-1)
  apart[np.diag_indices(len(position))] = np.inf
  return apart.min(), np.unravel_index(apart.argmin(), apart.shape)


def program(np):
  rng = np.random.default_rng(2)
  n, dt = 6, 0.01
  mass = rng.uniform(0.5, 2.0, n)
  position = rng.normal(size=(n, 3))
  velocity = 0.3 * rng.normal(size=(n, 3))
  velocity -= (mass[:, None] * velocity).sum(axis=0) / mass.sum()
  before = energy(np, position, velocity, mass)
  track = np.empty((20, 3))
  force = accelerations(np, position, mass)
  for step in range(20):
    velocity += 0.5 * dt * force
    position += dt * velocity
    force = accelerations(np, position, mass)
    velocity += 0.5 * dt * force
    track[step] = position[0]
  after = energy(np, position, velocity, mass)
  momentum = np.einsum("i,ij->j", mass, velocity)
  distance, pair = closest(np, position)
  return position, velocity, track, before, after, np.abs(momentum).max() < 1e-12, distance, pair
