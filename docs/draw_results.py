"""The charts of the documentation, from the files under `results/`."""

import math
from collections.abc import Sequence

from docs.charts import bars, lines
from docs.draw_tiles import draw_tiles
from docs.results_data import load_table
from docs.results_tables import LOSS_METHODS, find_loss, find_rows, format_sizes


def _columns(name: str, group: str, series: Sequence[str], rows: Sequence[str] = ()) -> dict:
    """`{group: {series: value}}` of some columns of a table; pairs give their means."""
    columns, found = load_table(name)
    place = columns.index(group)
    return {
        str(row[place]).strip("`"): {
            key: value[0] if isinstance(value := row[columns.index(key)], list) else value
            for key in series
        }
        for row in found
        if not rows or row[place] in rows
    }


def _epochs(name: str) -> dict[str, list[tuple[float, float]]]:
    """The lines of a table whose columns, but the first, are numbers."""
    columns, rows = load_table(name)
    return {
        row[0]: [(float(c), v) for c, v in zip(columns[1:], row[1:], strict=True)] for row in rows
    }


def _renamed(groups: dict, names: dict[str, str]) -> dict:
    return {g: {names[k]: v for k, v in series.items()} for g, series in groups.items()}


def _draw_overview() -> str:
    loss = find_loss()
    device = loss["fused"]["device"]
    names = {"all logits, XLA": "baseline", "fused": "keras_drill"}
    both = {unit: {names[m]: loss[m][unit] for m in names} for unit in ("mib", "ms")}
    perplexities = _columns(
        "language-models/texts", "text", ["tied", "DRILL"], ["Penn Treebank", "WikiText-2"]
    )
    memory = _columns(
        "fine-tuning/steps",
        "model, V × d",
        ["MiB, keras-hub", "MiB, fused"],
        ["Gemma 3, 262,144 × 640"],
    )
    gemma = dict(zip(names.values(), next(iter(memory.values())).values(), strict=True))
    return bars(
        [
            (
                "Memory of the loss with all logits and of the fused loss, MiB",
                {f"loss on an {device}": both["mib"], "Gemma 3, LoRA": gemma},
            ),
            ("Time of the same, ms", {f"loss on an {device}": both["ms"]}),
            (
                "Test perplexity of the tied softmax and of DRILL",
                {
                    text: dict(zip(names.values(), values.values(), strict=True))
                    for text, values in perplexities.items()
                },
            ),
        ]
    )


def _draw_accelerator(unit: str, title: str) -> str:
    chosen = {
        k: v
        for k, v in LOSS_METHODS.items()
        if k in ("fused", "all logits, XLA", "all logits, PyTorch compiled")
    }
    groups = {
        f"{format_sizes(size)}, {methods['fused']['device']}": {
            chosen[m]: round(f[unit], 1) if unit == "ms" else round(f[unit])
            for m, f in methods.items()
            if m in chosen and unit in f
        }
        for size, methods in find_rows("loss").items()
        if size.endswith("bfloat16")
    }
    return bars([(title, groups)])


def _draw_heads() -> str:
    heads = next(iter(find_rows("heads").values()))
    return bars(
        [
            (
                "Time of the head, in times of the tied one",
                {h: {f["device"]: f["over_tied"]} for h, f in heads.items() if "over_tied" in f},
            )
        ]
    )


def _draw_kernels() -> str:
    """Scores `f(cos) / f(1)` of KerBS' kernel, as in Figure 2 of its paper."""

    def kernel(theta: float, cosine: float) -> float:
        return math.expm1(-theta * cosine) / math.expm1(-theta) if theta else cosine

    series = {
        f"θ = {theta}": [(a, kernel(theta, math.cos(math.radians(a)))) for a in range(0, 91, 3)]
        for theta in (-4, -2, 0, 2, 4)
    }
    return lines(
        "Kernel, relative to its value at 0°",
        "angle between hidden state and sense, degrees",
        series,
    )


CHARTS = {
    "overview": _draw_overview,
    "accelerator-memory": lambda: _draw_accelerator(
        "mib", "Memory beyond inputs and gradients, MiB (N × V × d)"
    ),
    "accelerator-time": lambda: _draw_accelerator("ms", "Loss and gradients, ms (N × V × d)"),
    "heads": _draw_heads,
    "training-step": lambda: bars(
        [
            (
                "Training step over one with a tied softmax",
                _columns(
                    "training-step/step", "output layer", ["V = 10,000, 20 × 70", "33,278, 20 × 70"]
                ),
            )
        ]
    ),
    "label-encoders": lambda: bars(
        [
            (
                "Test perplexity, lower is better",
                _columns("language-models/texts", "text", ["tied", "DRILL"]),
            )
        ]
    ),
    "rare-words": lambda: bars(
        [
            (
                "F1 of the words written, by training count",
                _transposed("translation/rare", ["tied", "DRILL"]),
            )
        ]
    ),
    "epochs": lambda: lines(
        "Penn Treebank, validation perplexity", "epoch", _epochs("language-models/epochs")
    ),
    "fine-tuning": lambda: bars(
        [
            (
                "MiB of a step with LoRA",
                _renamed(
                    {
                        k: v
                        for k, v in _columns(
                            "fine-tuning/steps", "model, V × d", ["MiB, keras-hub", "MiB, fused"]
                        ).items()
                        if "×" in k
                    },
                    {"MiB, keras-hub": "keras-hub", "MiB, fused": "fused loss"},
                ),
            )
        ]
    ),
    "decoding": lambda: bars(
        [
            ("Transformer, sentences a second", _one("decoding/transformer")),
            ("LSTM, sentences a second", _one("decoding/lstm")),
        ]
    ),
    "senses": lambda: bars(
        [
            (
                "V-measure",
                _columns("senses/chart", "method", ["13 nouns", "made-up words, held back"]),
            )
        ]
    ),
    "kerbs-and-mixtures": lambda: bars(
        [
            (
                "Penn Treebank, test perplexity",
                _columns(
                    "kerbs-and-mixtures/ptb",
                    "output layer, Penn Treebank",
                    ["test perplexity, seed 0"],
                ),
            )
        ]
    ),
    "kernels": _draw_kernels,
    "tiles": draw_tiles,
}


def _transposed(name: str, rows: Sequence[str]) -> dict:
    columns, found = load_table(name)
    values = {row[0]: row for row in found}
    return {c: {r: values[r][place] for r in rows} for place, c in enumerate(columns) if place}


def _one(name: str) -> dict:
    _, rows = load_table(name)
    return {str(row[0]).replace("`", ""): {"five beams": row[1]} for row in rows}
