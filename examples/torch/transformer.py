"""A small transformer that continues sequences of numbers, for the examples that divide one."""

import torch
from torch import nn
from torch.nn.functional import nll_loss, scaled_dot_product_attention

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH = 64, 64, 4, 2, 16


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        # The number of heads comes from the shape: a rank may have only some of them.
        heads = lambda t: t.unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)
        mixed = scaled_dot_product_attention(
            heads(self.query(x)), heads(self.key(x)), heads(self.value(x)), is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.feed_forward = Attention(), FeedForward()

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class Transformer(nn.Module):
    """Tokens, batch x length, to log-probabilities, batch x length x vocabulary. The same weights in every call."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).log_softmax(-1, dtype=torch.float32)


def sequences(count, seed=0):
    """Numbers that rise in equal steps, each sequence in steps of its own: count x (length + 1)."""
    random = torch.Generator().manual_seed(seed)
    first = torch.randint(VOCABULARY, (count, 1), generator=random)
    step = torch.randint(1, 5, (count, 1), generator=random)
    return (first + step * torch.arange(LENGTH + 1)) % VOCABULARY


def loss_of(model, sequence):
    return nll_loss(model(sequence[:, :-1]).flatten(0, 1), sequence[:, 1:].flatten())
