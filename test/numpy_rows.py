"""Expressions that are evaluated with `np` as NumPy and as `mini.numpy`, and have to give the same: values, types,
shapes, and whether it is an array or a scalar. Of several statements, the last one is the result.

By the chapters of the Python array API standard 2024.12; what NumPy has beyond it comes last.
"""

import numpy

r = numpy.random.default_rng(7)
INPUTS = {
  "f": r.standard_normal((3, 4)),
  "g": r.standard_normal((3, 4)).astype(numpy.float32),
  "p": r.random((3, 4)) * 0.8 + 0.1,
  "v": r.standard_normal(4),
  "w": r.standard_normal(3),
  "c": r.standard_normal((2, 3, 4)),
  "q": numpy.cov(r.standard_normal((3, 9))) + numpy.eye(3),
  "i": r.integers(-9, 9, (3, 4)),
  "j": r.integers(1, 9, (3, 4)).astype(numpy.int32),
  "k": numpy.array([2, 0, 1, 1]),
  "u": r.integers(0, 255, (3, 4)).astype(numpy.uint8),
  "b": r.random((3, 4)) > 0.5,
  "z": numpy.array(2.5),
  "x": numpy.array([numpy.nan, numpy.inf, -numpy.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 2.5, -3.5, 1e300, -1e-300, 7.0]),
  "e": numpy.zeros((0, 3)),
  "m": r.standard_normal((3, 4)) + 1j * r.standard_normal((3, 4)),
  "n": (r.standard_normal(4) + 1j * r.standard_normal(4)).astype(numpy.complex64),
  "h": numpy.array([[2.0, 1j, 0], [-1j, 3.0, 0.5], [0, 0.5, 1.0]]),
}  # fmt: skip

CREATION = """
np.array([1, 2, 3])
np.array([[1.5, 2], [3, 4]])
np.array(3)
np.array([True, False])
np.array([1, 2], dtype=np.float32)
np.array(f, dtype="int8")
np.array([f[0], v])
np.array([[1, v[0]], [w[1], 2.5]])
np.array([], dtype=np.int32)
np.array(f, copy=True)
np.array(v, ndmin=3)
np.array(range(4))
np.array((1, 2.0, True))
np.asarray([1, 2])
np.asarray(f)
np.asarray(f, dtype=np.float32)
np.asarray(2.0)
np.arange(5)
np.arange(2, 9, 3)
np.arange(9, 2, -2)
np.arange(0, 1, 0.1)
np.arange(1.0, 2.0, 0.25, dtype=np.float32)
np.arange(3, dtype=np.uint8)
np.arange(-2.5, 2.5)
np.arange(5, 2)
np.empty((2, 3)).shape
np.empty_like(i).dtype
np.eye(3)
np.eye(2, 4, 1)
np.eye(3, k=-1, dtype=np.int64)
np.from_dlpack(f)
np.full((2, 3), 7)
np.full((2,), 7.5)
np.full(3, True)
np.full((2, 2), 3, dtype=np.float32)
np.full_like(f, 2)
np.full_like(i, 2, dtype=np.float64)
np.linspace(0, 1, 5)
np.linspace(0, 1, 5, endpoint=False)
np.linspace(2, -3, 7, dtype=np.float32)
np.linspace(0, 10, 4, dtype=int)
np.linspace(v, v + 1, 3)
np.linspace(0, 1, 3, retstep=True)
np.linspace(1, 2, 1)
np.linspace(0, 1, 0)
np.meshgrid(v, w)
np.meshgrid(v, w, indexing="ij")
np.meshgrid(v, w, sparse=True)
np.ones((2, 3))
np.ones(3, dtype=np.int16)
np.ones_like(i)
np.tril(f)
np.tril(c, 1)
np.triu(f, -1)
np.triu(c)
np.zeros((2, 3))
np.zeros(())
np.zeros(3, bool)
np.zeros_like(g)
np.identity(3)
np.tri(3, 4, 1)
np.fromfunction(lambda a, b: a + b, (2, 3))
np.indices((2, 3))
np.logspace(0, 2, 5)
np.geomspace(1, 1000, 4)
np.mgrid[0:3, 1:3]
np.ogrid[0:3, 1:3]
np.mgrid[0:1:5j]
np.r_[1:4, 0, 4]
np.c_[v, v]
np.copy(f)
np.vander(v, 3)
np.vander(k)
np.diag(v)
np.diag(f)
np.diag(f, 1)
np.diagflat(w)
np.frombuffer(b"abcd", dtype=np.uint8)
np.fromiter((n * n for n in range(4)), dtype=float)
np.astype(f, np.int32)
f.astype(int)
i.astype(np.float32)
f.astype(np.int8)
x[5:12].astype(bool)
"""

TYPES = """
np.result_type(f, g)
np.result_type(g, 1.0)
np.result_type(i, np.int8)
np.result_type(u, 3)
np.can_cast(np.int32, np.float32)
np.can_cast(f, np.int64)
np.finfo(np.float32).eps
np.iinfo(np.int8).max
np.isdtype(np.dtype("float32"), "real floating")
np.isdtype(np.dtype("int8"), ("signed integer", "bool"))
np.promote_types(np.int8, np.uint8)
np.broadcast_arrays(v, f)
np.broadcast_to(v, (3, 4))
np.broadcast_shapes((3, 1), (4,))
g + 1
g + 1.5
g * np.float64(2)
g + f
i + 1.5
j + i
u + 1
u + np.int8(1)
u * u
j / 2
j // 2
b + b
b + 1
b * 2.5
b & (i > 0)
j + True
g + np.array(2.0)
u < 300
u > -1
1 - u
2 ** j
j ** 2
j ** 2.0
g ** 2
np.float32(2) * g
f[0, 0] * g
f[0, 0] + 1
i.sum() / 2
i.mean() + g
np.add(1, 2)
np.add(1, 2.5)
np.maximum(1, 2)
np.sqrt(4)
np.sin(u)
np.sin(j)
np.exp(b)
np.sum(u)
np.sum(j)
np.sum(b)
np.sum(g)
np.prod(u[0].astype(np.int16))
np.mean(j)
np.mean(g)
np.cumsum(j)
np.cumsum(b)
f.dtype == np.float64
u.astype(np.uint16) + u.astype(np.uint32)
u.astype(np.uint64) + u
u.astype(np.uint64) + i
np.imag(f)
f.imag + f.real
np.issubdtype(i.dtype, np.integer)
"""

