"""Sudoku by elimination on a boolean cube, and shortest ways in a graph: integers, masks, and broadcasting."""

PUZZLE = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"


def read(np, text):
  return np.array([int(c) for c in text]).reshape(9, 9)


def candidates(np, board):
  """[row, column, digit]: may it stand there?"""
  digits = np.arange(1, 10)
  there = board[:, :, None] == digits
  rows = there.any(axis=1)
  columns = there.any(axis=0)
  boxes = there.reshape(3, 3, 3, 3, 9).any(axis=(1, 3))
  box = np.arange(9) // 3
  free = ~(rows[:, None, :] | columns[None, :, :] | boxes[box[:, None], box[None, :]])
  return free & (board == 0)[:, :, None]


def solve(np, board):
  board = board.copy()
  for rounds in range(40):
    free = candidates(np, board)
    single = free.sum(axis=2) == 1
    if not single.any():
      break
    board[single] = free.argmax(axis=2)[single] + 1
  return board, rounds


def shortest(np, weights):
  """Floyd and Warshall."""
  d = weights.copy()
  for k in range(len(d)):
    d = np.minimum(d, d[:, k, None] + d[None, k, :])
  return d


def program(np):
  board, rounds = solve(np, read(np, PUZZLE))
  full = np.arange(1, 10)
  good = (np.sort(board, axis=0) == full[:, None]).all() and (np.sort(board, axis=1) == full).all()
  rng = np.random.default_rng(1)
  weights = rng.integers(1, 30, (8, 8)).astype(np.float32)
  weights[rng.random((8, 8)) < 0.6] = np.inf
  np.fill_diagonal(weights, 0)
  ways = shortest(np, weights)
  reachable = np.isfinite(ways)
  return (
    board,
    rounds,
    bool(good),
    ways,
    reachable.sum(axis=1),
    np.where(reachable, ways, -1).max(),
    np.unique(board),
  )
