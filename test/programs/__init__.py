"""Array programs written for NumPy: each file's `program(np)` takes the namespace, and gives arrays and numbers."""
