"""Output formats of scored texts."""

import json
import math
from typing import Any

from keras_drill.workbench.cli.texts import escaped

COLUMNS = ("number", "log_prob", "num_words", "perplexity", "text")


def as_text(record: dict[str, Any], total: bool) -> str:
    """Formats a scored text for people: one line per word unless `total`, and a line of totals."""
    lines = []
    if not total:
        senses = record.get("senses", [{}] * record["num_words"])
        for word, log_prob, ids in zip(record["words"], record["log_probs"], senses, strict=True):
            notes = "".join(f"  {sense}:{probability:.3f}" for sense, probability in ids.items())
            lines.append(f"{log_prob:10.4f}  {word}{notes}\n")
    told = sums(record["log_prob"], record["num_words"])
    return "".join(lines) + f"{record['log_prob']:10.4f}  total of {told}\n"


def sums(log_prob: float, num_words: int) -> str:
    """Formats the number of words and the perplexity of a text."""
    # The limit avoids an overflow of `exp`.
    return f"{num_words} words, perplexity {math.exp(min(-log_prob / num_words, 700)):.4f}"


def as_tsv(record: dict[str, Any], total: bool) -> str:
    """Formats a scored text as a line of TSV: `COLUMNS`, and the source if the text has one."""
    figures = (record["number"], f"{record['log_prob']:.6f}", record["num_words"])
    texts = [escaped(record[name]) for name in ("text", "source") if name in record]
    return "\t".join(map(str, (*figures, f"{record['perplexity']:.6f}", *texts))) + "\n"


def as_json(record: dict[str, Any], total: bool) -> str:
    """Formats a scored text as a line of JSON, without the words if `total`."""
    if total:
        record = {name: one for name, one in record.items() if name not in ("words", "log_probs")}
    return json.dumps(_rounded(record), ensure_ascii=False) + "\n"


def _rounded(value: Any) -> Any:
    """Rounds floats to 6 digits. Infinity and NaN become `None`, since JSON has neither."""
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    return value
