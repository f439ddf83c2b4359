"""PyTorch's databases of its operators and modules as a judge: see opdb.py."""

import opdb
import pytest

pytestmark = [
  pytest.mark.full,
  pytest.mark.skipif(bool(opdb.WHY_NOT), reason=opdb.WHY_NOT),
  pytest.mark.usefixtures("mostly_unoptimized"),
]


@pytest.mark.parametrize("name", [*opdb.operators(), *opdb.modules()])
def test_an_operator_or_module_is_what_pytorch_says(name):
  found = opdb.judged(name)
  known = opdb.known().get(name, [])
  new = [f for f in found if f.kind not in known]
  assert not new, "\n".join(f"{f.kind}: {f.what}" for f in new)
  gone = {*known} - {f.kind for f in found}
  assert not gone, f"no longer fails ({', '.join(gone)}): python test/opdb.py --accept {name}"


def test_known_failures_and_exclusions_are_of_operators_that_there_are():
  assert {*opdb.known()} <= {*opdb.operators(), *opdb.modules()}
  names = {n for op in opdb.op_db for n in (op.name, opdb.full_name(op))}
  assert all(any(opdb.fits(pattern, n) for n in names) for pattern in opdb.EXCLUDED)
  assert {*opdb.DIFFERENT} <= names | {*opdb.modules()}