ELEMENTWISE = """
abs(i)   np.abs(f)   np.absolute(x)   np.fabs(x)
np.acos(p)   np.arccos(x)   np.acosh(p + 1)   np.arccosh(x)
f + g   np.add(x[:, None], x)   np.add(i, 1)
np.asin(p)   np.arcsin(x)   np.asinh(f)   np.arcsinh(x)
np.atan(f)   np.arctan(x)   np.atan2(f, g)   np.arctan2(x[:, None], x)   np.atanh(p)   np.arctanh(x)
np.bitwise_and(i, j)   np.bitwise_left_shift(j, 2)   np.bitwise_invert(i)   np.bitwise_not(b)   np.bitwise_or(i, j)
np.bitwise_right_shift(i, 1)   np.bitwise_xor(i, j)   i & 3   i | j   i ^ j   ~i   ~b   j << 2   i >> 1   2 << j   i << 70   i >> 70
np.left_shift(j, j)   np.right_shift(i, j)   np.bitwise_count(i)   np.bitwise_count(u)
np.ceil(x)   np.ceil(i)   np.clip(f, -0.5, 0.5)   np.clip(i, 0, 5)   np.clip(u, 10, 300)   np.clip(f, None, v)   np.clip(f, min=0)   f.clip(0)
np.clip(i, -1.5, 2.5)   np.copysign(f, g)   np.copysign(x[:, None], x)   np.conj(f)   np.conjugate(i)
np.cos(f)   np.cos(x)   np.cosh(f)   np.cosh(x)
f / g   np.divide(x[:, None], x)   np.divide(i, j)   1 / f   np.true_divide(i, 2)
f == f   np.equal(x[:, None], x)   f != g   np.not_equal(x[:, None], x)   i == 3   b == True   i == 2.5
np.exp(f)   np.exp(x)   np.exp2(f)   np.exp2(x)   np.expm1(f)   np.expm1(x)
np.floor(f)   np.floor(x)   np.floor(i)   np.floor_divide(x[:, None], x)   f // g   i // j   i // 3   u // 7   7 // j   i // 0.5
np.greater(f, g)   f > 0   x[:, None] > x   np.greater_equal(f, g)   x[:, None] >= x   i >= j
np.hypot(f, g)   np.hypot(x[:, None], x)
np.isfinite(x)   np.isinf(x)   np.isnan(x)   np.isnan(i)   np.isinf(b)   np.isfinite(i)
np.less(f, g)   x[:, None] < x   np.less_equal(f, g)   x[:, None] <= x   0 < f   1 <= i
np.log(p)   np.log(x)   np.log1p(p)   np.log1p(x)   np.log2(p)   np.log2(x)   np.log10(p)   np.log10(x)
np.logaddexp(f, g)   np.logaddexp(x[:, None], x)   np.logaddexp2(f, g)
np.logical_and(f, i)   np.logical_not(i)   np.logical_or(b, i)   np.logical_xor(b, i)   np.logical_not(x)
np.maximum(f, g)   np.maximum(x[:, None], x)   np.maximum(i, 2)   np.minimum(f, 0.5)   np.minimum(x[:, None], x)   np.minimum(b, True)
np.multiply(f, g)   x[:, None] * x   i * j   3 * i   f * 2   np.negative(f)   -x   -i   -u   +f   np.positive(x)
np.nextafter(f, g)   np.nextafter(x, 0.0)   np.spacing(f)   np.spacing(g)
np.power(p, f)   x[:, None] ** x   f ** 2   f ** -1   p ** 0.5   i ** 2   i ** 3   2.0 ** i   j ** j   np.pow(p, 2)   f ** 3   2 ** k   (-2) ** k   np.array([-0.0, -np.inf, 2, 1e200]) ** 0.5   np.power(np.float32([-0.0, np.inf, -3]), 2)   np.array([-0.0, -np.inf, 2]) ** -0.5
np.real(f)   np.reciprocal(f)   np.reciprocal(x)   np.reciprocal(i)
np.remainder(f, g)   np.remainder(x[:, None], x)   f % g   i % j   i % 3   -7 % j   u % 7   i % 2.5   np.mod(i, 4)
np.round(f)   np.round(f, 2)   np.round(x)   np.rint(x)   np.round(i, -1)   np.around(f, 1)   f.round(3)   np.round(-2.5)   round(f[0, 0], 2)
np.sign(f)   np.sign(x)   np.sign(i)   np.sign(u)   np.signbit(x)   np.signbit(f)
np.sin(f)   np.sin(x)   np.sinh(f)   np.sinh(x)   np.square(f)   np.square(i)   np.square(x)   np.sqrt(p)   np.sqrt(x)   np.sqrt(j)
np.subtract(f, g)   x[:, None] - x   i - j   1 - i   u - 1
np.tan(f)   np.tan(x)   np.tanh(f)   np.tanh(x)   np.trunc(x)   np.trunc(i)   np.fix(f)
np.cbrt(f)   np.cbrt(x)   np.deg2rad(f)   np.rad2deg(f)   np.degrees(f)   np.radians(i)   np.fmax(x[:, None], x)   np.fmin(x[:, None], x)
np.fmod(f, g)   np.fmod(i, j)   np.fmod(x[:, None], x)   np.heaviside(f, 0.5)   np.heaviside(x, 0.5)   np.modf(f)   np.modf(x)   np.divmod(f, g)   divmod(i, j)   divmod(7, j)
np.ldexp(f, k)   np.float_power(i, 2)   np.float_power(p, f)   np.gcd(i, j)   np.lcm(j, k)   np.sinc(f)   np.nan_to_num(x)   np.isposinf(x)   np.isneginf(x)   np.frexp(f)
np.isclose(f, f + 1e-9)   np.isclose(x, x, equal_nan=True)   np.allclose(f, f)   np.allclose(f, g)   np.array_equal(f, f)   np.array_equal(f, v)   np.array_equal(x, x, equal_nan=True)   np.array_equiv(v, np.broadcast_to(v, (2, 4)))
np.add(f, g, dtype=np.float64)   np.add(i, j, out=np.zeros((3, 4)))   np.add(f, 1, where=b, out=np.zeros((3, 4)))   np.sqrt(p, out=np.zeros((3, 4)))   np.multiply(g, 2, dtype=np.float64)
np.add.reduce(f)   np.add.reduce(f, axis=None)   np.multiply.reduce(f, axis=1, keepdims=True)   np.maximum.reduce(i, axis=1)   np.logical_and.reduce(b, axis=0)   np.bitwise_or.reduce(i, axis=1)   np.subtract.reduce(f, axis=0)   np.bitwise_xor.reduce(u)   np.add.reduce(f, where=b)   np.maximum.reduce(f, initial=1.0)
np.add.accumulate(f, axis=1)   np.maximum.accumulate(i)   np.minimum.accumulate(f, 1)   np.multiply.accumulate(i, axis=1)   np.subtract.accumulate(f)
np.add.outer(v, w)   np.multiply.outer(v, k)   np.subtract.outer(w, v)   np.maximum.outer(k, k)   np.add.reduceat(v, [0, 2])
a = np.zeros(4); np.add.at(a, k, 1); a
a = np.zeros(4, bool); np.add.at(a, k, True); a
a = np.ones(4, bool); np.add.at(a, k, False); a
a = np.ones(4, bool); np.multiply.at(a, k, False); a
a = np.zeros(4, bool); np.maximum.at(a, k, True); a
a = np.zeros(4); b = a[1:]; np.add.at(b, [0, 0], 1); a
a = np.ones(4); np.multiply.at(a, [0, 0, 2], 3.0); a
a = np.zeros(4, int); np.add.at(a, k, [1, 2, 3, 4]); a
a = np.zeros((2, 3)); np.subtract.at(a, ([0, 1, 1], [0, 2, 2]), 2); a
a = np.zeros(4); np.maximum.at(a, k, v); a
np.add.nin   np.add.identity   np.sin.nout   np.add.__name__
"""

