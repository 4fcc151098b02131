"""Networks in PyTorch, one fused Linear or convolution per block."""

import torch
from torch import nn


def torch_eager(case, compiled=lambda module: module):
    """PyTorch as it comes."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, y = (torch.from_numpy(array).to(device) for array in case.images())
    x = x.flatten(1) if case.thin else x.movedim(-1, 1).contiguous()
    yield
    module = (thin(case.depth) if case.thin else convolutional()).to(device)
    module = compiled(module.train(case.training))
    optimizer = torch.optim.SGD(module.parameters(), 0.01, momentum=0.9)

    while True:
        for i in range(case.steps):
            batch = slice(i * case.batch, (i + 1) * case.batch)
            if case.training:
                optimizer.zero_grad()
                nn.functional.cross_entropy(module(x[batch]), y[batch]).backward()
                optimizer.step()
            else:
                with torch.inference_mode():
                    module(x[batch])
        if device == "cuda":
            torch.cuda.synchronize()
        yield


def torch_compile(case):
    """PyTorch through `torch.compile`."""
    return torch_eager(case, compiled=torch.compile)


class Highway(nn.Module):
    """A highway layer: `both` computes H and T, before their activations, in one product."""

    def __init__(self, both, width, bias, activation):
        super().__init__()
        self.both, self.activation = both, activation
        nn.init.constant_(both.bias[width:], bias)

    def forward(self, x):
        h, t = self.both(x).chunk(2, dim=1)
        t = torch.sigmoid(t)
        return x + t * (self.activation(h) - x)


def thin(depth, width=50):
    """Build a thin network."""
    blocks = [
        Highway(nn.Linear(width, 2 * width), width, -4.0, torch.tanh) for _ in range(depth - 1)
    ]
    return nn.Sequential(nn.Linear(784, width), nn.Tanh(), *blocks, nn.Linear(width, 10))


def convolutional():
    """Build `highway-b`."""
    layers = [nn.Dropout(0.2)]
    for before, width, depth in ((3, 32, 5), (32, 80, 6), (80, 128, 6)):
        if before > 3:
            layers += [nn.MaxPool2d(2), nn.Dropout(0.2)]
        layers += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU()]
        for _ in range(depth - 1):
            both = nn.Conv2d(width, 2 * width, 3, padding=1)
            layers.append(Highway(both, width, -2.0, torch.relu))
    layers += [nn.MaxPool2d(8), nn.Flatten(), nn.Linear(128, 500), nn.ReLU()]
    return nn.Sequential(*layers, nn.Dropout(0.2), nn.Linear(500, 10))
