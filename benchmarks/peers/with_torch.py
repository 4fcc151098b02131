"""Networks in PyTorch, one fused Linear or convolution per block."""

import functools

import torch
from torch import nn


def torch_eager(case, compiled=lambda module: module, bfloat16=False):
    """PyTorch as it comes."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, y = (torch.from_numpy(array).to(device) for array in case.images())
    x = x.flatten(1) if case.thin else x.movedim(-1, 1).contiguous()
    yield
    module = thin(case.depth) if case.thin else CONVOLUTIONAL[case.model]()
    module = compiled(module.to(device).train(case.training))
    optimizer = torch.optim.SGD(module.parameters(), 0.01, momentum=0.9)

    while True:
        for i in range(case.steps):
            batch = slice(i * case.batch, (i + 1) * case.batch)
            if case.training:
                optimizer.zero_grad()
                with torch.autocast(device, torch.bfloat16, enabled=bfloat16):
                    loss = nn.functional.cross_entropy(module(x[batch]), y[batch])
                loss.backward()
                optimizer.step()
            else:
                with torch.inference_mode():
                    module(x[batch])
        if device == "cuda":
            torch.cuda.synchronize()
        yield


torch_bfloat16 = functools.partial(torch_eager, bfloat16=True)
torch_compile = functools.partial(torch_eager, compiled=torch.compile)


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


def thin(depth):
    """Build a thin network."""
    width = 50
    blocks = [
        Highway(nn.Linear(width, 2 * width), width, -4.0, torch.tanh) for _ in range(depth - 1)
    ]
    return nn.Sequential(nn.Linear(784, width), nn.Tanh(), *blocks, nn.Linear(width, 10))


def highway_b():
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


class Gated(nn.Module):
    """A block of `highway110`, whose H and T are two normalized convolutions each."""

    def __init__(self, before, width, stride):
        super().__init__()
        self.carry = nn.Identity()
        if before != width:
            one = nn.Conv2d(before, width, 1, stride, bias=False)
            self.carry = nn.Sequential(one, nn.BatchNorm2d(width))
        self.block = nn.Sequential(*two_convolutions(before, width, stride), nn.ReLU())
        self.transform = nn.Sequential(*two_convolutions(before, width, stride), nn.Sigmoid())
        nn.init.constant_(self.transform[-2].bias, -6.0)

    def forward(self, x):
        carried = self.carry(x)
        return carried + self.transform(x) * (self.block(x) - carried)


class Residual(nn.Module):
    """A block of `resnet110`; where the size changes, new maps are zero."""

    def __init__(self, before, width, stride):
        super().__init__()
        self.residual = nn.Sequential(*two_convolutions(before, width, stride))
        self.stride, self.new_maps = stride, width - before

    def forward(self, x):
        carried = x[:, :, :: self.stride, :: self.stride]
        carried = nn.functional.pad(carried, (0, 0, 0, 0, 0, self.new_maps))
        return torch.relu(carried + self.residual(x))


def two_convolutions(before, width, stride):
    """Return the layers of two normalized 3x3 convolutions with a relu between them."""
    return [
        nn.Conv2d(before, width, 3, stride, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=1, bias=False),
        nn.BatchNorm2d(width),
    ]


def deep(block, widths, blocks=18):
    """Build `highway110` or `resnet110`, with `blocks` of its blocks in each stage."""
    layers = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    before = 16
    for stage, width in enumerate(widths):
        for index in range(blocks):
            layers.append(block(before, width, stride=2 if stage > 0 and index == 0 else 1))
            before = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10))


CONVOLUTIONAL = {
    "highway-b": highway_b,
    "highway110": functools.partial(deep, Gated, (14, 28, 56)),
    "resnet110": functools.partial(deep, Residual, (16, 32, 64)),
}