INDEXING = """
np.take(f, k, axis=1)   np.take(f, 3)   np.take(f, [[0, 1], [2, 3]])   np.take(v, [5, -7], mode="wrap")   f.take(k)   np.take(v, [9], mode="clip")
np.take_along_axis(f, np.argsort(f, axis=1), axis=1)   np.take_along_axis(f, i[:1] % 3, 0)
f[0]   f[-1]   f[1, 2]   f[:, 1]   f[1:, ::2]   f[::-1]   f[..., 0]   f[None]   f[:, None, 1]   f[()]   f[...]   z[()]   z[...]   f[2, ...]   f[0:0]
f[[0, 2]]   f[k[:2]]   f[:, k]   f[[0, 1], [2, 3]]   f[k[:2], 1]   c[0, :, [1, 2]]   c[:, 0, [1, 2]]   c[[0, 1], :, 1]   c[..., [0, 1]]   f[[[0, 1], [1, 2]]]   c[1, [0, 2]]   c[:, [0, 1], None]
f[b]   f[f > 0]   f[b[:, 0]]   f[:, b[0]]   f[[True, False, True]]   v[v > 9]   f[~b].sum()   c[:, b]   f[True]   f[np.array([], int)]
f[np.int64(1)]   f[k[0]]   f[i[0, 0] % 3]   v[np.array(2)]   f[1][2]   f[-3:, -1]   c[1][:, 2][0]   f[1:][0]   v[9:]   v[3:0:-2]   [float(n) for n in v]   [n.sum() for n in f]
list(k)   [a.tolist() for a in f]   v.tolist()   f.item(3)   z.item()   float(z)   int(k[0])   bool(z)   len(f)   3 in k   99 in i   complex(z)   k[1].item()   range(3)[k[0]]   [1, 2, 3][k[1]]
a = f.copy(); a[0] = 1; a
a = f.copy(); a[1, 2] = 5; a
a = f.copy(); a[:, 1] = w; a
a = f.copy(); a[::2, ::-1] = 7; a
a = f.copy(); a[b] = 0; a
a = f.copy(); a[b] = np.arange(b.sum()); a
a = f.copy(); a[[0, 2], [1, 3]] = [8, 9]; a
a = f.copy(); a[a > 0] *= 2; a
a = f.copy(); a[[0, 1]] += 1; a
a = f.copy(); a[...] = v; a
a = i.copy(); a[0] = 2.7; a
a = i.copy(); a += 2; a
a = i.copy(); a //= 2; a
a = g.copy(); a += f; a
a = f.copy(); a[k[0]] = -1; a
a = np.zeros(20); a[12] = 1; a[-12] = 2; a
a = c.copy(); a[0, :, [1, 2]] = 0; a
a = z.copy(); a[()] = 4; a
a = z.copy(); a += 1; a
a = f.copy(); a.fill(3); a
a = f.copy(); d = a[1]; d[:] = 0; a
a = f.copy(); d = a.T; d[0, 1] = 9; a
a = f.copy(); d = a.reshape(4, 3); d[0] = 9; a
a = f.copy(); d = a.T.reshape(-1); d[0] = 9; a
a = f.copy(); d = a.ravel(); d += 1; a
a = f.copy(); d = a.flatten(); d += 1; a
a = f.copy(); d = a[1:]; a[2] = 5; d
a = f.copy(); d = a[::2][1][1:3]; d -= 100; a
a = f.copy(); d = a[[0, 1]]; d[:] = 0; a
a = f.copy(); s = a.sum(); t = s; s += 1; (s - t, a)
a = f.copy(); s = a[0, 0]; a[0, 0] = 99; s
a = f.copy(); d = a; d *= 2; a
a = f.copy(); d = a.diagonal().copy(); d[0] = 1; a
a = np.zeros((2, 3)); a.flat[4] = 1; a
a = np.arange(4.0); s = a[2]; [float(x) for x in s.flat]
a = np.arange(4.0); s = a[2]; s.flat[0] = 9; a
a = np.arange(4.0); s = a[2]; s[s > 1]
a = np.arange(4.0); s = a[2]; s[s > 3]
a = np.arange(4.0); s = a[2]; s[None]
a = np.arange(4.0); s = a[2]; s[True]
a = np.zeros((2, 3)); a.T.flat[1] = 100; a
a = np.zeros(4); a[::-1].flat[1] = 100; a
a = np.zeros((2, 3)); a.T.flat[[0, 4]] = [1, 2]; a.T.flat[-1] = 9; a[:, ::2].flat[1:3] = 7; a
a = np.zeros((2, 3)); a.flat = [1, 2]; a.T.flat[1:6] = [3, 4]; a
a = np.zeros((2, 3)); a[0].flat[...] = 5; a[1].flat[:] = [1, 2, 3, 4, 5]; a
a = np.zeros((2, 3)); b = a.flat[1:3]; b[0] = 5; a.T.flat.copy()[0] = 3; a
a = np.zeros((2, 3)); np.put(a.T, [1, 2], [5, 6]); np.putmask(a[::-1], a[::-1] == 0, 2); np.place(a.T, a.T > 5, [8]); a
[int(x) for x in np.arange(6).reshape(2, 3).T.flat] + [len(f.flat), next(np.arange(3).flat)]
x = np.zeros(3); [x[1:].base is x, x[1:][1:].base is x, x.base is None, x.reshape(3, 1).T.base is x]
a = c.copy(); d = np.transpose(a, (1, 2, 0)); d[0] = 1; a
a = f.copy(); d = np.swapaxes(a, 0, 1)[1:]; d[...] = 0; a
a = f.copy(); d = np.moveaxis(a, 0, 1); d[1] = -1; a
a = f.copy(); d = a[None, :, None]; d[0, 1] = 3; a
a = f.copy(); d = np.squeeze(a[:1]); d[2] = 3; a
a = f.copy(); d = np.flip(a, 1); d[0, 0] = 3; a
a = c.copy(); d = a[0]; e = a[1]; d[:], e[:] = e.copy(), d.copy(); a
a = f.copy(); a[0], a[1] = a[1].copy(), a[0].copy(); a
a = f.copy(); [d, *others] = np.split(a, 3); d[:] = 1; a
a = np.arange(6.0); a.shape = (2, 3); a
a = f.copy(); d = a.view(np.int64); d[0] = 0; a
a = f.copy(); np.put(a, [0, 5], [1, 2]); a
a = f.copy(); np.putmask(a, b, 0); a
a = f.copy(); np.copyto(a, v); a
a = f.copy(); np.copyto(a, 0, where=b); a
a = f.copy(); np.fill_diagonal(a, 0); a
a = f.copy(); np.put_along_axis(a, np.argmax(a, 1)[:, None], 0, 1); a
a = f.copy(); np.place(a, b, [1, 2]); a
a = f.copy(); a.sort(); a
a = f.copy(); a.sort(axis=0); a
f.copy().base is None
np.shares_memory(f[1:], f)   np.shares_memory(f[:1], f[1:])   np.shares_memory(f, f.copy())
f.strides   f.T.strides   f[:, ::2].strides   f.flags["C_CONTIGUOUS"]   f.T.flags.c_contiguous   f.nbytes   f.itemsize   f.size   f.ndim   f.T.shape   i.dtype.name   f.mT   np.shape(f)   np.ndim(3)   np.size(f, 0)
np.nonzero(b)   np.nonzero(v > 0)   i.nonzero()   np.argwhere(b)   np.flatnonzero(f > 0)   np.where(b)   np.where(f > 0, f, 0)   np.where(b, i, 2.5)   np.where(b[0], f, g)   np.where(f > 0, 1, 0)   np.where(True, v, 0)
np.count_nonzero(b)   np.count_nonzero(i, axis=0)   np.searchsorted(np.sort(v), f)   np.searchsorted(np.sort(v), 0.1)   np.searchsorted(np.sort(k), k, side="right")   np.searchsorted(v, w, sorter=np.argsort(v))   np.digitize(f, [-1, 0, 1])
np.argmax(f)   np.argmax(f, axis=0)   np.argmin(f, axis=1, keepdims=True)   f.argmax()   i.argmin(axis=-1)   np.argmax(b)   np.argmax(x)   np.extract(b, f)   np.compress([True, False, True], f, axis=0)   np.select([f > 0, f < -1], [f, -f], 9)   np.choose(k % 2, [v, -v])   np.piecewise(v, [v < 0, v >= 0], [lambda t: -t, 2])
np.diag_indices(3)   np.tril_indices(3)   np.triu_indices(3, 1)   np.unravel_index(7, (3, 4))   np.ravel_multi_index(([1, 2], [0, 3]), (3, 4))   np.ix_([0, 2], [1, 3])   f[np.ix_([0, 2], [1, 3])]   f[np.diag_indices(3)]
"""

