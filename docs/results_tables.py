"""Tables of the pages that are made from more than one table of a file."""

from typing import Any

from benchmarks.accelerator.table import describe
from docs.results_data import RESULTS, load_results, load_table, write_table


def format_sizes(key: str) -> str:
    tokens, words, width = (int(number) for number in key.split()[0].split(","))
    return f"{tokens:,} × {words:,} × {width:,}"


LOSS_METHODS = {
    "fused": "fused",
    "all logits, XLA": "all logits (XLA)",
    "all logits, PyTorch": "all logits (PyTorch)",
    "all logits, PyTorch compiled": "all logits (PyTorch, compiled)",
    "compiled chunks, PyTorch": "chunks (PyTorch, compiled)",
    "liger-kernel": "Liger Kernel",
    "cut-cross-entropy": "Cut Cross-Entropy",
    "tokamax": "Tokamax",
    "three products": "three bare products",
}


def load_accelerator_records() -> list[dict[str, Any]]:
    """Records of the benchmark of accelerators, each with the parts that no newer one has."""
    names = sorted(path.stem for path in RESULTS.glob("accelerator*.json"))
    records, seen = [], set()
    for record in sorted(map(load_results, names), key=lambda one: one["date"], reverse=True):
        rows = [row for row in record["rows"] if row["part"] not in seen]
        seen |= {row["part"] for row in rows}
        records.append({**record, "rows": rows})
    return [record for record in reversed(records) if record["rows"]]


def find_rows(part: str) -> tuple[str, dict[str, dict[str, dict[str, Any]]]]:
    """Device, and rows `{case: {name: row}}`, of the newest record that has a part."""
    (record,) = (one for one in load_accelerator_records() if _has(one, part))
    cases: dict[str, dict[str, dict[str, Any]]] = {}
    for row in record["rows"]:
        if row["part"] == part:
            cases.setdefault(row["case"], {})[row["name"]] = row
    return record["device"].removeprefix("NVIDIA ").split()[0], cases


def _has(record: dict[str, Any], part: str) -> bool:
    return any(row["part"] == part for row in record["rows"])


def find_loss(case: str = "8192,128256,4096 bfloat16") -> dict[str, dict[str, Any]]:
    """Rows of one size of the fused loss: that of the summaries."""
    return find_rows("loss")[1][case]


def _tabulate_accelerator_loss() -> tuple[list[str], list[list[Any]]]:
    device, cases = find_rows("loss")
    rows = [
        [format_sizes(case), label, *_loss_figures(methods[method])]
        for case, methods in cases.items()
        if case.endswith("bfloat16")
        for method, label in LOSS_METHODS.items()
        if method in methods and not str(methods[method].get("skipped")).startswith("not inst")
    ]
    return ["N × V × d, bfloat16", f"loss and gradients, {device}", "ms", "MiB"], rows


def _loss_figures(row: dict[str, Any]) -> list[Any]:
    if "ms" not in row:
        return ["out of memory", None]
    return [round(row["ms"], 1), round(row["mib"]) if "mib" in row else None]


def _tabulate_accelerator_heads() -> tuple[list[str], list[list[Any]]]:
    device, cases = find_rows("heads")
    rows = [
        [head, round(row["ms"], 1), round(row["over_tied"], 2), round(row["mib"])]
        for heads in cases.values()
        for head, row in heads.items()
        if "over_tied" in row
    ]
    return [f"output layer, {device}", "ms", "of tied", "MiB"], rows


def _tabulate_highlights() -> tuple[list[str], list[list[Any]]]:
    """The figures of README.md: at most eight, each from a file."""
    device, loss = find_rows("loss")[0], find_loss()
    logits, compiled = loss["all logits, XLA"], loss["all logits, PyTorch compiled"]
    tuned = {tuple(row[:2]): row for row in load_table("fine-tuning/steps")[1]}
    gemma = tuned["Gemma 3, 262,144 × 640", "LoRA"]
    tests = {row[0]: row for row in load_table("language-models/texts")[1]}
    treebank, wikitext = tests["Penn Treebank"], tests["WikiText-2"]
    steps = {row[0]: row for row in load_table("training-step/step")[1]}
    return ["measured", "figure", "page"], [
        [
            f"time of the fused loss on an {device}, of XLA with all logits",
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


_TABLES = {
    "accelerator/loss": _tabulate_accelerator_loss,
    "accelerator/heads": _tabulate_accelerator_heads,
    "summary/highlights": _tabulate_highlights,
    "summary/choices": _tabulate_choices,
}


def make_table(name: str) -> str:
    """The Markdown of a block `<!-- results: NAME begin -->`."""
    if name == "accelerator":  # all that the benchmark writes
        return "\n".join(map(describe, load_accelerator_records())).strip()
    return write_table(*(_TABLES[name]() if name in _TABLES else load_table(name)))
