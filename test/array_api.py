"""What the Python array API standard 2024.12 demands, as tables: a row is a signature and the functions that have it.

Source: https://data-apis.org/array-api/2024.12/API_specification. `type: ...` is left out; a default is spelled as there.
"""

from math import inf, isinf, isnan, nan

# fmt: off
FUNCTIONS = {
  "x, /": """
    abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log log10
    log1p log2 logical_not matrix_transpose negative nonzero positive real reciprocal round sign signbit sin sinh sqrt square tan
    tanh trunc unique_all unique_counts unique_inverse unique_values""",
  "x1, x2, /": """
    add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal floor_divide greater
    greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor matmul maximum minimum multiply nextafter
    not_equal pow remainder subtract""",
  "x, /, *, axis=None, keepdims=False": "all any argmax argmin count_nonzero max mean min",
  "x, /, *, axis=None, dtype=None, keepdims=False": "prod sum",
  "x, /, *, axis=None, correction=0.0, keepdims=False": "std var",
  "x, /, *, axis=None, dtype=None, include_initial=False": "cumulative_prod cumulative_sum",
  "x, /, *, axis=-1, n=1, prepend=None, append=None": "diff",
  "x, /, *, axis=-1, descending=False, stable=True": "argsort sort",
  "x, /, min=None, max=None": "clip",
  "x1, x2, /, *, side='left', sorter=None": "searchsorted",
  "condition, x1, x2, /": "where",
  "x1, x2, /, *, axes=2": "tensordot",
  "x1, x2, /, *, axis=-1": "vecdot",
  "x, indices, /, *, axis=None": "take",
  "x, indices, /, *, axis=-1": "take_along_axis",
  "start, /, stop=None, step=1, *, dtype=None, device=None": "arange",
  "start, stop, /, num, *, dtype=None, device=None, endpoint=True": "linspace",
  "obj, /, *, dtype=None, device=None, copy=None": "asarray",
  "x, /, *, device=None, copy=None": "from_dlpack",
  "shape, *, dtype=None, device=None": "empty ones zeros",
  "shape, fill_value, *, dtype=None, device=None": "full",
  "x, /, *, dtype=None, device=None": "empty_like ones_like zeros_like",
  "x, /, fill_value, *, dtype=None, device=None": "full_like",
  "n_rows, n_cols=None, /, *, k=0, dtype=None, device=None": "eye",
  "x, /, *, k=0": "tril triu",
  "*arrays, indexing='xy'": "meshgrid",
  "x, dtype, /, *, copy=True, device=None": "astype",
  "from_, to, /": "can_cast",
  "type, /": "finfo iinfo",
  "dtype, kind": "isdtype",
  "*arrays_and_dtypes": "result_type",
  "*arrays": "broadcast_arrays",
  "x, /, shape": "broadcast_to",
  "arrays, /, *, axis=0": "concat stack",
  "x, /, axis": "squeeze",
  "x, /, *, axis=0": "unstack",
  "x, /, *, axis": "expand_dims",
  "x, /, *, axis=None": "flip",
  "x, source, destination, /": "moveaxis",
  "x, /, axes": "permute_dims",
  "x, repeats, /, *, axis=None": "repeat",
  "x, /, shape, *, copy=None": "reshape",
  "x, /, shift, *, axis=None": "roll",
  "x, repetitions, /": "tile",
}
LINALG = {
  "x, /": "det eigh eigvalsh inv matrix_transpose slogdet svdvals",
  "x1, x2, /": "matmul outer solve",
  "x, /, *, upper=False": "cholesky",
  "x1, x2, /, *, axis=-1": "cross vecdot",
  "x, /, *, offset=0": "diagonal",
  "x, /, *, offset=0, dtype=None": "trace",
  "x, /, *, keepdims=False, ord='fro'": "matrix_norm",
  "x, /, *, axis=None, keepdims=False, ord=2": "vector_norm",
  "x, n, /": "matrix_power",
  "x, /, *, rtol=None": "matrix_rank pinv",
  "x, /, *, mode='reduced'": "qr",
  "x, /, *, full_matrices=True": "svd",
  "x1, x2, /, *, axes=2": "tensordot",
}
FFT = {
  "x, /, *, n=None, axis=-1, norm='backward'": "fft hfft ifft ihfft irfft rfft",
  "x, /, *, s=None, axes=None, norm='backward'": "fftn ifftn irfftn rfftn",
  "n, /, *, d=1.0, dtype=None, device=None": "fftfreq rfftfreq",
  "x, /, *, axes=None": "fftshift ifftshift",
}
ARRAY = {
  "": "__abs__ __bool__ __complex__ __dlpack_device__ __float__ __index__ __int__ __invert__ __neg__ __pos__",
  "other, /": """
    __add__ __and__ __eq__ __floordiv__ __ge__ __gt__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __or__ __pow__
    __rshift__ __sub__ __truediv__ __xor__
    __iadd__ __iand__ __ifloordiv__ __ilshift__ __imatmul__ __imod__ __imul__ __ior__ __ipow__ __irshift__ __isub__ __itruediv__
    __ixor__
    __radd__ __rand__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__ __rpow__ __rrshift__ __rsub__ __rtruediv__
    __rxor__""",
  "*, api_version=None": "__array_namespace__",
  "*, stream=None, max_version=None, dl_device=None, copy=None": "__dlpack__",
  "key, /": "__getitem__",
  "key, value, /": "__setitem__",
  "device, /, *, stream=None": "to_device",
}
INFO = {"": "capabilities default_device devices", "*, device=None": "default_dtypes",
        "*, device=None, kind=None": "dtypes"}
