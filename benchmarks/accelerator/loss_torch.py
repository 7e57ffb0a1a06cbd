"""Measures the same loss in PyTorch, and in the installed libraries for PyTorch."""

import functools
import math
from collections.abc import Iterator

from benchmarks.accelerator.measure_jax import check_errors
from benchmarks.accelerator.measure_torch import device, measure
from benchmarks.accelerator.processes import attempt

__all__ = ["device", "rows"]

TOLERANCES = {"bfloat16": 2e-2, "float32": 2e-3}  # PyTorch multiplies in TF32 here
CHECKED_ROWS = 8
CHUNK = 4096


def rows(size: str, dtype: str, rounds: int) -> Iterator:
    """As those of `loss_jax`; each is compared with float64 at its own size first."""
    import torch

    n, v, d = map(int, size.split(","))
    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    hidden = torch.randn(n, d, dtype=kind).requires_grad_()
    labels = (torch.randn(v, d, dtype=kind) / math.sqrt(d)).requires_grad_()
    targets = torch.randint(0, v, (n,))
    exact = float64_loss(hidden, labels, targets)
    for name, make in functions().items():
        found = attempt(_measure, make, hidden, labels, targets, exact, rounds)
        if "ms" in found:
            found["tflops"] = 6e-9 * n * v * d / found["ms"]
        yield name, found


def functions() -> dict:
    """For each way a function that makes the loss, or raises where there is no such library."""
    import torch

    return {
        "all logits, PyTorch": lambda: all_logits,
        "all logits, PyTorch compiled": lambda: torch.compile(all_logits),
        "compiled chunks, PyTorch": compiled_chunks,
        "torch linear_cross_entropy": torch_linear_cross_entropy,
        "liger-kernel": liger,
        "cut-cross-entropy": cut_cross_entropy,
    }


def all_logits(hidden, labels, targets):
    """The loss with all logits in memory."""
    import torch

    logits = torch.nn.functional.linear(hidden, labels)
    return torch.nn.functional.cross_entropy(logits.float(), targets)


def compiled_chunks():
    """Gradients in the forward pass, for some thousand tokens at a time, as one would write it."""
    import torch

    def of_chunk(logits, targets, num_tokens):
        logits = logits.float()
        normalizer = torch.logsumexp(logits, dim=1)
        loss = (normalizer - logits.gather(1, targets[:, None])[:, 0]).sum() / num_tokens
        is_target = torch.arange(logits.shape[1]) == targets[:, None]
        derivative = (torch.exp(logits - normalizer[:, None]) - is_target.float()) / num_tokens
        return loss, derivative

    of_chunk = torch.compile(of_chunk)

    class Chunks(torch.autograd.Function):
        @staticmethod
        def forward(ctx, hidden, labels, targets):
            d_hidden = torch.empty_like(hidden)
            d_labels = torch.zeros(labels.shape, dtype=torch.float32)
            losses = []
            for start in range(0, len(hidden), CHUNK):
                here = slice(start, start + CHUNK)
                loss, derivative = of_chunk(hidden[here] @ labels.T, targets[here], len(hidden))
                derivative = derivative.to(hidden.dtype)
                d_hidden[here] = derivative @ labels
                d_labels += derivative.T @ hidden[here]
                losses.append(loss)
            ctx.save_for_backward(d_hidden, d_labels.to(labels.dtype))
            return torch.stack(losses).sum()

        @staticmethod
        def backward(ctx, upstream):
            d_hidden, d_labels = ctx.saved_tensors
            return upstream * d_hidden, upstream * d_labels, None

    return Chunks.apply


def torch_linear_cross_entropy():
    """PyTorch's own fused loss, from version 2.13 on, in chunks."""
    import torch

    if not hasattr(torch.nn.functional, "linear_cross_entropy"):
        raise ImportError(f"torch {torch.__version__} has no linear_cross_entropy")
    options = torch.nn.LinearCrossEntropyOptions()
    return functools.partial(torch.nn.functional.linear_cross_entropy, options=options)


def liger():
    """The loss of liger-kernel."""
    from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss

    loss = LigerFusedLinearCrossEntropyLoss()
    return lambda hidden, labels, targets: loss(labels, hidden, targets)


def cut_cross_entropy():
    """The loss of Cut Cross-Entropy, which skips gradients that are nearly 0."""
    from cut_cross_entropy import linear_cross_entropy

    return linear_cross_entropy


def _measure(make, hidden, labels, targets, exact, rounds) -> dict:
    import torch

    function = make()
    losses = []

    def step():
        hidden.grad = labels.grad = None
        loss = function(hidden, labels, targets)
        loss.backward()
        losses[:] = [loss.detach()]

    step()
    found = losses[0], hidden.grad[:CHECKED_ROWS]
    errors = {
        name: float((a.double() - b).abs().max() / b.abs().max())
        for name, a, b in zip(("loss", "d_hidden"), found, exact, strict=True)
    }
    check_errors(errors, TOLERANCES[str(hidden.dtype).removeprefix("torch.")])
    gradients = (hidden.numel() + labels.numel()) * hidden.element_size()
    try:
        return {**measure(step, rounds, kept=gradients), "errors": errors}
    finally:
        hidden.grad = labels.grad = None
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def float64_loss(hidden, labels, targets):
    """The loss, and the gradient for the first hidden states."""
    import torch

    with torch.no_grad():
        wide = labels.double()
        losses = []
        for start in range(0, len(hidden), 1024):
            scores = hidden[start : start + 1024].double() @ wide.T
            picked = scores.gather(1, targets[start : start + 1024, None])[:, 0]
            losses.append(torch.logsumexp(scores, dim=1) - picked)
        derivative = torch.softmax(hidden[:CHECKED_ROWS].double() @ wide.T, dim=1)
        rows = torch.arange(len(derivative))
        derivative[rows, targets[:CHECKED_ROWS]] -= 1
        return torch.cat(losses).mean(), derivative @ wide / len(hidden)