LINEAR = """
f @ v   f @ f.T   c @ f.T   np.matmul(f, v)   i @ i.T   b @ b.T   g @ f.T   v @ v   j @ v   u @ u.T   np.matmul(c, np.swapaxes(c, 1, 2))
np.dot(f, v)   np.dot(v, v)   np.dot(c, f.T)   f.dot(2)   np.dot(f, c.swapaxes(1, 2))   np.vdot(f, f)   np.vecdot(f, f)   np.vecdot(f, v)   np.vecdot(f, f, axis=0)   np.inner(f, f)   np.outer(v, w)   np.matvec(f, v)   np.vecmat(w, f)
np.tensordot(f, f, axes=2)   np.tensordot(c, f, axes=([1, 2], [0, 1]))   np.tensordot(v, w, axes=0)   np.matrix_transpose(c)   np.kron(v, w)   np.kron(np.eye(2), f)   np.cross(f[:, :3], w)   np.trace(f)   np.trace(i, 1)   np.einsum("ij,kj->ik", f, f)   np.einsum("ii", f[:, :3])   np.einsum("ij->j", f)   np.einsum(f, [0, 1], v, [1], [0])
np.linalg.cholesky(q)   np.linalg.cholesky(q, upper=True)   np.linalg.cross(f[:, :3], w)   np.linalg.det(q)   np.linalg.diagonal(c)   np.linalg.eigh(q).eigenvalues   np.linalg.eigvalsh(q)   np.linalg.inv(q)   np.linalg.inv(np.stack([q, q.T @ q]))
np.linalg.matmul(f, f.T)   np.linalg.matrix_norm(f)   np.linalg.matrix_norm(c, ord="nuc")   np.linalg.matrix_norm(f, ord=2, keepdims=True)   np.linalg.matrix_norm(f, ord=1)   np.linalg.matrix_norm(f, ord=-2)   np.linalg.matrix_norm(f, ord=np.inf)
np.linalg.matrix_power(q, 3)   np.linalg.matrix_power(q, -1)   np.linalg.matrix_power(q, 0)   np.linalg.matrix_rank(q)   np.linalg.matrix_rank(np.ones((3, 4)))   np.linalg.matrix_transpose(c)   np.linalg.outer(v, w)   np.linalg.pinv(f)   np.abs(np.linalg.qr(f.T).R)   np.linalg.qr(q, mode="complete").Q.shape   np.abs(np.linalg.qr(q, "r"))
np.linalg.slogdet(q)   np.linalg.slogdet(-q)   np.linalg.solve(q, w)   np.linalg.solve(q, f)   np.linalg.svd(f).S   np.linalg.svd(f, full_matrices=False).U.shape   np.linalg.svd(f, compute_uv=False)   np.linalg.svdvals(c)   np.linalg.tensordot(f, f)   np.linalg.trace(c)   np.linalg.vecdot(f, v)
np.linalg.vector_norm(f)   np.linalg.vector_norm(f, axis=1)   np.linalg.vector_norm(f, axis=0, ord=1, keepdims=True)   np.linalg.vector_norm(i, ord=np.inf)   np.linalg.vector_norm(f, ord=3)   np.linalg.vector_norm(f, ord=0)   np.linalg.norm(f)   np.linalg.norm(v, 1)   np.linalg.norm(f, axis=1)   np.linalg.norm(f, "fro")   np.linalg.norm(f, axis=0, keepdims=True)   np.linalg.norm(f, 2)   np.linalg.norm(i)   np.linalg.norm(c, axis=(1, 2))
np.linalg.lstsq(f.T, v, rcond=None)   np.linalg.matrix_power(i[:, :3], 3)   np.linalg.tensorsolve(q, w)   np.emath.sqrt(v)   np.polynomial.polynomial.polyval(v, [1, 2])   np.linalg.cond(q)   np.linalg.multi_dot([f, f.T, w])   np.linalg.inv(g[:, :3])   np.linalg.det(c[:, :, :3])   np.linalg.solve(q.astype(np.float32), w.astype(np.float32))   np.linalg.eigh(q)[0]   np.linalg.eigh(np.diag(w))[0]
"""

