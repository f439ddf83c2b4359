"""200 calls that users write: mypy and pyright know each of them, and all run."""

from typing import TYPE_CHECKING

import numpy as np

import mini
import mini.numpy as mnp
from mini import Tensor, dtypes, jit, nn
from mini.nn import functional as F

# ---------------------------------------------------------------- tensors
x: Tensor = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
y: Tensor = Tensor(np.ones((2, 3), np.float32), requires_grad=True)
target: Tensor = Tensor([0, 2], dtype=dtypes.int64)
made: list[Tensor] = [
  Tensor.zeros(2, 3), Tensor.ones((2, 3)), Tensor.full((2, 3), 0.5), Tensor.eye(3), Tensor.arange(6).reshape(2, 3),
  Tensor.rand(2, 3), Tensor.randn(2, 3), Tensor.randint(0, 9, (2, 3)), Tensor.linspace(0, 1, 6), Tensor.empty(2, 3),
  Tensor.zeros_like(x), Tensor.ones_like(x), Tensor.randn_like(x), Tensor.full_like(x, 2.0), Tensor([1.0, 2.0]),
]  # fmt: skip
Tensor.manual_seed(0)
shape: tuple[int, ...] = x.shape
sizes = x.size()
n: int = x.numel()
ndim: int = x.ndim
device = x.device
kind = x.dtype
print(x, x.shape, x.dtype, x.device, x.requires_grad)

# ---------------------------------------------------------------- arithmetic
z: Tensor = x + y
z = x - 1
z = 2 * x
z = x / y
z = x**2
z = -x
z = x // 2
z = x % 2
z = x @ y.T
z = 1 - x
z = 1 / x
same: Tensor = x == y
more: Tensor = x > 1
both: Tensor = (x > 1) & (x < 5)
x += 1
x -= 1
x *= 2
x /= 2
z = x.add(y).sub(1).mul(2).div(4).pow(2)
z = x.exp().log().sqrt().rsqrt().abs().neg()
z = x.sin() + x.cos() + x.tanh() + x.sigmoid() + x.erf()
z = x.relu() + x.gelu() + x.silu() + x.leaky_relu(0.1) + x.elu()
z = x.clamp(0, 1).clip(0, 1).maximum(y).minimum(y)
z = x.floor() + x.ceil() + x.round() + x.sign()
z = x.matmul(y.T) + mini.einsum("ij,kj->ik", x, y)

# ---------------------------------------------------------------- shapes
z = x.reshape(3, 2).view(6).unsqueeze(0).squeeze(0).reshape((2, 3))
z = x.permute(1, 0).transpose(0, 1).T.mT.contiguous()
z = x.expand(4, 2, 3).flatten(1).repeat(2, 1)
z = x.flip(0).roll(1, 0).pad((1, 1))
parts = x.chunk(2)
pieces = x.split(1, 0)
first, second = x.unbind(0)
z = Tensor.cat([x, y], 1)
z = Tensor.stack([x, y], dim=0)
z = x[0]
z = x[0, 1:2]
z = x[:, None, ::2]
z = x[..., -1]
z = x[x > 2]
z = x[target % 2]
x[0, 0] = 3.0
x[0] = y[1].detach()
z = x.gather(1, target.reshape(2, 1)).index_select(0, target % 2)
z = x.masked_fill(x > 1, 0.0).tril().triu()
z = (x > 1).where(x, y)

# ---------------------------------------------------------------- reductions
z = x.sum()
z = x.sum(1, keepdim=True)
z = x.mean(0)
z = x.mean(dim=(0, 1))
z = x.var(1) + x.std(1)
z = x.prod(1).amax() + x.amin()
best, where = x.max(1)
least, at = x.min(dim=1)
z = x.argmax(1) + x.argmin(1)
z = x.softmax(1) + x.log_softmax(dim=-1)
z = x.logsumexp(1).norm()
z = x.cumsum(1).cumprod(0)
ranked, order = x.sort(1, descending=True)
top, index = x.topk(2)
z = (x > 1).any() | (x > 1).all()
close: bool = x.allclose(y)

# ---------------------------------------------------------------- out to Python
array = x.numpy()
total = array.sum()
value = x.sum().item()
nested = x.tolist()
length: int = len(x)
number = float(x.sum())
rows = [row for row in x]
z = x.float().half().double().int().long().bool()
z = x.to("CPU").to(dtypes.float16).cast(dtypes.float32).cpu()
z = x.detach().clone().realize()
x.add_(1.0)
x.mul_(0.5)
x.zero_()
x.fill_(1.0)
x.copy_(y.detach())
x.uniform_()
x.normal_(0.0, 1.0)

# ---------------------------------------------------------------- gradients
loss: Tensor = (y * 2).sum()
loss.backward()
grad = y.grad
z = y.square().sum().gradient(y)[0]
with mini.no_grad():
  y.sub_(0.1)
with Tensor.train():
  z = y.dropout(0.5)
y.requires_grad_(False)
per_row = mini.vmap(lambda a: a.sum())(x)
slope = mini.grad(lambda a: a.square().sum())(x)

