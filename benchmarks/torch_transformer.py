"""A decoder-only Transformer with a tied softmax in plain PyTorch, in present-day style."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class TorchTransformer(nn.Module):
    """The model of `keras_drill.models.TransformerLanguageBackbone` and its cross-entropy.

    Args:
        vocabulary_size, width, num_layers, num_heads: sizes.
        dropout: dropout of embeddings and sublayers.
    """

    def __init__(self, vocabulary_size, width, num_layers, num_heads, dropout=0.1):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.layers = nn.ModuleList(Layer(width, num_heads, dropout) for _ in range(num_layers))
        self.norm = nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(vocabulary_size))
        self.dropout = dropout

    def forward(self, tokens, targets):
        width = self.embedding.embedding_dim
        hidden = self.embedding(tokens) * math.sqrt(width) + sinusoids(tokens.shape[1], width)
        hidden = F.dropout(hidden, self.dropout)
        for layer in self.layers:
            hidden = layer(hidden)
        logits = F.linear(self.norm(hidden).flatten(0, 1), self.embedding.weight, self.bias)
        return F.cross_entropy(logits, targets.flatten())


class Layer(nn.Module):
    """Self-attention and a feed-forward network, each normalised before."""

    def __init__(self, width, num_heads, dropout):
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.inputs = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        parts = self.inputs(self.norms[0](x)).unflatten(-1, (3, self.num_heads, -1))
        query, key, value = parts.permute(2, 0, 3, 1, 4)  # [3, B, N, T, H]
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + F.dropout(self.output(attended.transpose(1, 2).flatten(2)), self.dropout)
        update = self.outer(F.relu(self.inner(self.norms[1](x))))
        return x + F.dropout(update, self.dropout)


def sinusoids(length, width):
    """Sines and cosines `[length, width]` of the positions."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    angles = torch.arange(length)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
