"""AWD-LSTM with a tied or a DRILL output layer in plain PyTorch, in present-day style."""

from itertools import pairwise

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F


class TorchAWDLSTM(nn.Module):
    """The model of `keras_drill.models.AWDLSTM` and its cross-entropy.

    Args:
        vocabulary_size, embedding_dim, units, num_layers: sizes.
        depth: layers of the DRILL label encoder; 0 for a tied softmax.
        label_dropout: dropout of the label encoder.
    """

    def __init__(self, vocabulary_size, embedding_dim, units, num_layers, depth, label_dropout):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, embedding_dim)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        sizes = [embedding_dim] + [units] * (num_layers - 1) + [embedding_dim]
        self.layers = nn.ModuleList(nn.LSTM(m, n) for m, n in pairwise(sizes))
        self.encoder = nn.ModuleList(nn.Linear(embedding_dim, embedding_dim) for _ in range(depth))
        self.label_dropout = label_dropout
        self.bias = nn.Parameter(torch.zeros(vocabulary_size))
        self.rates = [0.65] + [0.25] * (num_layers - 1) + [0.4]

    def initial_state(self, batch_size):
        return [
            tuple(torch.zeros(1, batch_size, layer.hidden_size) for _ in range(2))
            for layer in self.layers
        ]

    def forward(self, tokens, targets, state):
        tokens = tokens.t()  # [T, B]
        kept = F.dropout(torch.ones(self.embedding.num_embeddings), 0.1)
        hidden = self.embedding(tokens) * kept[tokens].unsqueeze(-1)
        hidden = locked_dropout(hidden, self.rates[0])
        new_state = []
        for layer, start, rate in zip(self.layers, state, self.rates[1:], strict=True):
            weights = {"weight_hh_l0": F.dropout(layer.weight_hh_l0, 0.5)}
            raw, end = functional_call(layer, weights, (hidden, start))
            new_state.append(tuple(s.detach() for s in end))
            hidden = locked_dropout(raw, rate)
        labels = self.embedding.weight
        for layer in self.encoder:
            labels = F.relu(layer(F.dropout(labels, self.label_dropout))) + self.embedding.weight
        logits = F.linear(hidden.flatten(0, 1), labels, self.bias)
        loss = F.cross_entropy(logits, targets.t().flatten())
        loss = loss + 2 * hidden.square().mean() + (raw[1:] - raw[:-1]).square().mean()
        return loss, new_state


def locked_dropout(x, rate):
    """Dropout of `[T, B, d]` with one mask for all time steps."""
    return x * F.dropout(torch.ones(1, *x.shape[1:], dtype=x.dtype), rate)
