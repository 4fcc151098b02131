"""PyTorch through `torch.compile`."""

import torch

from benchmarks.peers import torch_eager


def run(case, turns):
    torch_eager.run(case, turns, compiled=torch.compile)
