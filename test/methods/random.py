"""Random numbers: shape, type and distribution; test_tensor_random.py has more. The seed is the same for every row."""

import math


def flat(low, high):
  """The cumulative distribution of what is uniform in low..high."""
  return lambda t: min(max((t - low) / (high - low), 0), 1)


def bell(mean, std):
  return lambda t: 0.5 * (1 + math.erf((t - mean) / std / math.sqrt(2)))


def among(*shares):
  """Of 0, 1, ... with these probabilities."""
  return lambda t: sum(p for n, p in enumerate(shares) if n <= t)


def falling(rate):
  return lambda t: 1 - math.exp(-rate * max(t, 0))


INPUTS = {"falling": falling, "flat": flat, "bell": bell, "among": among}

ROWS = """
T.rand(3000) => flat(0,1)   T.rand(3000,dtype=F64) => flat(0,1)   T.uniform(3000,low=-2,high=3) => flat(-2,3)   T.randn(3000) => bell(0,1)   T.randn(3000,dtype=F64) => bell(0,1)   T.normal(3000,mean=2.0,std=3.0) => bell(2,3)
T.zeros(3000).rand_like() => flat(0,1)   T.zeros(3000).randn_like() => bell(0,1)   T.scaled_uniform(50,60) => flat(-3000**-0.5,3000**-0.5)   T.glorot_uniform(50,60) => flat(-(6/110)**0.5,(6/110)**0.5)
T.kaiming_uniform(50,60,a=1.0) => flat(-(3/60)**0.5,(3/60)**0.5)   T.kaiming_normal(50,60,a=1.0) => bell(0,60**-0.5)   T.randint(4,size=(4000,)) => among(0.25,0.25,0.25,0.25)   T.randint(high=4,size=(4000,)) => among(0.25,0.25,0.25,0.25)   T.randint(0,4,(4000,)) => among(0.25,0.25,0.25,0.25)   T.full((4000,),0.3).bernoulli() => among(0.7,0.3)
T.tensor([1.0,2.0,1.0]).multinomial(20,replacement=True) => among(0.25,0.5,0.25)   T.tensor([[1.0,0.0,1.0]]*2000).multinomial(2) => among(0.5,0.0,0.5)   T.tensor([[2.0,6.0]]*2000).multinomial(1) => among(0.25,0.75)
T.zeros(3000,2).gumbel_softmax(hard=True)[:,0] => among(0.5,0.5)   T.exponential(3000,rate=2.0) => falling(2.0)   T.gamma(3000,shape=2.0) => lambda t: 1-(1+t)*math.exp(-t)   T.gamma(3000,shape=0.5,rate=0.5) => lambda t: math.erf((t/2)**0.5)   T.beta(3000,a=0.5,b=0.5) => lambda t: 2/math.pi*math.asin(t**0.5)
sorted(T.randperm(9).tolist()) => list(range(9))   T.randperm(4000)[::2]/4000 => flat(0,1)   T.randperm(4000)[:2000]/4000 => flat(0,1)   T.tensor([[1.0,0.0,2.0,1.0]]*2000).multinomial(2)[:,1] => among(1/3,0,1/3,1/3)   T.manual_seed(7) is None => True   tuple(T.rand(2,3,dtype=F16).shape) => (2,3)   T.randint(5,(2,)).dtype.itemsize => 8   T.randperm(0).tolist() => []
T.zeros(4000).cauchy_(1.0,2.0) => lambda t: 0.5+math.atan((t-1)/2)/math.pi   T.zeros(4000).log_normal_(0.5,2.0) => lambda t: 0.5*(1+math.erf((math.log(t)-0.5)/2/math.sqrt(2))) if t>0 else 0   T.zeros(4000).geometric_(0.3) => lambda t: 1-0.7**max(math.floor(t),0)   T.zeros(4000).random_(4) => among(0.25,0.25,0.25,0.25)   T.zeros(4000).random_(1,3) => among(0,0.5,0.5)
T.zeros(4000,dtype=I8).random_()/128.0 => flat(0,1)   T.zeros(4000).random_()/2**24 => flat(0,1)   T.zeros(4000).randint_like(4) => among(0.25,0.25,0.25,0.25)   T.zeros(4000,dtype=I64).randint_like(1,3) => among(0,0.5,0.5)
"""

MISTAKES = """
T.randperm(-1)            !   randperm: there are no -1 integers
y.gumbel_softmax(axis=9)  !   there is no axis 9
T.rand(-1)                !   rand: a size is negative
T.rand(2, dtype=I32)      !   random numbers in [0, 1) are no int32
T.randn(-1)               !   randn: a size is negative
T.randn(2, dtype=I32)     !   randn
T.randint(3, 3, (2,))     !   there are no integers from 3
T.zeros(2).geometric_(1.0)   !   geometric_: a probability
T.exponential(3, rate=0.0)   !   exponential: rate is positive, not 0.0
T.gamma(3, shape=-1.0)    !   gamma: shape and rate are positive, not -1.0
T.beta(3, a=-1.0, b=1.0)  !   gamma: shape and rate are positive
T.uniform(-1)             !   a size is negative
T.normal(-1)              !   a size is negative
T.scaled_uniform(-1)      !   scaled_uniform: a size is negative
T.glorot_uniform(-1)      !   glorot_uniform: a size is negative
T.kaiming_uniform(-1)     !   kaiming_uniform: a size is negative
T.kaiming_normal(-1)      !   kaiming_normal: a size is negative
i.multinomial(2)          !   weights are floats
y.multinomial(5)          !   multinomial: 5 draws from 4 places
i.rand_like()             !   rand
i.randn_like()            !   randn
T.manual_seed('a')        !   manual_seed: seed is 'a', not an integer
T.beta(3, a=-1.0, b=1.0)  !   shape and rate are positive, not -1.0 and 1.0
T.beta(3, a=1.0, b=1.0, dtype=I32)   !   random numbers in [0, 1) are no int32
(y * 0).multinomial(2)    !   is out of bounds
(y * 0).multinomial(2, True)   !   is out of bounds
(y - 9).multinomial(1)    !   is out of bounds
(y / 0).abs().multinomial(1)   !   is out of bounds
"""
