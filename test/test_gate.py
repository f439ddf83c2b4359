"""An argument that is not of the kind that a method takes is named: each argument of each method, in the first row of
test/methods/ that calls it."""

import ast
import functools
import inspect

import methods
import pytest

from mini import DTypeError, ShapeError, Tensor, jit
from mini.reference import _function, families
from mini.tensor.argument_check import kinds_of

WRONG = ("a", 3, {})  # of any kind of argument, one of them is none


@functools.cache
def calls():
  """{method: (family, the call that gives most arguments)}"""
  found = {}
  for row in methods.rows():
    for n in ast.walk(ast.parse(row.ours, mode="eval")):
      if (
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and not ast.unparse(n.func).startswith("M.")
      ):
        best = found.get(n.func.attr)
        if best is None or len(n.args + n.keywords) > len(best[1].args + best[1].keywords):
          found[n.func.attr] = row.family, n
  return found


def arguments():
  """(method, argument) of all that are annotated with a kind."""
  for family, names in families().items():
    for name in names:
      method = vars(family)[name]
      if name in calls() and not isinstance(method, property):
        parameters = inspect.signature(_function(method)).parameters
        yield from ((name, p) for p in parameters.values() if p.name != "self" and kinds_of(p))


def with_wrong(name, p):
  """The call of a row, with this argument replaced by what does not fit."""
  wrong = next(x for x in WRONG if not any(fits(x) for _, fits in kinds_of(p)))
  _, call = calls()[name]
  static = isinstance(call.func.value, ast.Name) and call.func.value.id == "T"
  order = [q for q in inspect.signature(getattr(Tensor, name)).parameters if q != "self" or static]
  at = order.index(p.name)
  args, rest = list(call.args), [k for k in call.keywords if k.arg not in (p.name, "dim", "unbiased")]
  value = ast.parse(repr(wrong), mode="eval").body
  if p.kind is p.VAR_POSITIONAL:
    args = [*args[:at], value]
  elif at < len(args) and p.kind is not p.KEYWORD_ONLY:
    args[at] = value
  else:
    rest = [*rest, ast.keyword(p.name, value)]
  return ast.unparse(ast.Call(call.func, args, rest)), wrong


# What the row's call does not look at.
UNREAD = {
  ("batch_norm", "momentum"),
  ("instance_norm", "momentum"),
  ("poisson_nll_loss", "eps"),
  ("cat", "dim"),
  ("stack", "dim"),
  ("stft", "pad_mode"),
}
ARGUMENTS = [(name, p) for name, p in arguments() if (name, p.name) not in UNREAD]


@pytest.mark.sample(2)
@pytest.mark.parametrize("name, p", ARGUMENTS, ids=lambda x: getattr(x, "name", x))
def test_every_argument(name, p):
  expression, wrong = with_wrong(name, p)
  row = methods.Row(calls()[name][0], expression, expression, (None,), False)
  with pytest.raises((DTypeError, ValueError)) as e:
    methods.ours(row, None)
  said = str(e.value).splitlines()[0]
  assert p.name in said and repr(wrong) in said


def test_what_is_of_the_right_kind_is_for_the_method_to_say():
  with pytest.raises(ShapeError, match=r"a @ b: the last axis of a is 4"):
    Tensor.zeros(3, 4).mm(Tensor.zeros(3, 4))


def test_a_call_that_python_refuses():
  with pytest.raises(TypeError, match="takes from 1 to 2 positional arguments but 4 were given"):
    Tensor.zeros(3).celu(1, 2, 3)


def test_no_value_is_asked_for():
  """In a trace there are none, and elsewhere an error is no reason to compute."""

  @jit
  def step(x):
    return Tensor.chain_matmul([x, x])

  with pytest.raises(DTypeError, match=r"matrices is \[f32\[2,2\], f32\[2,2\]\], not a tensor"):
    step(Tensor.zeros(2, 2))


def test_methods_keep_their_names_and_signatures():
  assert Tensor.celu.__name__ == "celu" and str(inspect.signature(Tensor.celu)).startswith("(self, alpha")
  assert "exp(a / alpha)" in Tensor.celu.__doc__