MANIPULATION = """
np.concat([f, g])   np.concat((f, i), axis=1)   np.concat([f, v], axis=None)   np.concatenate([i, j])   np.concatenate([f, f], axis=-1, dtype=np.float32)   np.expand_dims(f, 0)   np.expand_dims(f, (0, -1))   np.flip(f)   np.flip(f, axis=0)   np.flip(c, axis=(0, 2))   np.moveaxis(c, 0, -1)   np.moveaxis(c, [0, 1], [-1, -2])   np.permute_dims(c, (2, 0, 1))
np.repeat(v, 2)   np.repeat(f, 2, axis=1)   np.repeat(f, [1, 0, 2], axis=0)   np.repeat(3, 4)   np.reshape(f, (4, 3))   np.reshape(f, -1)   f.reshape(2, 6)   f.reshape((2, -1))   np.reshape(f, (4, 3), order="F")   f.reshape(2, 2, 3, copy=True)   np.roll(f, 1)   np.roll(f, 1, axis=0)   np.roll(f, (1, -2), axis=(0, 1))   np.roll(v, -1)
np.squeeze(f[None], axis=0)   np.squeeze(f[:, :1])   np.stack([f, g])   np.stack([v, v], axis=1)   np.stack([i, f], axis=-1)   np.tile(v, 2)   np.tile(f, (2, 1))   np.tile(v, (2, 2))   np.tile(3, 3)   np.unstack(f)   np.unstack(f, axis=1)   np.transpose(c)   np.transpose(c, (1, 0, 2))   c.transpose(1, 0, 2)   c.transpose()   np.swapaxes(c, 0, 2)   c.swapaxes(0, 1)   np.rollaxis(c, 2)   np.rollaxis(c, 0, 3)   f.T   c.T
np.hstack([f, f])   np.hstack([v, w])   np.vstack([v, v])   np.vstack([f, v])   np.dstack([v, v])   np.column_stack([w, w])   np.column_stack([f, w])   np.block([[f, f], [g, i]])   np.split(f, 3)   np.split(f, 2, axis=1)   np.split(v, [1, 3])   np.array_split(v, 3)   np.hsplit(f, 2)   np.vsplit(f, 3)   np.dsplit(c, 2)
np.lib.stride_tricks.sliding_window_view(v, 2)   np.lib.stride_tricks.sliding_window_view(f, (2, 2))   np.lib.stride_tricks.sliding_window_view(c, 2, axis=1)   np.ravel(f)   f.ravel()   f.flatten()   np.ravel(f, order="F")   f.T.ravel()   np.atleast_1d(3)   np.atleast_2d(v)   np.atleast_3d(v)   np.atleast_3d(f).shape   np.fliplr(f)   np.flipud(f)   np.rot90(f)   np.rot90(f, 2)   np.rot90(f, 3)   np.rot90(f, -1)   np.diagonal(f)   np.diagonal(c, 1, 1, 2)   f.diagonal(1)
np.pad(v, 1)   np.pad(f, ((1, 0), (2, 1)))   np.pad(f, 1, constant_values=9)   np.pad(f, 2, mode="edge")   np.pad(f, 1, mode="reflect")   np.pad(v, 3, mode="wrap")   np.pad(v, 2, mode="symmetric")   np.pad(v, 2, mode="linear_ramp")   np.append(v, 1)   np.append(f, f, axis=0)   np.delete(v, 1)   np.delete(f, [0, 2], axis=1)   np.delete(v, slice(1, 3))   np.insert(v, 1, 5)   np.insert(f, 0, 9, axis=1)   np.resize(v, (2, 3))   np.ediff1d(v)   np.trim_zeros(np.array([0, 1, 2, 0]))   np.unravel_index(k, (2, 2))
np.pad(z, 2)   np.repeat(z, 3, axis=0)   np.take(z, [0, 0], axis=0)   np.resize(e, (2, 3))   np.cross(f[:, :2], f[0, :2])   np.cross(f[:, :2], f[:, 1:])   np.ldexp(np.float32([0, -np.inf, np.nan, 1e-45, 3e38, 1]), [-(2**31), -(2**30), 3, 270, -400, 200])   np.arange(2, dtype=bool)   np.zeros(0, int) ** -1
"""

