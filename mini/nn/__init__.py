"""Neural networks: layers, initial values, optimizers, state. PyTorch's names."""

from mini.nn import functional, init, optim, optimizers, state, utils
from mini.nn.adaptive import *
from mini.nn.attention import *
from mini.nn.convolution import *
from mini.nn.embedding import *
from mini.nn.functions import *
from mini.nn.layers import *
from mini.nn.module import Module, Parameter, layers_of
from mini.nn.normalization import *
from mini.nn.pooling import *
from mini.nn.quantized import quantized
from mini.nn.recurrent import *
from mini.nn.scaler import GradScaler

__all__ = ["GradScaler", "Module", "Parameter", "functional", "init", "optim", "optimizers", "quantized", "state",
           "utils", *layers_of(globals())]  # fmt: skip