ATTRIBUTES = "T device dtype mT ndim shape size"
CONSTANTS = "e inf nan newaxis pi __array_api_version__"
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
OPERATORS = {
  "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "//": "floor_divide", "%": "remainder", "**": "pow",
  "&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor", "<<": "bitwise_left_shift", ">>": "bitwise_right_shift",
  "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal", "==": "equal", "!=": "not_equal",
  "@": "matmul",
}

# ---------------------------------------------------------------- special cases

# Of real numbers NumPy gives what the standard says; tests compare every pair of these.
SPECIAL = "nan inf -inf 0.0 -0.0 1.0 -1.0 0.5 -0.5 2.0 -2.0 3.0 -3.0 2.5 -3.5 7.0 1.5707963267948966 3.141592653589793 1e30 -1e-30"
# Parts of complex numbers; every pair of them.
PARTS = "nan inf -inf 0.0 -0.0 1.0 -1.0 2.5 -0.3 1.5707963267948966"
# Complex functions, of which the standard lists special cases or leaves them to C99, Annex G.
COMPLEX = """
abs acos acosh add asin asinh atan atanh conj cos cosh equal exp isfinite isinf isnan log log10 log1p log2 logical_and multiply
negative not_equal positive sin sinh sqrt square subtract tan tanh"""
# (function, part, of which numbers the standard leaves the sign of that part, or the part itself, open)
OPEN_SIGNS = [
  ("acos", "imag", lambda a, b: isinf(a) and isnan(b)),
  ("atan", "imag", lambda a, b: isnan(b) or isinf(b)),
  ("cos", "imag", lambda a, b: (isinf(a) or isnan(a)) and b == 0 or a == 0 and isnan(b)),
  ("cosh", "imag", lambda a, b: a == 0 and (isinf(b) or isnan(b)) or isnan(a) and b == 0),
  ("exp", "both", lambda a, b: a == -inf and (isinf(b) or isnan(b))),
  ("sin", "imag", lambda a, b: isinf(b) and (isnan(a) or isinf(a))),
  ("sinh", "real", lambda a, b: isinf(a) and (isnan(b) or isinf(b))),
  ("tan", "real", lambda a, b: isinf(b) and isinf(a)),
  ("tanh", "imag", lambda a, b: isinf(a) and isinf(b)),
]
# What NumPy gives otherwise than the standard: the standard's value. None: a sign that it leaves open.
EXPM1 = [
  ((0.0, 0.0), (0.0, 0.0)), ((-0.0, 0.0), (0.0, 0.0)), ((1.0, inf), (nan, nan)), ((1.0, nan), (nan, nan)),
  ((inf, 0.0), (inf, 0.0)), ((inf, 2.5), (-inf, inf)), ((-inf, 1.0), (-1.0, 0.0)), ((-inf, 2.5), (-1.0, 0.0)),
  ((-inf, inf), (-1.0, 0.0)), ((inf, inf), (inf, nan)), ((-inf, nan), (-1.0, 0.0)), ((inf, nan), (inf, nan)),
  ((nan, 0.0), (nan, 0.0)), ((nan, 1.0), (nan, nan)), ((nan, nan), (nan, nan)),
]
# fmt: on
