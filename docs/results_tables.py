"""Tables of the pages that are made from more than one table of a file."""

import functools
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
    """Records of the benchmark of accelerators, each with the cases that no newer one measured."""
    names = sorted(path.stem for path in RESULTS.glob("accelerator*.json"))
    records: list[dict[str, Any]] = []
    seen: set[tuple[str, str]] = set()
    for record in sorted(map(load_results, names), key=lambda one: one["date"], reverse=True):
        measured = {(row["part"], row["case"]) for row in record["rows"] if "ms" in row} - seen
        rows = [row for row in record["rows"] if (row["part"], row["case"]) in measured]
        records.append({**record, "rows": rows})
        seen |= measured
    return [record for record in reversed(records) if record["rows"]]


def find_rows(part: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Rows of the benchmark of accelerators, `{case: {name: row}}`, each with its device."""
    cases: dict[str, dict[str, dict[str, Any]]] = {}
    for record in load_accelerator_records():
        device = record["device"].removeprefix("NVIDIA ").split()[0]
        for row in record["rows"]:
            if row["part"] == part:
                cases.setdefault(row["case"], {})[row["name"]] = {**row, "device": device}
    return cases


def find_loss() -> dict[str, dict[str, Any]]:
    """Rows of the size of the fused loss that the summaries show."""
    return find_rows("loss")["8192,128256,4096 bfloat16"]


def _tabulate_accelerator_steps() -> tuple[list[str], list[list[Any]]]:
    rows = [
        [f"{model}, {name}", row["device"], round(row["ms"], 1), round(row["mib"])]
        for part, model in (("transformer", "Transformer"), ("awd-lstm", "AWD-LSTM"))
        for rows in find_rows(part).values()
        for name, row in rows.items()
        if "ms" in row
    ]
    return ["training step", "GPU", "ms", "MiB"], rows


def _tabulate_accelerator_decoding() -> tuple[list[str], list[list[Any]]]:
    rows = [
        [name, row["device"], round(row["tokens_s"]), round(row["of_bandwidth"], 2)]
        for rows in find_rows("decoding").values()
        for name, row in rows.items()
        if "ms" in row
    ]
    return ["decoding", "GPU", "tokens a second", "of the bandwidth"], rows


def _tabulate_accelerator_loss() -> tuple[list[str], list[list[Any]]]:
    rows = [
        [format_sizes(case), row["device"], label, *_loss_figures(row)]
        for case, methods in find_rows("loss").items()
        if case.endswith("bfloat16")
        for method, label in LOSS_METHODS.items()
        if (row := methods.get(method)) and not _is_missing(row)
    ]
    return ["N × V × d, bfloat16", "GPU", "loss and gradients", "ms", "MiB"], rows


def _is_missing(row: dict[str, Any]) -> bool:
    """Whether a library was not installed, or there was no time left for it."""
    return "skipped" in row and "memory" not in row["skipped"].lower()


def _loss_figures(row: dict[str, Any]) -> list[Any]:
    if "ms" not in row:
        return ["out of memory", None]
    return [round(row["ms"], 1), round(row["mib"]) if "mib" in row else None]


def _tabulate_accelerator_heads() -> tuple[list[str], list[list[Any]]]:
    rows = [
        [head, row["device"], round(row["ms"], 1), round(row["over_tied"], 2), round(row["mib"])]
        for heads in find_rows("heads").values()
        for head, row in heads.items()
        if "over_tied" in row
    ]
    return ["output layer", "GPU", "ms", "of tied", "MiB"], rows


def _tabulate_highlights() -> tuple[list[str], list[list[Any]]]:
    """The figures of README.md: at most eight, each from a file."""
    loss = find_loss()
    logits, compiled = loss["all logits, XLA"], loss["all logits, PyTorch compiled"]
    tuned = {tuple(row[:2]): row for row in load_table("fine-tuning/steps")[1]}
    gemma = tuned["Gemma 3, 262,144 × 640", "LoRA"]
    tests = {row[0]: row for row in load_table("language-models/texts")[1]}
    treebank, wikitext = tests["Penn Treebank"], tests["WikiText-2"]
    steps = {row[0]: row for row in load_table("training-step/step")[1]}
    return ["measured", "figure", "page"], [
        [
            f"time of the fused loss on an {logits['device']}, of XLA with all logits",
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


def _tabulate_sense_usage() -> tuple[list[str], list[list[Any]]]:
    columns, found = (
        load_results("sense-usage")["tables"]["usage"][x] for x in ("columns", "rows")
    )
    shown = {
        "policy": "policy",
        "usage by": "usage by",
        "exact": "exact number of senses",
        "v_measure": "V-measure",
        "log_prob": "log p",
    }
    return list(shown.values()), [[row[columns.index(name)] for name in shown] for row in found]


def _tabulate_sense_usage_of_nouns() -> tuple[list[str], list[list[Any]]]:
    """V-measures by the policy and the usage that the names of the methods contain."""
    rows = []
    for method, *values in load_table("sense-usage-nouns/v-measure")[1]:
        parts = method.split(", ")
        policy = next((x.removeprefix("policy ") for x in parts if x.startswith("policy")), "none")
        usage = "probability" if "usage by probability" in parts else "posterior"
        rows.append([policy, usage, *values])
    return ["policy", "usage by", "13 nouns", "made-up words", "made-up words, held back"], rows


_STARTS_OF_SENSES = {
    "small-tied": "tied softmax",
    "small-dialog-tied": "tied softmax",
    "small-softmax": "softmax, labels of its own",
    "kerbs": "KerBS, random senses",
    "kerbs copies": "KerBS, copies",
    "kerbs copies inner_product": "KerBS, copies, without kernel",
    "kerbs copies false": "KerBS, copies that never move",
    "kerbs copies false inner_product": "KerBS, copies that never move, without kernel",
    "kerbs copies false inner_product 40": "the same, twice the learning rate",
}


def _tabulate_senses_start(name: str) -> tuple[list[str], list[list[Any]]]:
    """A comparison of how senses start, whose runs are named by their options."""
    columns, found = load_table(name)
    shown = [x for x in columns[1:] if "beyond" not in x] + [f"test ppl beyond {found[0][0]}"]
    rows = []
    for row in found:
        options = dict(x.split("=") for x in row[0].split("-") if "=" in x)
        options.pop("senses.per_word", None)  # the same in all rows
        key = " ".join(options.values()) or row[0]
        rows.append([_STARTS_OF_SENSES[key], *(row[columns.index(x)] for x in shown)])
    return ["output layer", *shown[:-1], "test ppl beyond the first"], rows


_SENSES_START = [
    f"senses-start-{text}/means"
    for text in ("demo-adam", "demo-sgd", "dialog", "ptb", "ptb-kernel", "ptb-random")
]

_TABLES = {
    "accelerator/loss": _tabulate_accelerator_loss,
    "accelerator/heads": _tabulate_accelerator_heads,
    "accelerator/steps": _tabulate_accelerator_steps,
    "accelerator/decoding": _tabulate_accelerator_decoding,
    "sense-usage/synthetic": _tabulate_sense_usage,
    "sense-usage-nouns/v-measure": _tabulate_sense_usage_of_nouns,
    **{name: functools.partial(_tabulate_senses_start, name) for name in _SENSES_START},
    "summary/highlights": _tabulate_highlights,
    "summary/choices": _tabulate_choices,
}


def make_table(name: str) -> str:
    """The Markdown of a block `<!-- results: NAME begin -->`."""
    if name == "accelerator":  # all that the benchmark writes
        return "\n".join(map(describe, load_accelerator_records())).strip()
    return write_table(*(_TABLES[name]() if name in _TABLES else load_table(name)))
