"""Evaluator: compares the new model with the served model on the same examples."""

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import tensorflow as tf

from keras_drill.export.served_versions import ServedVersions
from keras_drill.metrics.text_scores import score_texts
from keras_drill.workbench.analysis.gains import Gain, bleu_gain
from keras_drill.workbench.report.page.elements import element, table
from keras_drill.workbench.report.page.formatting import MISSING
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.tasks.task import AnsweringTask, Task
from keras_drill.workbench.training.evaluate_examples import (
    EvaluatedExamples,
    evaluate_examples,
    first_examples,
)
from pipelines.components.comparison import Comparison, compare, unigram_model
from pipelines.components.fingerprint import fingerprint
from pipelines.components.trainer import serving_folder
from pipelines.components.verdict import Verdict
from pipelines.engine.artifact_store import LINEAGE
from pipelines.engine.component import Component, Facts, Progress
from pipelines.options import EvaluatorOptions

_NAMED = 2


class Evaluator(Component):
    """Decides whether the model may be served and writes the decision to `verdict.json`.

    A model that may be served is called blessed. The pipeline stops if the model is refused. The
    component evaluates the exported models by their signature `examples`, on the last held-out
    split. The first model of a name is compared with a unigram model, each later model with the
    served model.

    Args:
        task: Task that reads the examples.
        served: The served versions; `None` if the model will not be served.
        options: The options.
    """

    name = "Evaluator"
    version = 1
    reads = ("examples", "transformed", "model")
    writes = "verdict"

    def __init__(
        self,
        task: Task,
        served: ServedVersions | None = None,
        options: EvaluatorOptions = EvaluatorOptions(),  # noqa: B008
    ):
        super().__init__(options)
        self.task = task
        self.served = served

    def settings(self) -> dict[str, Any]:
        version = self._baseline()
        told = None
        if self.served is not None and version is not None:
            told = [version, fingerprint(self.served.folder(version))]
        return {**super().settings(), "baseline": told}

    def run(self, inputs: Mapping[str, Path], output: Path, progress: Progress) -> Facts:
        verdict = self._verdict(inputs, progress)
        verdict.save(output)
        figures = {
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in verdict.figures.items()
            if isinstance(value, int | float)
        }
        return {"verdict": "blessed" if verdict.blessed else "refused", **figures}

    def stopping_reason(self, artifact: Path) -> str | None:
        verdict = Verdict.load(artifact)
        if verdict.blessed:
            return None
        stays = (
            ""
            if verdict.baseline is None
            else f"\nVersion {verdict.baseline} continues to be served"
        )
        return "the model is refused:\n" + "\n".join(f"  {one}" for one in verdict.reasons) + stays

    def sections(self, artifact: Path) -> list[ElementTree.Element]:
        verdict = Verdict.load(artifact)
        parts = [
            element("h2", "Verdict"),
            element("p", element("strong", "Blessed" if verdict.blessed else "Refused")),
            element("ul", *(element("li", reason) for reason in verdict.reasons)),
            *(element("p", note) for note in verdict.notes),
        ]
        if verdict.bins:
            rows = [
                [
                    each["label"],
                    f"{each['tokens']:,}",
                    f"{each['baseline']:.2f}",
                    f"{each['candidate']:.2f}",
                    f"{each['gain']:+.1f} %",
                    _range(each["interval"], " %"),
                ]
                for each in verdict.bins
            ]
            header = [
                "training count",
                "words",
                "baseline perplexity",
                "new perplexity",
                "lower by",
                "interval",
            ]
            caption = "Perplexity by training-set frequency of the words, with 99 % intervals"
            parts.append(table(caption, header, rows))
        return [element("section", *parts)]

    def _baseline(self) -> int | None:
        return None if self.served is None else self.served.newest()

    def _verdict(self, inputs: Mapping[str, Path], progress: Progress) -> Verdict:
        version = self._baseline()
        if self.served is not None and version is not None:
            lineage = json.loads((inputs["model"] / LINEAGE).read_text(encoding="utf-8"))
            told = self.served.lineage(version)
            if told.get("model") == lineage["content"]:
                reason = f"this model is already served, as version {version}"
                pushed = Verdict(**told.get("verdict", {"blessed": True, "reasons": []}))
                return dataclasses.replace(
                    pushed, reasons=[reason, *pushed.reasons], baseline=version
                )
        split, columns = list(self.task.read_columns(str(inputs["examples"])).items())[-1]
        examples = first_examples(columns, self.options.max_examples or None)
        candidate = _evaluate(serving_folder(inputs["model"]), examples, progress, "candidate")
        counts, unknown = self._words(inputs["transformed"])
        if self.served is None or version is None:
            baseline = unigram_model(candidate, counts)
            against = "a unigram model"
        else:
            folder = self.served.folder(version)
            baseline = _evaluate(folder, examples, progress, f"version {version}")
            against = f"version {version}"
        texts = list(examples.values())[-1]
        compared = compare(candidate, baseline, texts, counts, unknown)
        decision = _Decision(self.options, compared, f"{len(texts):,} lines of {split}", against)
        decision.check_perplexity(first=version is None)
        if isinstance(self.task, AnsweringTask):
            references = [text.decode(errors="replace") for text in texts]
            scoring = self.task.scoring
            words = self.task.load_vocabulary(inputs["transformed"])
            ceiling = self.task.measure_ceiling(words, references)
            decision.check_bleu(
                candidate, None if version is None else baseline, references, scoring, ceiling
            )
        decision.check_words(first=version is None)
        return decision.verdict(version)

    def _words(self, transformed: Path) -> tuple[dict[bytes, int], bytes]:
        """Returns the counts of the target words in training, and the token for unknown words."""
        words = self.task.load_vocabulary(transformed)
        _, vocabulary = list(self.task.coders(words).values())[-1]
        counts = words.counts or [1] * len(words.tokens)
        known = {token.encode(): int(n) for token, n in zip(words.tokens, counts, strict=True)}
        return known, vocabulary.unknown_token.encode()


