"""Measures the same training steps in PyTorch, whose LSTM uses cuDNN."""

from collections.abc import Iterator

from benchmarks.accelerator.measure_torch import device, measure
from benchmarks.accelerator.processes import attempt
from benchmarks.accelerator.training_jax import STEPS, sample_batch

__all__ = ["device", "rows"]


def rows(model: str, heads: list, sizes: dict, rounds: int) -> Iterator:
    """As those of `training_jax`, under autocast to bfloat16, and AWD-LSTM in float32 too.

    Autocast gives cuDNN's LSTM another dtype than the rest; products of float32 are in TF32.
    """
    if model == "transformer":
        yield "PyTorch eager, tied", attempt(_measure_transformer, sizes, rounds, False)
        yield "PyTorch compiled, tied", attempt(_measure_transformer, sizes, rounds, True)
        return
    for head in heads:
        for dtype in ("bfloat16", "float32"):
            yield f"PyTorch, {head}, {dtype}", attempt(_measure_lstm, head, dtype, sizes, rounds)


def _measure_transformer(sizes, rounds, is_compiled) -> dict:
    import torch

    from benchmarks.torch_transformer import TorchTransformer

    width = sizes["width"]
    model = TorchTransformer(sizes["vocabulary"], width, sizes["layers"], max(1, width // 64))
    if is_compiled:
        for layer in model.layers:  # compiled once, as all are alike
            layer.compile()
    optimizer = torch.optim.Adam(model.parameters(), 1e-4, fused=True)
    tokens, targets = (torch.as_tensor(x).long() for x in sample_batch(sizes))

    def loss():
        return model(tokens, targets)

    return _measure(loss, optimizer, model, "bfloat16", sizes, rounds, clip=None)


def _measure_lstm(head, dtype, sizes, rounds) -> dict:
    import torch

    from benchmarks.torch_awd_lstm import TorchAWDLSTM

    model = TorchAWDLSTM(
        sizes["vocabulary"],
        sizes["width"],
        sizes["units"],
        sizes["layers"],
        4 if head == "drill" else 0,
        0.6,
    )
    state = model.initial_state(sizes["batch"])
    optimizer = torch.optim.SGD(model.parameters(), 1.0)
    tokens, targets = (torch.as_tensor(x).long() for x in sample_batch(sizes))

    def loss():
        nonlocal state
        value, state = model(tokens, targets, state)
        return value

    return _measure(loss, optimizer, model, dtype, sizes, rounds, clip=0.25)


def _measure(loss, optimizer, model, dtype, sizes, rounds, clip) -> dict:
    import torch

    kind = torch.get_default_device().type
    autocast = torch.autocast(kind, torch.bfloat16, enabled=dtype == "bfloat16")
    losses = []

    def step():
        optimizer.zero_grad()
        with autocast:
            value = loss()
        value.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        losses.append(value.detach())

    found = measure(step, rounds, STEPS)
    tokens = sizes["batch"] * sizes["length"]
    return {"loss": float(losses[0]), **found, "tokens_s": 1e3 * tokens / found["ms"]}