STATISTICS = """
np.sum(f)   np.sum(f, axis=0)   np.sum(c, axis=(0, 2))   np.sum(f, axis=1, keepdims=True)   f.sum()   i.sum(axis=-1)   np.sum(f, dtype=np.float32)   np.sum(e)   np.sum(e, axis=0)   np.sum(f, where=b)   np.sum(f, initial=5)   sum(v)   np.sum([1, 2, 3])   np.sum(3)   np.sum(f, axis=())
np.prod(f)   np.prod(i, axis=0)   np.prod(e, axis=1)   i.prod()   np.max(f)   np.max(f, axis=1)   np.amax(i, axis=0, keepdims=True)   f.max()   f.max(axis=(0, 1))   np.max(x)   np.max(f, initial=9)   np.min(f)   f.min(axis=0)   np.min(i)   np.amin(u)   max(v)   min(k)   np.max(f, where=b, initial=-9)   np.max(b)   b.min(axis=0)
np.mean(f)   np.mean(f, axis=0)   f.mean(axis=1, keepdims=True)   i.mean()   np.mean(g, dtype=np.float64)   np.mean(f, where=b)   np.mean(b)   np.std(f)   np.std(f, axis=0)   f.std(ddof=1)   np.std(f, axis=1, correction=1)   np.var(f)   np.var(i, axis=0, ddof=1)   f.var(axis=1)   np.var(g)   np.var(f, axis=0, keepdims=True)   np.std(f, where=b)
np.cumulative_sum(v)   np.cumulative_sum(f, axis=1)   np.cumulative_sum(v, include_initial=True)   np.cumulative_sum(f, axis=0, include_initial=True)   np.cumulative_prod(v)   np.cumulative_prod(f, axis=0, include_initial=True)   np.cumsum(f)   np.cumsum(f, axis=0)   f.cumsum(1)   np.cumprod(v)   np.cumprod(f, axis=1)   np.cumsum(i, dtype=np.float32)
np.all(b)   np.all(b, axis=0)   np.any(b)   np.any(i, axis=1)   b.all()   b.any(axis=1, keepdims=True)   (f > 9).any()   np.all(e)   np.diff(v)   np.diff(f, axis=0)   np.diff(f, n=2)   np.diff(b)   np.diff(v, prepend=0)   np.diff(v, append=v)   np.diff(u)
np.average(f)   np.average(f, axis=0)   np.average(v, weights=k)   np.average(f, axis=0, weights=w)   np.average(f, weights=p, returned=True)   np.ptp(f)   np.ptp(f, axis=0)   np.median(f)   np.median(f, axis=0)   np.median(i, axis=1)   np.median(f, axis=1, keepdims=True)   np.percentile(f, 30)   np.percentile(f, [25, 50], axis=0)   np.quantile(f, 0.3, axis=1)   np.quantile(f, [0, 0.5, 1])   np.quantile(f, 0.4, method="nearest")   np.quantile(v, 0.4, method="lower")   np.median(x)
np.cov(f)   np.cov(v, v[::-1])   np.cov(f, rowvar=False)   np.cov(f, ddof=0)   np.cov(f, fweights=k)   np.corrcoef(f)   np.corrcoef(v, v[::-1])   np.gradient(v)   np.gradient(v, 0.5)   np.gradient(f)   np.gradient(f, axis=1)   np.gradient(v, edge_order=2)   np.gradient(v, np.array([0.0, 1.0, 3.0, 4.0]))   np.trapezoid(v)   np.trapezoid(f, dx=0.5)   np.trapezoid(v, np.array([0.0, 1.0, 3.0, 4.0]))
np.nansum(x[:1])   np.nansum(np.where(b, np.nan, f), axis=0)   np.nanmean(np.where(b, np.nan, f))   np.nanmax(np.where(b, np.nan, f), axis=0)   np.nanmin(np.where(b, np.nan, f))   np.nanstd(np.where(b, np.nan, f))   np.nanvar(f, axis=0, ddof=1)   np.nanprod(np.where(b, np.nan, f))   np.nancumsum(np.where(b, np.nan, f))   np.nanmedian(np.where(b, np.nan, f))   np.nanargmax(np.where(b, np.nan, f))
np.histogram(f, bins=4)   np.bincount(k)   np.bincount(k, weights=v)   np.bincount(k, minlength=6)   np.convolve(v, w)   np.convolve(v, w, "same")   np.convolve(v, w, mode="valid")   np.convolve(w, v, "same")   np.correlate(v, w)   np.interp(f, [-1, 0, 1], [2, 0, 5])   np.interp(0.3, [0, 1], [1, 2])   np.interp(v, np.array([0.0, 1.0]), np.array([1.0, 3.0]), left=-1)   np.unwrap(v * 5)   np.polyfit(np.arange(4), v, 1)   np.polyval([1, 2, 3], v)   np.roots([1, -3, 2])   np.apply_along_axis(lambda t: t.sum(), 0, f)
np.median(e)   np.median(b)   np.median(x[5:])   np.median(np.array([-np.inf, 1.0]))   np.percentile(np.array([-np.inf, 1, 2]), [0, 50, 100])   np.percentile(f, 30, method="higher")   np.cumsum(z, axis=0)   np.cumprod(u[0, 0], axis=-1)   np.diff(z, 0)   np.trapezoid(g)   np.trapezoid(g, axis=0)   np.trapezoid(f, x=np.cumsum(p, 1), axis=1)   np.cov(np.ones((2, 0)))
np.einsum("ij,jk->ik", g, g.T, dtype=np.float64)   np.einsum("ii", i[:, :3], dtype=np.float64)
a = np.zeros(4); [np.einsum("ij->j", f, out=a) is a, a]
a = np.zeros((3, 4)); [np.clip(f, -1, 1, out=a) is a, a]
a = np.zeros(4); [np.max(f, axis=0, out=a) is a, a]
a = np.zeros(3); [np.matvec(f, v, out=a) is a, a]
a = np.zeros(4); [np.vecmat(w, f, out=a) is a, a]
a = np.zeros(4); [np.nanmax(f, axis=0, out=a) is a, a]
a = np.zeros(4); [np.nanmedian(f, axis=0, out=a) is a, a]
a = np.zeros((3, 4)); [np.nancumsum(f, axis=1, out=a) is a, a]
a = np.zeros(4); [np.choose([0, 1, 0, 1], f[:2], out=a) is a, a]
"""

SORTING = """
f.compress([True, False, True], 0)   np.sum(f, 0, None, np.zeros(4))   np.common_type(g, i)   np.sort(m)   np.max(m)   np.argsort(n)   np.quantile(f, 0.3, method='hazen')   np.interp(v, [0, 1], [1, 2], period=3)   np.sort(f)   np.sort(f, axis=0)   np.sort(f, axis=None)   np.sort(i, axis=1, stable=True)   np.argsort(f)   np.argsort(f, axis=0)   v.argsort()   np.argsort(k, stable=True)   np.sort(x)   np.argsort(k, kind="stable")   np.sort(v)[::-1]   np.lexsort((k, v))   np.lexsort((v, k))   np.sort(b)   np.sort(u)
np.unique_all(k)   np.unique_counts(i)   np.unique_inverse(k)   np.unique_values(i)   np.unique(k)   np.unique(i, return_counts=True)   np.unique(k, return_index=True, return_inverse=True)   np.unique(f[:, :1] > 0, axis=0)   np.isin(i, [1, 2, 3])   np.isin(k, k[:1], invert=True)   np.isin(f, f[0])   np.union1d(k, [5])   np.intersect1d(i, j)   np.setdiff1d(k, [1])   np.setxor1d(k, [1, 7])
"""

