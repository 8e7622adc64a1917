"""Programs in the manner of well-known tutorials: a language model, a generator of images, names by characters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")

from tests.test_nn_training import classes, data, filled  # noqa: E402  it needs torch


@pytest.fixture(autouse=True)
def _double() -> Any:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@dataclass
class Config:
    block_size: int = 8
    vocab_size: int = 11
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 8


def language_model(torch: Any) -> list[float]:
    """A decoder of text: causal attention written out, tied weights, groups of parameters, generation."""
    nn, F = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self, config: Config) -> None:
            super().__init__()
            assert config.n_embd % config.n_head == 0
            self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
            self.c_proj = nn.Linear(config.n_embd, config.n_embd)
            self.n_head, self.n_embd = config.n_head, config.n_embd
            size = config.block_size
            self.register_buffer("bias", torch.tril(torch.ones(size, size)).view(1, 1, size, size))

        def forward(self, x: Any) -> Any:
            B, T, C = x.size()
            q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
            q, k, v = (own.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for own in (q, k, v))
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
            y = F.softmax(att, dim=-1) @ v
            return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))

    class Block(nn.Module):
        def __init__(self, config: Config) -> None:
            super().__init__()
            self.ln_1, self.attn = nn.LayerNorm(config.n_embd), Attention(config)
            self.ln_2 = nn.LayerNorm(config.n_embd)
            self.mlp = nn.ModuleDict(
                dict(c_fc=nn.Linear(config.n_embd, 16), act=nn.GELU(), c_proj=nn.Linear(16, config.n_embd))  # noqa: C408
            )
            m = self.mlp
            self.mlpf = lambda x: m.c_proj(m.act(m.c_fc(x)))

        def forward(self, x: Any) -> Any:
            x = x + self.attn(self.ln_1(x))
            return x + self.mlpf(self.ln_2(x))

    class GPT(nn.Module):
        def __init__(self, config: Config) -> None:
            super().__init__()
            self.block_size = config.block_size
            self.transformer = nn.ModuleDict(
                {
                    "wte": nn.Embedding(config.vocab_size, config.n_embd),
                    "wpe": nn.Embedding(config.block_size, config.n_embd),
                    "h": nn.ModuleList([Block(config) for _ in range(config.n_layer)]),
                    "ln_f": nn.LayerNorm(config.n_embd),
                }
            )
            self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
            self.transformer.wte.weight = self.lm_head.weight
            self.apply(self._init_weights)

        def _init_weights(self, module: Any) -> None:
            if isinstance(module, nn.Linear):
                torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)
                if module.bias is not None:
                    torch.nn.init.zeros_(module.bias)
            elif isinstance(module, nn.LayerNorm):
                torch.nn.init.zeros_(module.bias)
                torch.nn.init.ones_(module.weight)

        def forward(self, idx: Any, targets: Any = None) -> Any:
            _, t = idx.size()
            pos = torch.arange(0, t, dtype=torch.long).unsqueeze(0)
            x = self.transformer.wte(idx) + self.transformer.wpe(pos)
            for block in self.transformer.h:
                x = block(x)
            logits = self.lm_head(self.transformer.ln_f(x))
            if targets is None:
                return logits, None
            return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

        @torch.no_grad()
        def generate(self, idx: Any, count: int) -> Any:
            for _ in range(count):
                logits, _ = self(idx[:, -self.block_size :])
                probs = F.softmax(logits[:, -1, :], dim=-1)
                _, best = torch.topk(probs, k=1, dim=-1)
                idx = torch.cat((idx, best), dim=1)
            return idx

    model = filled(GPT(Config()))
    decay = [p for name, p in model.named_parameters() if p.dim() >= 2]
    rest = [p for name, p in model.named_parameters() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95))
    words, losses = classes(torch, 11, 4, 9), []
    for _ in range(5):
        _, loss = model(words[:, :-1], words[:, 1:].contiguous())
        model.zero_grad(set_to_none=True)
        loss.backward()
        losses.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    text = model.generate(words[:1, :3], 6)
    count = sum(p.numel() for p in model.parameters())
    return [*losses, count, *text[0].tolist(), len(model.state_dict())]


def adversaries(torch: Any) -> list[float]:
    """A generator of images and its judge, trained in turns."""
    nn = torch.nn

    def weights_init(m: Any) -> None:
        kind = m.__class__.__name__
        if kind.find("Conv") != -1:
            m.weight.data.copy_(data(torch, *m.weight.shape) * 0.2)
        elif kind.find("BatchNorm") != -1:
            nn.init.constant_(m.weight.data, 1.5)
            nn.init.constant_(m.bias.data, 0)

    generator = nn.Sequential(
        nn.ConvTranspose2d(3, 4, 4, 1, 0, bias=False), nn.BatchNorm2d(4), nn.ReLU(True),
        nn.ConvTranspose2d(4, 1, 4, 2, 1, bias=False), nn.Tanh(),
    )  # fmt: skip
    judge = nn.Sequential(
        nn.Conv2d(1, 4, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(4, 6, 3, 1, 1, bias=False), nn.BatchNorm2d(6), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(6, 1, 4, 1, 0, bias=False), nn.Sigmoid(),
    )  # fmt: skip
    generator.apply(weights_init)
    judge.apply(weights_init)
    criterion = nn.BCELoss()
    optimizers = [torch.optim.Adam(net.parameters(), lr=0.01, betas=(0.5, 0.999)) for net in (judge, generator)]
    real, noise, losses = torch.tanh(data(torch, 5, 1, 8, 8)), data(torch, 5, 3, 1, 1), []
    for _ in range(3):
        judge.zero_grad()
        label = torch.full((5,), 1.0)
        error_real = criterion(judge(real).view(-1), label)
        error_real.backward()
        fake = generator(noise)
        label.fill_(0.0)
        error_fake = criterion(judge(fake.detach()).view(-1), label)
        error_fake.backward()
        optimizers[0].step()
        generator.zero_grad()
        label.fill_(1.0)
        error = criterion(judge(fake).view(-1), label)
        error.backward()
        optimizers[1].step()
        losses += [error_real.item(), error_fake.item(), error.item()]
    return losses + [float(own.double().sum()) for net in (judge, generator) for own in net.buffers()]


def names(torch: Any) -> list[float]:
    """A recurrent net over characters, written out; gradient steps by hand."""
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self, input_size: int, hidden_size: int, output_size: int) -> None:
            super().__init__()
            self.hidden_size = hidden_size
            self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
            self.h2o = nn.Linear(hidden_size, output_size)
            self.softmax = nn.LogSoftmax(dim=1)

        def forward(self, input: Any, hidden: Any) -> Any:
            hidden = torch.tanh(self.i2h(torch.cat((input, hidden), 1)))
            return self.softmax(self.h2o(hidden)), hidden

        def init_hidden(self) -> Any:
            return torch.zeros(1, self.hidden_size)

    rnn, criterion, losses = filled(Net(5, 6, 3)), nn.NLLLoss(), []
    line = torch.zeros(4, 1, 5)
    for step, letter in enumerate([0, 3, 1, 4]):
        line[step][0][letter] = 1
    for _ in range(4):
        hidden = rnn.init_hidden()
        rnn.zero_grad()
        for step in range(line.size()[0]):
            output, hidden = rnn(line[step], hidden)
        loss = criterion(output, torch.tensor([2], dtype=torch.long))
        loss.backward()
        for p in rnn.parameters():
            p.data.add_(p.grad.data, alpha=-0.05)
        losses.append(loss.item())
    _, best = output.topk(1)
    return [*losses, best[0].item()]


def stateful_words(torch: Any) -> list[float]:
    """A language model over a long text: the state is carried from piece to piece, detached."""
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = nn.Dropout(0.0)
            self.encoder = nn.Embedding(9, 6)
            self.rnn = nn.LSTM(6, 6, 2)
            self.decoder = nn.Linear(6, 9)
            self.decoder.weight = self.encoder.weight
            nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
            nn.init.zeros_(self.decoder.bias)

        def forward(self, input: Any, hidden: Any) -> Any:
            output, hidden = self.rnn(self.drop(self.encoder(input)), hidden)
            decoded = self.decoder(self.drop(output)).view(-1, 9)
            return nn.functional.log_softmax(decoded, dim=1), hidden

        def init_hidden(self, items: int) -> Any:
            weight = next(self.parameters())
            return weight.new_zeros(2, items, 6), weight.new_zeros(2, items, 6)

    model, text, losses = filled(Model()), classes(torch, 9, 13, 3), []
    hidden = model.init_hidden(3)
    for start in range(0, 12, 4):
        model.zero_grad()
        hidden = tuple(own.detach() for own in hidden)
        output, hidden = model(text[start : start + 4], hidden)
        loss = nn.functional.nll_loss(output, text[start + 1 : start + 5].reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-2.0)
        losses.append(loss.item())
    return [*losses, *(float(own.detach().sum()) for own in hidden)]


@pytest.mark.parametrize("program", [language_model, adversaries, names, stateful_words])
def test_step_by_step(program: Any) -> None:
    np.testing.assert_allclose(program(tg), program(torch), rtol=1e-7, atol=1e-9)
