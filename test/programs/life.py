"""Conway's game of life on a torus, with shifted copies and with windows of a padded board."""

GLIDER = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]
BLINKER = [[1, 1, 1]]


def place(board, pattern, row, column):
  board[row : row + len(pattern), column : column + len(pattern[0])] = pattern


def step_by_rolling(np, board):
  around = sum(
    np.roll(np.roll(board, i, axis=0), j, axis=1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)
  )
  return ((around == 3) | ((board == 1) & (around == 2))).astype(board.dtype)


def step_by_padding(np, board):
  padded = np.pad(board, 1, mode="wrap")
  n, m = board.shape
  around = np.zeros_like(board)
  for i in range(3):
    for j in range(3):
      if (i, j) != (1, 1):
        around += padded[i : i + n, j : j + m]
  out = board.copy()
  out[(board == 1) & ((around < 2) | (around > 3))] = 0
  out[(board == 0) & (around == 3)] = 1
  return out


def show(board):
  return "\n".join("".join(".#"[int(cell)] for cell in row) for row in board)


def program(np):
  board = np.zeros((12, 14), dtype=np.int32)
  place(board, GLIDER, 1, 2)
  place(board, BLINKER, 8, 9)
  other = board.copy()
  alive = []
  for _ in range(12):
    board, other = step_by_rolling(np, board), step_by_padding(np, other)
    alive.append(int(board.sum()))
  rows, columns = np.nonzero(board)
  return board, np.array_equal(board, other), alive, show(board), rows, columns