PRINTING = """
repr(f)   str(f)   repr(i)   repr(g)   str(u)   repr(b)   repr(z)   str(z)   repr(f[0, 0])   str(f[0, 0])   repr(f.sum())   repr(i.max())   repr(b.any())   f"{f[0, 0]:.3f}"   f"{f.sum():8.2f}"   repr(e)   repr(np.arange(2000))   f"{v}"   repr(g.sum())   str(i.sum())   "%.2f" % f[0, 0]   "%d" % i[0, 0]   np.array2string(v, precision=2)   repr(f.shape)   repr(f.dtype)   hash(f[0, 0])
f.tobytes()   [f"{a:.2f}" for a in v]   np.pi   np.e   np.inf   np.newaxis   np.isscalar(f[0, 0])   np.isscalar(f)   np.isscalar(3)   isinstance(f, np.ndarray)   isinstance(f[0, 0], np.ndarray)   callable(np.add)   f.__array_namespace__() is np   np.iscomplexobj(f)   np.isrealobj(f)
"""

COMPLEX = """
np.array([1j, 2])   np.array(2 + 1j)   np.asarray(m, dtype=np.complex64)   np.zeros(3, complex)   np.zeros(2, np.complex128)   np.full(2, 1j)   np.ones((2,), dtype=np.complex64)   np.eye(2, dtype=complex)   np.linspace(0, 1j, 3)   np.arange(3) * 1j   np.asarray([1j, 2.0, True])
m + m   m - f   m * 2   m / f   2j * f   f + 1j   n + 1   n * 2.5   n + f[0]   m ** 2   m ** 0.5   m ** m   -m   +m   m == m   m != f   np.abs(m)   np.absolute(n)   abs(m)   np.conj(m)   np.conjugate(n)   m.conj()   np.sign(m)   np.square(m)   np.reciprocal(m)
np.exp(m)   np.expm1(m)   np.log(m)   np.log1p(m)   np.log2(m)   np.log10(m)   np.sqrt(m)   np.sin(m)   np.cos(m)   np.tan(m)   np.sinh(m)   np.cosh(m)   np.tanh(m)   np.arcsin(m)   np.arccos(m)   np.arctan(m)   np.arcsinh(m)   np.arccosh(m)   np.arctanh(m)   np.sqrt(n)   np.exp(n)
np.real(m)   np.imag(m)   m.real   n.imag   np.angle(m)   np.angle(m, deg=True)   np.angle(f)   np.isnan(m)   np.isinf(m)   np.isfinite(m)   np.iscomplexobj(m)   np.isrealobj(m)   np.logical_not(m)   np.logical_and(m, n)   np.where(b, m, 0)   np.where(b, m, f)
m.sum()   m.sum(axis=0)   np.prod(m, axis=1)   np.mean(m)   m.mean(axis=1, keepdims=True)   np.var(m)   np.std(m, axis=0)   np.cumsum(m, axis=1)   np.cumprod(n)   np.all(m)   np.any(m, axis=0)   np.count_nonzero(m)   np.diff(m)   np.average(m, axis=0)   np.cumulative_sum(n)
m @ m.T   m @ n   np.vdot(n, n)   np.dot(m, n)   np.vecdot(m, m)   np.outer(n, n)   np.inner(m, m)   np.tensordot(m, m)   np.einsum("ij,kj->ik", m, m)   np.matmul(f, m.T)   np.trace(m)   np.kron(n, n)   np.linalg.norm(m)   np.linalg.norm(m, axis=0)   np.linalg.vector_norm(n)   np.linalg.matrix_norm(m)   np.linalg.inv(h)   np.linalg.eigvalsh(h)   np.linalg.solve(h, w)   np.linalg.svdvals(m)   np.linalg.cholesky(h)   np.linalg.det(h)   np.linalg.slogdet(h)   np.linalg.eigh(h).eigenvalues   np.linalg.norm(m, 'nuc')
m[0]   m[:, 1]   m[b]   m[[0, 2]]   m[1, 2]   m.T   m.reshape(4, 3)   np.concatenate([m, f])   np.stack([m, m])   np.flip(m)   np.roll(m, 1)   np.repeat(n, 2)   np.tile(n, 2)   np.transpose(m)   np.expand_dims(m, 0)   np.broadcast_to(n, (3, 4))   np.pad(n, 1)   np.tril(m)   np.diag(n)   np.take(n, k)   np.squeeze(m[None])   np.split(n, 2)   np.isclose(m, m)   np.allclose(m, m)   np.array_equal(m, m)   m.astype(np.complex64)   np.result_type(n, 1.0)   np.result_type(n, f)   np.result_type(f, 1j)   np.can_cast(f, complex)
np.sort(np.array([2 + 1j, 1 + 3j, 1 - 1j, 2.0]))   m < n   m <= n   m > n   m >= n   np.maximum(m, n)   np.minimum(m, n)   np.fmax(m, n)   np.fmin(m, n)   np.max(m, 0)   np.maximum.reduce(m)   np.maximum.accumulate(n)
a = np.array([complex(np.nan, 1), 1 + 2j, complex(1, np.nan), 1 + 1j, 3.0]); [np.maximum(a, 1 + 1j), np.minimum(a, 1 + 1j), np.fmax(a, 1 + 1j), np.fmin(a, 1 + 1j), a < 1 + 1j, a <= 1 + 1j, a > 1 + 1j, a >= 1 + 1j]
np.cov(m)   np.cov(n)   np.cov(m, f)   np.cov(m, fweights=k)   np.corrcoef(m)
m.astype(float)   m.astype(np.int8)   m.astype(bool)   np.asarray(n, dtype=np.float32)   np.array(m, dtype=float)   np.rint(m)   m.view(complex)   np.median(m)   np.nanmax(n)   np.nanmean(m, axis=0)
a = n.copy(); np.add.at(a, [0, 0], 1j); a
a = n.copy(); np.multiply.at(a, [0, 0, 2], 2j); a
a = np.zeros((3, 4)); a[...] = m; a
np.array([0j, 0j, 0j, 2j]) ** np.array([1 + 1j, 0, -1 + 2j, 1])   np.array([complex(-np.inf, 0), 2j]) ** 1
f.conj() is f   b.conj()   np.angle(u)   np.angle(g)   np.angle(u, deg=True)
repr(m)   str(n)   repr(m[0, 0])   str(m[1, 1])   m.tolist()   complex(m[0, 0])   m[0, 0].real   m[0, 0].imag   m.dtype.name   m.nbytes   m.item(2)   np.nonzero(m)   list(n)   m.ravel()   np.unique(n)
a = m.copy(); a[0] = 1; a
a = m.copy(); a[1, 2] = 3j; a
a = m.copy(); a[b] = 0; a
a = m.copy(); a *= 2; a
a = m.copy(); a += 1j; a
a = m.copy(); a.real[0] = 0; a
a = m.copy(); a.imag = 1; a
a = m.copy(); a.real += f; a
a = np.zeros((3, 4), complex); a.real = f; a.imag[1:] = 2; a
a = m.copy(); d = a.T; d[0] = 1j; a
np.linalg.eigvals(f[:, :3])   np.linalg.eig(q).eigenvalues
np.fft.fft(f)   np.fft.fft(m)   np.fft.fft(v, n=6)   np.fft.fft(f, axis=0)   np.fft.fft(f, norm="ortho")   np.fft.ifft(m)   np.fft.ifft(np.fft.fft(v))   np.fft.fftn(c)   np.fft.ifftn(c)   np.fft.fft2(f)   np.fft.ifft2(m)   np.fft.rfft(f)   np.fft.rfft(v, 3)   np.fft.irfft(m)   np.fft.irfft(m, n=5)   np.fft.rfftn(c)   np.fft.irfftn(m)   np.fft.hfft(m)   np.fft.ihfft(f)   np.fft.fftfreq(7, 0.5)   np.fft.rfftfreq(8)   np.fft.fftshift(f)   np.fft.ifftshift(v)   np.fft.fftshift(f, axes=1)   np.fft.fft(f.astype(np.float32))   np.fft.rfft2(f)   np.fft.irfft2(m)
"""