# ---------------------------------------------------------------- layers
linear = nn.Linear(3, 4)
z = linear(x)
z = linear.weight + 0
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.LayerNorm(8), nn.Dropout(0.1), nn.Linear(8, 4))
z = model(x)
model.train()
model.eval()
state = model.state_dict()
model.load_state_dict(state)
for p in model.parameters():
  p.requires_grad_()
for name, p in model.named_parameters():
  print(name, p.shape)
count = sum(p.numel() for p in model.parameters())
images = Tensor.randn(2, 3, 8, 8)
z = nn.Conv2d(3, 4, 3, padding=1)(images)
z = nn.ConvTranspose2d(3, 4, 2, stride=2)(images)
z = nn.BatchNorm2d(3)(images)
z = nn.GroupNorm(1, 3)(images)
z = nn.MaxPool2d(2)(images)
z = nn.AvgPool2d(2)(images)
z = nn.AdaptiveAvgPool2d(1)(images)
z = nn.Upsample(scale_factor=2)(images)
z = nn.Flatten()(images)
z = nn.Embedding(10, 4)(target)
z = nn.GELU()(x) + nn.SiLU()(x) + nn.Tanh()(x) + nn.Sigmoid()(x) + nn.LeakyReLU(0.1)(x)
z = nn.RMSNorm(3)(x)
tokens = Tensor.randn(2, 5, 8)
z, memory = nn.LSTM(8, 4, batch_first=True)(tokens)
z, hidden = nn.GRU(8, 4)(tokens)
z, weights = nn.MultiheadAttention(8, 2, batch_first=True)(tokens, tokens, tokens)
z = nn.TransformerEncoderLayer(8, 2, batch_first=True)(tokens)
z = nn.CrossEntropyLoss()(model(x), target)
z = nn.MSELoss()(x, x * 2)
z = nn.BCEWithLogitsLoss()(x, x.sigmoid())
nn.init.xavier_uniform_(linear.weight)
nn.init.zeros_(linear.weight)


class Block(nn.Module):
  def __init__(self, width: int):
    super().__init__()
    self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])
    self.scale = nn.Parameter(Tensor.ones(width))
    self.register_buffer("steps", Tensor.zeros(1))

  def forward(self, x: Tensor) -> Tensor:
    for layer in self.layers:
      x = x + F.relu(layer(x)) * self.scale
    return x


block = Block(3)
z = block(x)

# ---------------------------------------------------------------- functions
z = F.relu(x) + F.gelu(x) + F.silu(x) + F.sigmoid(x) + F.tanh(x)
z = F.softmax(x, dim=1) + F.log_softmax(x, dim=1)
z = F.linear(x, linear.weight, linear.bias)
z = F.cross_entropy(model(x), target)
z = F.nll_loss(F.log_softmax(model(x), 1), target)
z = F.mse_loss(x, x * 2) + F.l1_loss(x, x * 2) + F.smooth_l1_loss(x, x * 2)
z = F.binary_cross_entropy_with_logits(x, x.sigmoid())
z = F.layer_norm(x, (3,))
z = F.dropout(x, 0.5, training=False)
z = F.one_hot(target, 4)
z = F.pad(x, (1, 1))
z = F.conv2d(images, Tensor.randn(4, 3, 3, 3), padding=1)
z = F.max_pool2d(images, 2) + F.avg_pool2d(images, 2)
z = F.interpolate(images, scale_factor=2)
z = F.scaled_dot_product_attention(tokens, tokens, tokens, is_causal=True)
z = F.embedding(target, Tensor.randn(4, 2))

# ---------------------------------------------------------------- training
optimizer = nn.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
momentum = nn.optim.SGD(block.parameters(), lr=0.1, momentum=0.9)
schedule = nn.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)


@jit
def step(x: Tensor, target: Tensor) -> Tensor:
  optimizer.zero_grad()
  loss = F.cross_entropy(model(x), target)
  loss.backward()
  nn.utils.clip_grad_norm_(model.parameters(), 1.0)
  optimizer.step()
  return loss


@mini.jit
def predict(x: Tensor) -> Tensor:
  return model(x).softmax(-1)


for _ in range(3):
  loss = step(x, target)
schedule.step()
momentum.zero_grad()
answer: Tensor = predict(x)
print(loss.item(), answer.argmax(1).tolist())

# ---------------------------------------------------------------- the rest of the house
z = mini.linalg.norm(x)
z = mini.linalg.solve(Tensor.eye(2), x)
z = mini.fft.fft(x).real
summed = mnp.sum(mnp.ones((2, 3)))
program = mini.compile(lambda a: a.softmax(1), x)
print(program.schedule)

if TYPE_CHECKING:  # what there is not is told: the checks above are of more than Any
  mini.jitt  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
  nn.Linaer  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
  F.rellu  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
  x.softmaxx(1)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
  x.add__(1)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
  nn.optim.Adamw  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
  mini.linalg.nrm  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
  nn.Linear()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
