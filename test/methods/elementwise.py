"""Element by element: arithmetic, comparisons, logic, bits, choosing."""

from methods import constant, np

INPUTS = {
  "least": constant([-128, -128, 127, 5, -5, 0], np.int8),
  "by": constant([-128, 3, -128, -128, 3, -128], np.int8),
  "far": constant([-1, 0, 30, 31], np.int32),
  "farther": constant([-1, 62, 63, 64], np.int64),
}

ROWS = """
fhiub: x + y   x * y   y == v   y != v   y < v   y <= v   y > v   y >= v   y + 0.5   y / q   y == 1   y.eq(v)   y.ne(v)   y.lt(v)   y.le(v)   y.gt(v)   y.ge(v)
fhiub: y.add(v)   y.mul(v)   y.div(q)   y + s   y + z[:, :1].sum()   y.logical_and(v)   y.logical_or(v)   y.logical_xor(v)   y.logical_not()   y.maximum(v)   y.minimum(v)   y.isnan()   y.isinf()   y.isfinite()
fhiu: x - y   y - 1   1 - y   2 * y   y.sub(v)   y.add(v,alpha=2)   y.sub(v,alpha=2)   y.abs()   abs(y)   +y   y.square()   y.clamp(1,2)   y.clamp(min=1)   y.clamp(max=1)   y.clip(1,2)   y.sign()   y.pow(2)
fhi: -y   y.neg()
# the gradients of // are zero here, and not defined in PyTorch; PyTorch rounds halves between quotient and floor
fiu~: y // q   s * h   y.floor_divide(q)   y.div(q,rounding_mode='floor')   y.div(q,rounding_mode='trunc')   y % q   y.remainder(q)   y.fmod(q)
fiu: y ** 2   y ** 3   y ** 0   p.pow(2)
f~: y // 0.7   y % 0.7
f:   p ** 0.5   p ** -1   p ** q   p ** 2.5   2.0 ** y   1 / p   p.reciprocal()   y.lerp(p,0.25)   y.lerp(p,q)   y.isclose(y)   y.isclose(p)   y.isclose(p,rtol=1,atol=1)
f: x + y[:, :1]   x * s   s * s   z + 1   z * v[:3]   odd * 2 + odd   2 - s   e.isnan()   y.nan_to_num()
iub: y & p   y | p   y ^ p   ~y   y.bitwise_and(p)   y.bitwise_or(p)   y.bitwise_xor(p)   y.bitwise_not()
iu: y.clamp(1,2) << q.clamp(1,2)   y >> 1   y << 2   y & 6   6 & y   6 | y   6 ^ y
(5*i) >> 62   i >> 63   i >> 64   i >> -1   i << 64   i << -1   u >> 7   u >> 8   i >> farther   i << farther   i.int() >> 31   i.int() >> far
~: e ** math.inf   e ** -math.inf   e ** math.nan   y.norm(math.nan)
iu: y.lshift(2) => y << 2   y.rshift(1) => y >> 1
fhiub: b.where(y, p) => torch.where(b,y,p)   b.where() => torch.where(b)   b.where(y, 1) => torch.where(b,y,1)   y.masked_fill(b,0)   y.masked_fill(b,s)
i / j   i // j   i % j   i + y   b + i   b + b   i + 0.5   b * y   n + y   n + i   s + i   h + y   u + 1   u + i   u * 2   u - 1   u + u   b + 1   b + 1.5   b / b   i ** 2   i ** 3   2 ** j
i ** j   j ** -1.0   -i   ~b   ~i   +y   abs(i)   i & j   i | j   i ^ j   b & b   b | True   b ^ b   i << 2   i >> 1   1 << j   8 >> j   u >> 2   i < j   i == 1   e < 0   e <= 0   e > 0   e >= 0   e == e   e != e   b == True
e.isnan()   e.isinf()   e.isfinite()   e.neg()   e.square()   e.nan_to_num()   e.nan_to_num(1.0,2.0,3.0)   e.clamp(-1,1)   e.clamp(min=0)   e.clamp(max=0)   e.reciprocal()   e.abs()   e.sign()   e.maximum(s)   e.minimum(s)   i.clamp(-1,2)   i.maximum(j)   i.minimum(j)   u.minimum(u)
least.div(by,rounding_mode='trunc')   least.div(-128,rounding_mode='trunc')   least.fmod(by)   least.fmod(-128)   least.long().div(by,rounding_mode='trunc')
b.logical_not()   i.logical_and(j)   i.logical_or(b)   i.logical_xor(j)   y.masked_fill(b,-math.inf)   i.masked_fill(b,7)   i.fmod(j)   i.div(j,rounding_mode='trunc')   i.div(j,rounding_mode='floor')   i.floor_divide(j)   i.add(j,alpha=1.0) => i+1.0*j   i.sub(j,alpha=1.0) => i-1.0*j   i.sign()   u.sign()
y.allclose(y)   y.allclose(p)   y.equal(y)   y.equal(p)   y.equal(v)   e.equal(e)
iadd(y+0, v)   isub(y+0, v)   imul(y+0, v)   itruediv(y+0, q)   imod(i+0, j)   ifloordiv(i+0, j)   ipow(y+0, 2)   iand(i+0, j)   ior(i+0, j)   ixor(i+0, j)   ilshift(i+0, 1)   irshift(i+0, 1)
"""

