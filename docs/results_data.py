"""The files under `results/`, and Markdown tables of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"


def load_results(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def load_table(name: str) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows of `FILE/TABLE`."""
    file, _, table = name.partition("/")
    if file == "summary":
        return {"highlights": _tabulate_highlights, "choices": _tabulate_choices}[table]()
    if file == "accelerator":
        return _ACCELERATOR_TABLES[table]()
    found = load_results(file)["tables"][table]
    return found["columns"], found["rows"]


def write_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table. A pair is a mean and half the width of its 95 % interval.

    >>> print(write_table(["text", "tied"], [["a", [105.0, 1.0]], ["b", 1333.25], ["c", None]]))
    | text | tied |
    |---|--:|
    | a | 105.00 ± 1.00 |
    | b | 1,333.25 |
    | c | |
    """
    cells = [_format_column([row[place] for row in rows]) for place in range(len(columns))]
    numeric = [
        any(isinstance(row[place], int | float | list) for row in rows)
        for place in range(len(columns))
    ]
    head = [
        "| " + " | ".join(columns) + " |",
        "|" + "|".join("--:" if n else "---" for n in numeric) + "|",
    ]
    body = ["| " + " | ".join(row) + " |" for row in zip(*cells, strict=True)]
    return "\n".join([*head, *body]).replace("|  |", "| |").replace("|  |", "| |")


def _format_column(values: Sequence[Any]) -> list[str]:
    numbers = [n for v in values for n in (v if isinstance(v, list) else [v])]
    digits = max((_decimals(n) for n in numbers if isinstance(n, float)), default=0)

    def text(value: Any) -> str:
        if isinstance(value, list):
            return f"{text(value[0])} ± {text(value[1])}"
        if isinstance(value, float):
            return f"{value:,.{digits}f}"
        return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)

    return [text(value) for value in values]


def _decimals(value: float) -> int:
    return len(repr(value).partition(".")[2]) if value >= 1e-3 or value <= 0 else 0


def format_sizes(key: str) -> str:
    tokens, words, width = (int(number) for number in key.split()[0].split(","))
    return f"{tokens:,} × {words:,} × {width:,}"


LOSS_METHODS = {
    "fused": "fused",
    "all logits, XLA": "all logits (XLA)",
    "all logits, PyTorch": "all logits (PyTorch)",
    "all logits, PyTorch compiled": "all logits (PyTorch, compiled)",
    "three products": "three bare products",
}


def find_rows(part: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Rows of the benchmark of accelerators: `{case: {name: row}}`."""
    cases: dict[str, dict[str, dict[str, Any]]] = {}
    for row in load_results("accelerator")["rows"]:
        if row["part"] == part:
            cases.setdefault(row["case"], {})[row["name"]] = row
    return cases


def _tabulate_accelerator_loss() -> tuple[list[str], list[list[Any]]]:
    rows = [
        [format_sizes(case), label, *_loss_figures(methods[method])]
        for case, methods in find_rows("loss").items()
        if case.endswith("bfloat16")
        for method, label in LOSS_METHODS.items()
        if method in methods
    ]
    return ["N × V × d, bfloat16", "loss and gradients", "ms", "MiB"], rows


def _loss_figures(row: dict[str, Any]) -> list[Any]:
    if "ms" not in row:
        return ["out of memory", None]
    return [round(row["ms"], 1), round(row["mib"])]


def _tabulate_accelerator_heads() -> tuple[list[str], list[list[Any]]]:
    rows = [
        [head, round(row["ms"], 1), round(row["over_tied"], 2), round(row["mib"])]
        for heads in find_rows("heads").values()
        for head, row in heads.items()
        if "over_tied" in row
    ]
    return ["output layer", "ms", "of tied", "MiB"], rows


_ACCELERATOR_TABLES = {"loss": _tabulate_accelerator_loss, "heads": _tabulate_accelerator_heads}


def _tabulate_highlights() -> tuple[list[str], list[list[Any]]]:
    """The figures of README.md: at most eight, each from a file."""
    loss = find_rows("loss")["8192,128256,4096 bfloat16"]
    logits, compiled = loss["all logits, XLA"], loss["all logits, PyTorch compiled"]
    tuned = {tuple(row[:2]): row for row in load_table("fine-tuning/steps")[1]}
    gemma = tuned["Gemma 3, 262,144 × 640", "LoRA"]
    tests = {row[0]: row for row in load_table("language-models/texts")[1]}
    treebank, wikitext = tests["Penn Treebank"], tests["WikiText-2"]
    steps = {row[0]: row for row in load_table("training-step/step")[1]}
    return ["measured", "figure", "page"], [
        [
            "time of the fused loss on an H100, of XLA with all logits",
            f"{loss['fused']['ms'] / logits['ms']:.2f}",
            _link("fused-loss"),
        ],
        [
            "its memory, of XLA with all logits",
            f"{loss['fused']['mib'] / logits['mib']:.2f}",
            _link("fused-loss"),
        ],
        [
            "its time, of PyTorch compiled",
            f"{loss['fused']['ms'] / compiled['ms']:.2f}",
            _link("fused-loss"),
        ],
        [
            "memory of a LoRA step of Gemma 3, of keras-hub",
            f"{gemma[3] / gemma[2]:.2f}",
            _link("fine-tuning"),
        ],
        [
            "test perplexity with DRILL, of tying, Penn Treebank",
            f"{treebank[4][0] / treebank[3][0]:.3f}",
            _link("label-encoders"),
        ],
        [
            "the same, WikiText-2 (one seed)",
            f"{wikitext[4] / wikitext[3]:.3f}",
            _link("label-encoders"),
        ],
        [
            "training step with DRILL, of tying, 33,278 words, CPU",
            f"{steps['DRILL'][2]:.2f}",
            _link("training-step"),
        ],
        [
            "largest error of a DRILL gradient in float64",
            load_table("exactness/errors")[1][0][1],
            _link("exactness"),
        ],
    ]


def _tabulate_choices() -> tuple[list[str], list[list[Any]]]:
    """Costs and gains of the output layers, one row each."""
    steps = {row[0]: row[2] for row in load_table("training-step/step")[1]}
    perplexities: dict[str, Any] = {}
    for layer, _, _, test, _ in load_table("language-models/encoders")[1]:
        perplexities.setdefault(layer.split(",")[0], test)
    rows = [[layer, time, perplexities.get(layer)] for layer, time in steps.items()]
    return ["output layer", "time of a step", "test perplexity"], rows


def _link(page: str) -> str:
    return f"[results](docs/results/{page}.md)"
