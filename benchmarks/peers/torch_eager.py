"""PyTorch, one fused Linear or convolution per block, eager."""

import torch
from torch import nn

from benchmarks.inputs import images

STAGES = ((3, 32, 5), (32, 80, 6), (80, 128, 6))


class HighwayLinear(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 2 * width)
        nn.init.constant_(self.linear.bias[width:], -4.0)

    def forward(self, x):
        h, t = self.linear(x).chunk(2, dim=-1)
        t = torch.sigmoid(t)
        return x + t * (torch.tanh(h) - x)


class HighwayConvolution(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.convolution = nn.Conv2d(channels, 2 * channels, 3, padding=1)
        nn.init.constant_(self.convolution.bias[channels:], -2.0)

    def forward(self, x):
        h, t = self.convolution(x).chunk(2, dim=1)
        t = torch.sigmoid(t)
        return x + t * (torch.relu(h) - x)


def thin(depth):
    blocks = [HighwayLinear(50) for _ in range(depth - 1)]
    return nn.Sequential(nn.Linear(784, 50), nn.Tanh(), *blocks, nn.Linear(50, 10))


def convolutional(model):
    layers = [nn.Dropout(0.2)]
    for index, (before, width, depth) in enumerate(STAGES):
        if index:
            layers += [nn.MaxPool2d(2), nn.Dropout(0.2)]
        layers += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU()]
        layers += [HighwayConvolution(width) for _ in range(depth - 1)]
    if model == "highway-b":
        layers += [nn.MaxPool2d(8), nn.Flatten(), nn.Linear(128, 500), nn.ReLU()]
        return nn.Sequential(*layers, nn.Dropout(0.2), nn.Linear(500, 10))
    layers += [nn.Conv2d(128, 100, 1), nn.ReLU(), nn.AvgPool2d(8), nn.Flatten()]
    return nn.Sequential(*layers, nn.Dropout(0.2), nn.Linear(100, 10))


def build(case):
    return thin(case.depth) if case.model.startswith("thin") else convolutional(case.model)


def run(case, turns, compiled=lambda module: module):
    x, y = map(torch.from_numpy, images(case))
    x = x.flatten(1) if case.model.startswith("thin") else x.movedim(-1, 1).contiguous()
    turns.wait()
    module = compiled(build(case).train(case.training))
    optimizer = torch.optim.SGD(module.parameters(), 0.01, momentum=0.9)

    def steps():
        for i in range(case.steps):
            batch = slice(i * case.batch, (i + 1) * case.batch)
            if case.training:
                optimizer.zero_grad()
                nn.functional.cross_entropy(module(x[batch]), y[batch]).backward()
                optimizer.step()
            else:
                with torch.inference_mode():
                    module(x[batch])

    turns.repeat(steps)
