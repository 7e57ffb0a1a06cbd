"""Export of a run's model, with a model card, as a SavedModel, for CTranslate2 or to ONNX."""

import importlib.metadata
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_drill.data.read_json import read_json
from keras_drill.decoding import GreedySampler, Sampler
from keras_drill.export import (
    ModelCard,
    TextModel,
    Translator,
    export_ctranslate2,
    export_onnx,
)
from keras_drill.export.narrow_weights import num_bytes, served_signatures
from keras_drill.metrics.text_scores import score_texts
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.tasks.task import AnsweringTask, ContinuingTask
from keras_drill.workbench.training.evaluate_examples import evaluate_examples, first_examples
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.shown_senses import contexts_for_export

# Examples to evaluate by whether the model generates outputs, which takes longer than scoring.
_EVALUATED = {True: 100, False: 500}
_DISTRIBUTIONS = ("keras-drill", "keras", "tensorflow", "tensorflow-text")
_LIMIT_OF_ALL = (
    "The model knows only the language of its corpus. Its output may be wrong, and may repeat "
    "sentences of the corpus."
)


def export_run(
    run: LoadedRun,
    directory: Path,
    *,
    version: int | None = None,
    sampler: Sampler | None = None,
    seed: int = 0,
    max_tokens: int = 50,
    stop_strings: tuple[str, ...] = (),
    weights: str = "float32",
    sense_contexts: int = 0,
    data: str | None = None,
    licence: str = "not stated",
    limits: Sequence[str] = (),
) -> Path:
    """Exports the model of a run as a SavedModel, with a model card that describes the run.

    Args:
        run: The run.
        directory: The model's folder, `saved_models/<name>`.
        version: See `keras_drill.export.export_saved_model`.
        sampler: Sampler for models that continue texts; `None` is greedy search.
        seed: Seed of the sampler.
        max_tokens: Maximum number of words of a continuation.
        stop_strings: Strings at which continuations end.
        weights: Data type of the stored weights. For other types than float32, the card
            shows results of the model with both types, on the beginning of the last held-out
            split.
        sense_contexts: Maximum number of examples of each sense, which are taken from the training
            text and stored in the model.
        data: Path of the corpus for the evaluation and the examples of senses; `None` is the corpus
            of the run.
        licence: Licence of the model, for the card.
        limits: Sentences on limits of the model, for the card. Limits of all models of its kind
            are added.

    Returns:
        The version's folder.
    """
    continues = isinstance(run.task, ContinuingTask)
    if sense_contexts and not (continues and run.config.head.has_senses):
        raise RunError(
            "`sense_contexts` must be 0 unless the model continues texts and its words have "
            f"senses. Received: sense_contexts={sense_contexts} for {run.folder.path}"
        )
    if isinstance(run.task, AnsweringTask):
        search = run.task.make_search()
        module: Any = run.task.translator(run.model, run.vocabulary, search)
        options: dict[str, Any] = {"search": search}
        export: Any = run.task.export_translator
    else:
        sampler = GreedySampler() if sampler is None else sampler
        options = {
            "sampler": sampler,
            "seed": seed,
            "max_tokens": max_tokens,
            "stop_strings": stop_strings,
            "contexts": contexts_for_export(run, sense_contexts, data) if sense_contexts else None,
        }
        module = run.continuing_task.text_model(run.model, run.vocabulary, **options)
        export = run.continuing_task.export
    kept = {"kept in": weights}
    if weights != "float32":
        kept |= compare_weights(run, module, weights, data)
    card = make_card(run, directory.name, licence, [*_limits(module), *limits], kept)
    return export(
        run.model,
        run.vocabulary,
        directory,
        version=version,
        weights=weights,
        card=card,
        **options,
    )


def export_transformer(
    run: LoadedRun,
    directory: Path,
    file_format: str,
    *,
    version: int | None = None,
    quantization: str | None = None,
    licence: str = "not stated",
    limits: Sequence[str] = (),
) -> Path:
    """Exports the Transformer of a run with sources for CTranslate2 or to ONNX.

    Args:
        run: The run.
        directory: The model's folder.
        file_format: "ctranslate2" or "onnx".
        version: See `keras_drill.export.export_ctranslate2`.
        quantization: Data type of the stored weights; `None` is float32. Only for CTranslate2.
        licence: Licence of the model, for the card.
        limits: Limits of the model for the card, in addition to those of all models.

    Returns:
        The version's folder.
    """
    export: Any = {"ctranslate2": export_ctranslate2, "onnx": export_onnx}[file_format]
    options = {} if quantization is None else {"quantization": quantization}
    coders = run.task.coders(run.vocabulary)
    kept = {"kept in": quantization or "float32"}
    card = make_card(run, directory.name, licence, [_LIMIT_OF_ALL, *limits], kept)
    return export(
        run.model,
        directory,
        coders["target"],
        coders["source"],
        version=version,
        card=card,
        **options,
    )


