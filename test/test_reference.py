"""The reference has every method with its docstring, and the drawings show each node once."""

import re

import mini
from mini import Tensor, reference
from mini.ir.uop import toposort


def test_the_reference_has_every_method():
  document = reference.document()
  titles = re.findall(r"^### `(?:x|Tensor)\.(\w+)", document, re.MULTILINE)
  public = [n for names in reference.families().values() for n in names]
  assert set(public) <= set(titles) and len(public) > 500
  assert document.count("```") % 2 == 0 and "\n\n\n" not in document


def test_every_method_says_what_it_does():
  silent = [n for c, names in reference.families().items() for n in names
            if not (reference._function(vars(c)[n]).__doc__ or "").strip()]  # fmt: skip
  assert not silent


def test_operations_of_methods():
  rows = {name: (by, ops.split()) for name, by, ops, _ in reference.coverage()}
  assert {"reduce", "div"} <= set(rows["softmax"][1]) and "gather" in rows["gather"][1]
  assert rows["rearrange"][0] == "PyTorch" and rows["flip"][1] == ["flip"]
  assert rows["tri"][0] == "NumPy"


def test_drawings():
  x = Tensor([[1.0, 2.0], [3.0, 4.0]])
  y = x.softmax(1)
  z = y * x
  picture, nodes = mini.visualize(y, z), toposort(y.uop, z.uop)
  assert picture.count("<rect") == len(nodes) == len(mini.inspect(y, z).splitlines())
  assert picture.count("<line") == sum(len(u.src) for u in nodes)
  corners = re.findall(r'<rect x="(.*?)" y="(.*?)"', picture)
  assert len(set(corners)) == len(nodes) and all(float(c) >= 0 for pair in corners for c in pair)
  assert not z.is_realized
  assert mini.visualize().startswith("<svg")
