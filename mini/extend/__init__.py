"""What users add to mini without changing it: docs/extending.md tells it with examples.

  named.py   `op`: a function of tensors as one named node
  walk.py    `walk`: the graph, node by node, for an evaluator or a printer of one's own
  host.py    `wrap_as_operation`: a function of NumPy arrays in the middle of a graph
  kernel.py  `kernel`: a scalar Python function as a device kernel. source.py reads its source, scalar.py runs its
             statements for all elements at once, expression.py their values, indices.py reads arrays
  rules.py   `rule`: what a `rewrite` block may have; with a function on the right, it replaces whole operations

Rewriting itself stands in mini/ir/rules.py and replace.py, devices in mini/engine/device.py.
"""