MISTAKES = """
y * 10**400               !   is no float32
b.neg()                   !   booleans have no negative
y.bitwise_not()           !   bits of float numbers are not operated on
y + k                     !   a + b: the shapes (3, 4) and (3,) do not repeat to a common one
y - k                     !   a - b
y * k                     !   a * b
y / k                     !   a / b
y // k                    !   a // b
y % k                     !   a % b
y ** k                    !   a ** b
y < k                     !   a < b
y.add(k)                  !   a + b: the shapes (3, 4) and (3,)
y.add('1')                !   other is '1', not a tensor or a number
y.sub(k)                  !   a - b
y.sub('1')                !   other is '1', not a tensor or a number
y.mul(k)                  !   a * b
y.mul([1])                !   other is [1], not a tensor or a number
y.div(k)                  !   a / b
y.div(v, rounding_mode='up')   !   rounding_mode is None, "floor" or "trunc", not 'up'
y.floor_divide(k)         !   a // b
y.remainder(k)            !   a % b
y.fmod(k)                 !   fmod
y.pow(k)                  !   a ** b
i.pow(-1)                 !   negative integer powers
y.lt(k)                   !   a < b
y.le(k)                   !   a <= b
y.gt(k)                   !   a > b
y.ge(k)                   !   a >= b
y.eq(k)                   !   a == b
y.ne(k)                   !   a != b
b.neg()                   !   booleans have no negative
y.lerp(k, 0.5)            !   a - b
y.isclose(k)              !   a == b
y.allclose(k)             !   a == b
y.logical_and(k)          !   logical_and
y.logical_or(k)           !   logical_or
y.logical_xor(k)          !   logical_xor
y & v                     !   a & b: bits of float numbers
y.bitwise_and(1)          !   a & b: bits of float numbers
y.bitwise_or(1)           !   a | b: bits of float numbers
y.bitwise_xor(1)          !   a ^ b: bits of float numbers
y.bitwise_not()           !   ~a: bits of float numbers
y.lshift(1)               !   a << b
y.rshift(1)               !   a >> b
y.maximum(k)              !   maximum
y.minimum(k)              !   minimum
y.clamp()                 !   clamp: give min, max or both
y.clip()                  !   clamp: give min, max or both
y.where(1, 2)             !   the condition is float32, not bool
b.where(k, 2)             !   where
b.where(k)                !   where: b is missing
y.masked_fill(y, 0)       !   the mask is float32, not bool
y.masked_fill(b[0, :3], 0)   !   masked_fill
imul(i+0, 0.5)            !   a *= b: the result is float32
iadd(v+0, y)              !   a += b: the result has shape (3, 4)
y.equal(3)                !   equal: other is 3, not a tensor
y.nan_to_num('a')         !   nan_to_num: nan is 'a', not a number
y + 'a'                   !   a + b: b is a str, neither a tensor nor a number
y * [1, 2]                !   a * b: b is a list, neither a tensor nor a number
"""