def make_card(
    run: LoadedRun,
    name: str,
    licence: str,
    limits: Sequence[str],
    weights: Mapping[str, Any],
) -> ModelCard:
    """Makes a model card from the options and results of a run.

    Args:
        run: The run.
        name: Name of the model.
        licence: Licence of the model.
        limits: Sentences on what the model cannot do.
        weights: Facts about the stored weights, for the card.
    """
    results: dict[str, Any] = {}
    if run.folder.results_file.exists():
        results = read_json(run.folder.results_file)
    trained = results.pop("date", "unknown")
    sizes = results.pop("data", "unknown")
    scores = results.pop("scores", {})
    signatures = results.pop("signatures", {})
    results.pop("texts", None)
    config = run.config
    return ModelCard(
        name=name,
        description=f"A model for {config.task.replace('-', ' ')}, output layer: "
        f"{config.output_layer}. {config.description}".strip(),
        trained=trained,
        licence=licence,
        data={"corpus": Path(config.data.path).name, "sizes": sizes},
        figures={key: value for key, value in {**results, **scores}.items() if value is not None}
        | {f"{metric} signature": value for metric, value in signatures.items()},
        weights=weights,
        limits=limits,
        options={
            section: values
            for section, values in config.to_mapping().items()
            if isinstance(values, Mapping)
        },
        versions={
            "Python": platform.python_version(),
            **{each: importlib.metadata.version(each) for each in _DISTRIBUTIONS},
        },
    )


def compare_weights(
    run: LoadedRun, module: TextModel | Translator, weights: str, data: str | None = None
) -> dict[str, Any]:
    """Measures quality, size and latency of a model with float32 and with smaller weights.

    Args:
        run: The run. The model is evaluated on its held-out text.
        module: The model of the run.
        weights: Data type of the smaller weights.
        data: Path of the text; `None` is the corpus of the run.

    Returns:
        Facts for the card, with values for float32 and for `weights`.
    """
    columns = list(run.task.read_columns(run.config.data.path if data is None else data).items())
    split, lines = next(each for each in reversed(columns) if each[0] != "train")
    examples = first_examples(lines, _EVALUATED[isinstance(run.task, AnsweringTask)])
    references = [line.decode() for line in list(examples.values())[-1]]
    facts: dict[str, Any] = {"evaluated on": f"{len(references)} lines of {split}"}
    for kind in ("float32", weights):
        function = served_signatures(module, kind)["examples"]
        evaluate_examples(function, first_examples(examples, 1))  # compiles
        started = time.perf_counter()
        evaluated = evaluate_examples(function, examples)
        facts[f"seconds, {kind}"] = round(time.perf_counter() - started, 3)
        facts[f"megabytes, {kind}"] = round(num_bytes(function) / 1e6, 3)
        facts[f"perplexity, {kind}"] = evaluated.perplexity
        if isinstance(run.task, AnsweringTask):
            scores = score_texts(evaluated.answers, references, **run.task.scoring)
            facts[f"BLEU, {kind}"] = scores.bleu
    return facts


def _limits(module: TextModel | Translator) -> list[str]:
    """Returns sentences on the limits that all models of this kind have, for the card."""
    limits = [
        _LIMIT_OF_ALL,
        "The model reads words outside its vocabulary as `<unk>`, and never writes `<unk>`.",
    ]
    if isinstance(module, Translator):
        limits.append(
            f"Sources are truncated to {module.max_source_tokens} tokens. Outputs have at most "
            f"{module.max_tokens} tokens."
        )
    else:
        limits.append(f"Continuations have at most {module.max_new_tokens} words.")
        if module.contexts is not None:
            limits.append(
                f"The model contains {module.contexts.num_words:,} words of its training text as "
                "examples of senses. Everyone with access to the model can read these examples."
            )
    return limits
