"""Whole programs with only the import changed: training on torch and on tapegrad agrees step by step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _double() -> Any:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def data(one: Any, *shape: int, seed: int = 0) -> Any:
    return one.tensor(np.random.default_rng(seed).standard_normal(shape))


def classes(one: Any, count: int, *shape: int) -> Any:
    return one.tensor(np.random.default_rng(1).integers(0, count, shape))


def filled(module: Any) -> Any:
    """Give a module numbers that do not depend on the library."""
    rng = np.random.default_rng(7)
    for param in module.parameters():
        values = rng.standard_normal(tuple(param.shape)) / math.sqrt(param.shape[-1])
        param.data = (tg if isinstance(param, tg.Tensor) else torch).tensor(values)
    return module


def train(model: Any, optimizer: Any, loss: Any, steps: int = 6) -> list[float]:
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses + [float(param.detach().sum()) for param in model.parameters()]


def mlp(torch: Any) -> list[float]:
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.flatten = nn.Flatten()
            self.stack = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))

        def forward(self, x: Any) -> Any:
            return self.stack(self.flatten(x))

    model = filled(Net())
    x, y, loss_fn = data(torch, 10, 2, 3), classes(torch, 3, 10), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model.train()
    losses = train(model, optimizer, lambda: loss_fn(model(x), y))
    model.eval()
    with torch.no_grad():
        losses.append((model(x).argmax(1) == y).sum().item())
    return losses


def convolution_net(torch: Any) -> list[float]:
    nn, F = torch.nn, torch.nn.functional

    class Net(nn.Module):
        def __init__(self) -> None:
            super(Net, self).__init__()  # noqa: UP008  as older programs have it
            self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
            self.bn1 = nn.BatchNorm2d(4)
            self.conv2 = nn.Conv2d(4, 6, kernel_size=3)
            self.pool = nn.MaxPool2d(2, 2)
            self.fc1 = nn.Linear(6 * 3 * 3, 10)
            self.fc2 = nn.Linear(10, 4)

        def forward(self, x: Any) -> Any:
            x = self.pool(F.relu(self.bn1(self.conv1(x))))
            x = F.relu(self.conv2(x))
            x = x.view(-1, 6 * 3 * 3)
            return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)

    model = filled(Net())
    x, y = data(torch, 5, 1, 10, 10), classes(torch, 4, 5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = train(model, optimizer, lambda: F.nll_loss(model(x), y))
    return losses + [float(own.double().sum()) for own in model.buffers()]


def lstm_tagger(torch: Any) -> list[float]:
    nn = torch.nn

    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(11, 5)
            self.lstm = nn.LSTM(5, 6, num_layers=2, batch_first=True, bidirectional=True)
            self.norm = nn.LayerNorm(12)
            self.tag = nn.Linear(12, 4)

        def forward(self, words: Any) -> Any:
            states, (h, _) = self.lstm(self.embed(words))
            return self.tag(self.norm(states)) + h.mean()

    model, loss_fn = filled(Tagger()), nn.CrossEntropyLoss()
    words, tags = classes(torch, 11, 3, 7), classes(torch, 4, 3, 7)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

    def loss() -> Any:
        value = loss_fn(model(words).view(-1, 4), tags.view(-1))
        return value

    losses = train(model, optimizer, loss)
    value = loss()
    value.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.01)
    return [*losses, norm.item(), *(float(p.grad.abs().sum()) for p in model.parameters())]


def small_transformer(torch: Any) -> list[float]:
    nn = torch.nn

    class Positions(nn.Module):
        def __init__(self, width: int, dropout: float = 0.0, longest: int = 20) -> None:
            super().__init__()
            self.dropout = nn.Dropout(p=dropout)
            position = torch.arange(longest).unsqueeze(1)
            rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
            table = torch.zeros(longest, 1, width)
            table[:, 0, 0::2] = torch.sin(position * rates)
            table[:, 0, 1::2] = torch.cos(position * rates)
            self.register_buffer("table", table)

        def forward(self, x: Any) -> Any:
            return self.dropout(x + self.table[: x.size(0)])

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.positions = nn.Embedding(9, 8), Positions(8)
            layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(8, 9)
            self.init_weights()

        def init_weights(self) -> None:
            self.embed.weight.data.uniform_(-0.1, 0.1)
            self.head.bias.data.zero_()

        def forward(self, words: Any) -> Any:
            mask = nn.Transformer.generate_square_subsequent_mask(len(words))
            return self.head(self.encoder(self.positions(self.embed(words) * math.sqrt(8)), mask))

    model, loss_fn = filled(Model()), nn.CrossEntropyLoss()
    words = classes(torch, 9, 7, 3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    return train(model, optimizer, lambda: loss_fn(model(words[:-1]).view(-1, 9), words[1:].reshape(-1)))


def variational_autoencoder(torch: Any) -> list[float]:
    nn, F = torch.nn, torch.nn.functional

    class VAE(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1, self.fc21, self.fc22 = nn.Linear(12, 8), nn.Linear(8, 2), nn.Linear(8, 2)
            self.fc3, self.fc4 = nn.Linear(2, 8), nn.Linear(8, 12)

        def forward(self, x: Any, noise: Any) -> Any:
            h = F.relu(self.fc1(x.view(-1, 12)))
            mean, logvar = self.fc21(h), self.fc22(h)
            z = mean + noise * torch.exp(0.5 * logvar)
            return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mean, logvar

    model = filled(VAE())
    x, noise = torch.sigmoid(data(torch, 5, 1, 3, 4)), data(torch, 5, 2, seed=3)

    def loss() -> Any:
        out, mean, logvar = model(x, noise)
        error = F.binary_cross_entropy(out, x.view(-1, 12), reduction="sum")
        return error - 0.5 * torch.sum(1 + logvar - mean.pow(2) - logvar.exp())

    return train(model, torch.optim.Adam(model.parameters(), lr=1e-2), loss)


def learning_with_examples(torch: Any) -> list[float]:
    """A sine by a polynomial: with `nn.Sequential`, by hand; and a module that draws its depth."""
    x = torch.linspace(-math.pi, math.pi, 50)
    y, powers = torch.sin(x), torch.tensor([1, 2, 3])
    xx = x.unsqueeze(-1).pow(powers)
    model = filled(torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1)))
    loss_fn, losses = torch.nn.MSELoss(reduction="sum"), []
    for _ in range(5):
        loss = loss_fn(model(xx), y)
        losses.append(loss.item())
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for param in model.parameters():
                param -= 1e-6 * param.grad

    class Polynomial(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = torch.nn.Parameter(torch.tensor(0.5))
            self.b = torch.nn.Parameter(torch.tensor(-0.25))

        def forward(self, x: Any, depth: int) -> Any:
            y = self.a + self.b * x
            for power in range(4, depth):
                y = y + self.b * x**power
            return y

        def string(self) -> str:
            return f"y = {self.a.item()} + {self.b.item()} x"

    other = Polynomial()
    optimizer = torch.optim.SGD(other.parameters(), lr=1e-8, momentum=0.9)
    for depth in (4, 6, 5):
        loss = loss_fn(other(x, depth), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert other.string().startswith("y = 0.")
    return [*losses, model[0].bias.item(), other.a.item(), other.b.item()]


def names_by_hand(torch: Any) -> list[float]:
    """A model of characters as makemore builds it: layers written by hand over plain tensors."""
    F = torch.nn.functional

    class Linear:
        def __init__(self, fan_in: int, fan_out: int, seed: int) -> None:
            self.weight = data(torch, fan_in, fan_out, seed=seed) / fan_in**0.5

        def __call__(self, x: Any) -> Any:
            self.out = x @ self.weight
            return self.out

        def parameters(self) -> list[Any]:
            return [self.weight]

    class BatchNorm1d:
        def __init__(self, width: int) -> None:
            self.gamma, self.beta = torch.ones(width), torch.zeros(width)
            self.running_mean = torch.zeros(width)

        def __call__(self, x: Any) -> Any:
            mean, var = x.mean(0, keepdim=True), x.var(0, keepdim=True, unbiased=True)
            self.out = self.gamma * (x - mean) / torch.sqrt(var + 1e-5) + self.beta
            with torch.no_grad():
                self.running_mean = 0.9 * self.running_mean + 0.1 * mean
            return self.out

        def parameters(self) -> list[Any]:
            return [self.gamma, self.beta]

    class Tanh:
        def __call__(self, x: Any) -> Any:
            self.out = torch.tanh(x)
            return self.out

        def parameters(self) -> list[Any]:
            return []

    C = data(torch, 27, 4)
    layers = [Linear(12, 16, 1), BatchNorm1d(16), Tanh(), Linear(16, 27, 2)]
    with torch.no_grad():
        layers[-1].weight *= 0.1
    parameters = [C] + [p for layer in layers for p in layer.parameters()]
    for p in parameters:
        p.requires_grad = True
    X, Y = classes(torch, 27, 8, 3), classes(torch, 27, 8)
    losses = []
    for step in range(4):
        x = C[X].view(8, -1)
        for layer in layers:
            x = layer(x)
        loss = F.cross_entropy(x, Y)
        for layer in layers:
            layer.out.retain_grad()
        for p in parameters:
            p.grad = None
        loss.backward()
        for p in parameters:
            p.data += -(0.1 if step < 2 else 0.01) * p.grad
        losses += [loss.item(), float(layers[2].out.grad.std())]
    return losses + [float(p.detach().sum()) for p in parameters]


def freezing(torch: Any) -> list[float]:
    """Fine tuning: a frozen body, a new head, weights by name, and weights that are tied."""
    nn = torch.nn
    body = filled(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4)))
    for param in body.parameters():
        param.requires_grad = False
    model = nn.ModuleDict({"body": body, "head": filled(nn.Linear(4, 4, bias=False))})
    model["body"][2].weight = model["head"].weight
    x, y = data(torch, 6, 3), data(torch, 6, 4, seed=2)
    optimizer = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.1)
    losses = train(model, optimizer, lambda: nn.functional.mse_loss(model["head"](model["body"](x)), y))
    assert [name for name, p in model.named_parameters() if p.grad is not None] == ["body.2.weight"]
    vector = nn.utils.parameters_to_vector(model.parameters())
    nn.utils.vector_to_parameters(vector * 2, model.parameters())
    nn.utils.clip_grad_value_(model.parameters(), 0.01)
    return [*losses, vector.sum().item(), *(float(own.sum()) for own in model.state_dict().values()),
            float(model["head"].weight.grad.abs().sum())]  # fmt: skip


PROGRAMS = [
    mlp, convolution_net, lstm_tagger, small_transformer, variational_autoencoder, learning_with_examples,
    names_by_hand, freezing,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_step_by_step(program: Any) -> None:
    np.testing.assert_allclose(program(tg), program(torch), rtol=1e-8, atol=1e-10)


def test_a_network_learns() -> None:
    tg.manual_seed(0)
    model = tg.nn.Sequential(tg.nn.Linear(2, 16), tg.nn.Tanh(), tg.nn.Linear(16, 2))
    x = tg.randn(200, 2)
    y = (x[:, 0] * x[:, 1] > 0).long()
    optimizer, loss_fn = tg.optim.Adam(model.parameters(), lr=0.05), tg.nn.CrossEntropyLoss()
    for _ in range(200):
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
    assert float((model(x).argmax(1) == y).double().mean()) > 0.95