class _Decision:
    """Collects the reasons for and against serving the model."""

    def __init__(self, options: EvaluatorOptions, compared: Comparison, lines: str, against: str):
        self.options = options
        self.compared = compared
        self.lines = lines
        self.against = against
        self.pro: list[str] = []
        self.contra: list[str] = []
        self.notes: list[str] = []
        self.figures: dict[str, Any] = {}

    def verdict(self, baseline: int | None) -> Verdict:
        reasons = self.contra or self.pro
        return Verdict(not self.contra, reasons, baseline, self.figures, self._bins(), self.notes)

    def check_perplexity(self, first: bool) -> None:
        compared = self.compared
        gain = Gain(_lower(compared.gain.value), _lowers(compared.gain.interval))
        what = "perplexity of known words" if compared.unit == "word" else "perplexity per byte"
        self.figures |= {
            what: compared.perplexity,
            f"{what} before": compared.baseline_perplexity,
            "perplexity lower by %": gain.value,
            "interval": gain.interval,
        }
        what += f" {compared.perplexity:.2f}, {self.against} {compared.baseline_perplexity:.2f}"
        what += f", on {self.lines}"
        if compared.lines_left_out:
            what += f" without {compared.lines_left_out:,} lines with unknown words"
        least = 0.0 if first else self.options.min_gain
        self._check_gain(what, gain, least, " %", better="lower", worse="higher")
        most = self.options.max_perplexity
        if most and compared.perplexity > most:
            self.contra.append(f"perplexity {compared.perplexity:.2f} is above {most:g}")

    def check_bleu(
        self,
        candidate: EvaluatedExamples,
        baseline: EvaluatedExamples | None,
        references: list[str],
        scoring: Mapping[str, Any],
        ceiling: Any,
    ) -> None:
        bleu = score_texts(candidate.answers, references, **scoring).bleu
        self.figures |= {"BLEU": bleu, "highest reachable BLEU": ceiling.bleu}
        if not ceiling.is_reached:
            self.notes.append(f"Highest scores that the vocabulary allows: {ceiling}")
        if baseline is not None:
            # If the task generates text, BLEU decides instead of the perplexity.
            self.pro, self.contra = [], [one for one in self.contra if "is above" in one]
            before = score_texts(baseline.answers, references, **scoring).bleu
            gain = bleu_gain(candidate.answers, baseline.answers, references, **scoring)
            self.figures |= {"BLEU before": before, "BLEU interval": gain.interval}
            what = f"BLEU {bleu:.2f}, {self.against} {before:.2f}, on {self.lines}"
            self._check_gain(what, gain, self.options.min_gain, "", better="higher", worse="lower")
        if bleu < self.options.min_bleu:
            self.contra.append(f"BLEU {bleu:.2f} is below {self.options.min_bleu:g}")

    def check_words(self, first: bool) -> None:
        compared, most = self.compared, self.options.max_bin_loss
        self.figures["unknown words %"] = compared.unknown
        if first:
            return
        self.figures["unknown words before %"] = compared.baseline_unknown
        more = compared.unknown - compared.baseline_unknown
        if more > self.options.max_more_unknown:
            self.contra.append(
                f"{compared.unknown:.2f} % of the words are unknown, {more:.2f} percentage points "
                f"more than for {self.against}; allowed: {self.options.max_more_unknown:g} %"
            )
        lost = [each for each in self._bins() if most and each["interval"][1] < -most]
        for each in sorted(lost, key=lambda one: one["gain"])[:_NAMED]:
            self.contra.append(
                f"words that occur {each['label']} times in the training text have a "
                f"perplexity {-each['gain']:.1f} % higher than with {self.against} "
                f"(99 % interval {_range(each['interval'], ' %')}); allowed: {most:g} %"
            )

    def _check_gain(
        self, what: str, gain: Gain, least: float, unit: str, better: str, worse: str
    ) -> None:
        change = f"{abs(gain.value):.2f}{unit} {better if gain.value > 0 else worse}"
        told = f"{what}: {change} (95 % interval of the gain {_range(gain.interval, unit)})"
        reached = gain.interval[0] if self.options.certain else gain.value
        if reached > least:
            self.pro.append(told)
        elif gain.value > least:
            self.contra.append(
                f"{told}, which may be due to chance; required: more than {least:g}{unit}"
            )
        else:
            self.contra.append(f"{told}; required: more than {least:g}{unit}")

    def _bins(self) -> list[dict[str, Any]]:
        if self.compared.frequency is None:
            return []
        return [
            {
                "label": each.label,
                "tokens": each.tokens,
                "baseline": math.exp(each.cross_entropy_a),
                "candidate": math.exp(each.cross_entropy_b),
                "gain": _lower(each.difference),
                "interval": _lowers(each.interval),
            }
            for each in self.compared.frequency.bins
            if each.tokens
        ]


def _lower(log_prob: float) -> float:
    """Converts a gain in log-probability to a reduction of the perplexity in percent."""
    return 100 * (1 - math.exp(-log_prob))


def _lowers(interval: tuple[float, float]) -> tuple[float, float]:
    return _lower(interval[0]), _lower(interval[1])


def _range(interval: tuple[float, float], unit: str) -> str:
    if math.isnan(interval[0]):  # too few words for an interval
        return MISSING
    return f"{interval[0]:+.2f} to {interval[1]:+.2f}{unit}"


def _evaluate(
    folder: Path, examples: Mapping[str, list[bytes]], progress: Progress, name: str
) -> EvaluatedExamples:
    loaded = tf.saved_model.load(str(folder))
    if "examples" not in loaded.signatures:
        raise RunError(
            f"{folder} has no signature `examples`, which the evaluation needs, because an earlier "
            "version of keras_drill exported the model: export the model again, or roll it back"
        )
    return evaluate_examples(
        loaded.signatures["examples"], examples, lambda done: progress(done, f"examples, {name}")
    )
