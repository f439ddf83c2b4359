"""The op suite: every operation, on every type, in every layout, of a device against the interpreter.

  cases.py    what is computed: rows that follow from the table of operations
  data.py     what the inputs hold
  compare.py  how far a result may be from the reference
  run.py      many cases in few programs; which of them are at fault where one fails
  workers.py  processes that run them: what crashes or hangs is one failed case
  report.py   the verdicts as a table
  accuracy.py how far functions are from exact results: `python -m mini ulp`

`python -m mini test-device NAME` is its command. Nothing of mini imports it.
"""