CHAPTERS = {
  "creation": CREATION, "types": TYPES, "elementwise": ELEMENTWISE, "indexing": INDEXING, "linear": LINEAR,
  "manipulation": MANIPULATION, "statistics": STATISTICS, "sorting": SORTING, "printing": PRINTING,
  "complex": COMPLEX,
}  # fmt: skip

MISTAKES = """
m % 2   m // 2   np.floor(m)   f.astype(np.int64)[1j]   np.fft.fft(z)   np.fft.fft(f, n=-1)   np.fft.fft(f, axis=5)   np.fft.fft(f, norm="x")
a = f.copy(); a += 1j
a = f.copy(); a[0] = 1j
f[5]   f[0, 9]   f[0, 0, 0]   f["a"]   f[1.0]   f[[7]]   f[b[:2]]   f[..., ...]   v[k, k]   f[:, [0, 1], [0, 1, 2]]   z[0]   f[0, 0][0]
f + np.ones(5)   f @ f   f @ np.ones((3, 3, 3))   np.dot(f, f)   np.add(1)   np.add(f, f, f, f)   np.ones(3) @ 2   np.vecdot(v, w)   np.concatenate([f, v])   np.concatenate([])   np.concat([f, f[:2]], axis=1)   np.concat([f, f], axis=5)   np.stack([f, v])   np.stack([])
f.sum(axis=5)   np.max(e[:, 0])   e.max()   np.argmax(e)   f.sum(axis=(0, 0))   np.mean(f, axis=-3)   np.sort(f, axis=2)   np.expand_dims(f, 5)   np.squeeze(f, axis=0)   np.transpose(f, (0, 0))   f.transpose(1)   np.swapaxes(f, 0, 5)   np.moveaxis(f, 0, 5)   np.flip(f, 3)   np.reshape(f, (5, 5))   f.reshape((-1, -1))   np.broadcast_to(f, (4, 3))   np.split(f, 2)   np.roll(f, 1, axis=4)   np.repeat(f, [1, 2], axis=0)   np.tile()   np.zeros(-1)   np.zeros("a")   np.eye(-1)   np.linspace(0, 1, -1)   np.arange()
-b   b - b   ~f   f & 1   f << 1   i << 0.5   np.bitwise_and(f, 1)   j ** -1   2 ** i   u + 300   u + (-1)   np.array([1, [2, 3]])   bool(f)   float(f)   int(v)   len(z)   iter(z)   f.item()   if_f = 1 if f else 0; if_f
a = i.copy(); a += 1.5
a = u.copy(); a[0] = 300
a = f.copy(); a[0] = v[:3]
a = f.copy(); a[9] = 0
a = f.copy(); a[b] = v
a = i.copy(); a /= 2
a = np.broadcast_to(v, (3, 4)); a[0] = 1
a = f.copy(); a.shape = (5, 5)
a = f.copy(); a += np.ones((2, 3, 4))
np.add(f, f, out=np.zeros(3))   np.add(f, f, dtype=np.int64)   np.sum(f, axis=0.5)   f.astype(np.int64, casting="safe")   np.take(v, 9)   np.take(f, [0], axis=3)   np.cumulative_sum(f)   np.unstack(z)   f.mT.mT.mT.x   np.linalg.inv(f)   np.linalg.inv(np.zeros((3, 3)))   np.linalg.solve(q, v)   np.linalg.cholesky(-q)   np.linalg.det(f)   np.linalg.inv(v)   np.linalg.qr(f, mode="x")   np.cross(v, v)   np.linalg.eigh(f)   np.linalg.matrix_power(f, 2)   np.linalg.outer(f, f)   np.where(b, f)   np.where(b, f, np.ones(5))   np.take_along_axis(f, k, 1)   np.quantile(f, 2)   np.diff(z)   np.meshgrid(v, w, indexing="a")   np.full((2,), [1, 2, 3])   hash(f)   np.clip(f, np.ones(7), 2)   np.searchsorted(f, 1)   np.trapezoid(v, w)   np.interp(1, [1, 2], [1])   np.pad(f, -1)   np.from_dlpack(3)   np.histogram(f, bins=-1)   np.result_type()   np.isdtype(np.int8, "x")
np.flipud(z)   np.isposinf(m)   np.isneginf(n)   np.convolve(f, v)   np.around(b, 1)   np.percentile(b, 50)   np.gradient(b)   np.arange(3, dtype=bool)   np.add.reduceat(z, [0])   np.add.reduceat(v, [9])
"""


def rows_of(text: str) -> list[str]:
  """The expressions of a table; a line with several statements is one row."""
  lines = [line.strip() for line in text.splitlines() if line.strip()]
  return [
    row.strip() for line in lines for row in ([line] if ";" in line else line.split("   ")) if row.strip()
  ]
