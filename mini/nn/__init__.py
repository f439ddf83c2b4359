"""Neural networks: layers, initial values, optimizers, state. PyTorch's names."""

from mini.nn import init, optim, state
from mini.nn.layers import (
  ELU,
  GELU,
  CrossEntropyLoss,
  Dropout,
  Embedding,
  Flatten,
  Identity,
  LayerNorm,
  LeakyReLU,
  Linear,
  LogSoftmax,
  MaxPool2d,
  ModuleList,
  MSELoss,
  MultiheadAttention,
  ReLU,
  RMSNorm,
  Sequential,
  Sigmoid,
  SiLU,
  Softmax,
  Softplus,
  Tanh,
)
from mini.nn.module import Module, Parameter

# fmt: off
__all__ = ["ELU", "GELU", "CrossEntropyLoss", "Dropout", "Embedding", "Flatten", "Identity", "LayerNorm", "LeakyReLU",
           "Linear", "LogSoftmax", "MSELoss", "MaxPool2d", "Module", "ModuleList", "MultiheadAttention", "Parameter",
           "RMSNorm", "ReLU", "Sequential", "SiLU", "Sigmoid", "Softmax", "Softplus", "Tanh", "init", "optim", "state"]
# fmt: on
