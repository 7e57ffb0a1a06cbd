"""Figures by other means: NumPy over the log-probabilities of the saved model, and sacrebleu.

Nothing here uses the package's batches, tokenizers, vocabularies or scores.
"""

import base64
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np


def read_ids(run: Path, name: str = "vocabulary.txt") -> dict[str, int]:
    """The words of a run by their line in the vocabulary file."""
    return {word: place for place, word in enumerate((run / name).read_text("utf-8").splitlines())}


def split_into_words(run: Path, lines: Sequence[str]) -> list[list[str]]:
    """Words or pieces of lines. Texts of these tests have spaces around all that is a word."""
    path = run / "tokenizer.json"
    config = json.loads(path.read_text("utf-8")) if path.exists() else {}
    config = config.get("tokenizer", config)
    config = config.get("config", config)
    if "model" not in config:
        return [line.split() for line in lines]
    import sentencepiece

    pieces = sentencepiece.SentencePieceProcessor()
    pieces.LoadFromSerializedProto(base64.b64decode(config["model"]))
    return [pieces.EncodeAsPieces(line) for line in lines]


def language_model_log_probs(run: Path, lines: Sequence[str], rows: int) -> np.ndarray:
    """Log-probabilities `[N]` of all words of a text and of the ends of its lines, in order.

    The text is read from its beginning to its end from an empty state, in each of the `rows` that
    the model takes. Texts of these tests are shorter than what rows of `evaluate` read beforehand.
    """
    ids = read_ids(run)
    tokens = [
        ids.get(word, ids["<unk>"])
        for words in split_into_words(run, lines)
        for word in [*words, "<eos>"]
    ]
    model = keras.saving.load_model(run / "model.keras", compile=False)
    for variable in model.non_trainable_variables:
        if variable.name.startswith("state_"):  # where training has left it
            variable.assign(np.zeros(variable.shape))
    inputs = np.tile([ids["<eos>"], *tokens[:-1]], (rows, 1))
    found = np.asarray(model(inputs), "float64")[0]
    return found[np.arange(len(tokens)), tokens]


def translation_log_probs(run: Path, sources: Sequence[str], targets: Sequence[str]) -> np.ndarray:
    """Log-probabilities `[N]` of the words of targets and of their ends, pair by pair."""
    ids = read_ids(run)
    of_source = (
        read_ids(run, "source-vocabulary.txt") if (run / "source-vocabulary.txt").exists() else ids
    )
    model = keras.saving.load_model(run / "model.keras", compile=False)
    found = []
    for source, target in zip(
        split_into_words(run, sources), split_into_words(run, targets), strict=True
    ):
        read = [of_source.get(word, of_source["<unk>"]) for word in source] + [of_source["<eos>"]]
        written = [ids.get(word, ids["<unk>"]) for word in target] + [ids["<eos>"]]
        before = [ids["<sos>"], *written[:-1]]
        log_probs = model({"source": np.array([read]), "target": np.array([before])})
        found.append(np.asarray(log_probs, "float64")[0, np.arange(len(written)), written])
    return np.concatenate(found)


def perplexity(log_probs: np.ndarray) -> float:
    return float(np.exp(-log_probs.mean()))


def sacrebleu(references: Path, outputs: Path, *options: str) -> dict:
    """What the program sacrebleu says of two files, by metric."""
    command = [sys.executable, "-m", "sacrebleu", str(references), "-i", str(outputs)]
    command += ["-m", "bleu", "chrf", "-w", "6", "-f", "json", "--force", *options]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return {each["name"]: each for each in json.loads(result.stdout)}
