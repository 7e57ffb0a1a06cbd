"""Encodes words and texts by a pretrained encoder of keras-hub."""

import hashlib
import importlib.util
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np

_BATCH_TOKENS = 4096
_WEIGHTS = (
    "model.weights.h5",
    "model.weights.json",
    "model.safetensors",
    "model.safetensors.index.json",
)


class WordContext(NamedTuple):
    """One occurrence of a word.

    Attributes:
        before: The text before the word, in the same line.
        word: The word as it is written.
        after: The text after the word, in the same line.
    """

    before: str
    word: str
    after: str


class TextEncoder:
    """Encodes words in their contexts by a bidirectional encoder, such as BERT.

    A context, a `keras_drill.models.text_encoder.WordContext`, is one occurrence of a word with the
    text before and after it. The encoder's input is `[CLS] before [MASK] after [SEP]`, or the word
    in place of the mask, with up to `window` tokens on either side. `states` returns two vectors
    for each context: the last layer's output at the word, and the mean of the last layer's outputs
    over all tokens (with `[CLS]` and `[SEP]`), as for sentence encoders.

    Args:
        backbone: A keras-hub backbone that takes `token_ids` and `padding_mask` and returns
            `sequence_output`, or one tensor. `from_preset` loads backbone and tokenizer.
        tokenizer: The backbone's keras-hub tokenizer, with start, end, mask and padding tokens.
        window: Largest number of tokens before the word, and largest number after the word.

    Attributes:
        width: Width of the encoder's hidden states.
        fingerprint: Hexadecimal digest (hash) of weights, vocabulary and window, for example to
            name a cache.

    Raises:
        ValueError: The tokenizer lacks one of these tokens, or the window is too long for the
            encoder.

    Example:

        from keras_drill.models.text_encoder import TextEncoder, WordContext

        encoder = TextEncoder.from_preset("bert_small_en_uncased")
        encoder.check_words(["bank"])
        states = encoder.states([WordContext("On the ", "bank", " of the river")])  # [1, 2, 512]
    """

    def __init__(self, backbone: keras.Model, tokenizer: Any, window: int = 32):
        special: list[Any] = [
            getattr(tokenizer, f"{name}_token_id", None) for name in ("start", "end", "mask", "pad")
        ]
        if None in special:
            raise ValueError(
                "`tokenizer` must have start, end, mask and padding tokens, like tokenizers of "
                "masked language models such as BERT. Received: "
                f"{type(tokenizer).__name__} with the ids {special}"
            )
        longest = getattr(backbone, "max_sequence_length", None)
        if window < 1 or (longest is not None and 2 * window + 3 > longest):
            raise ValueError(
                "`window` must be at least 1, and 2 * `window` + 3 must be at most the length of "
                "sequences that the encoder takes. "
                f"Received: window={window}, an encoder for length {longest}"
            )
        self.backbone = backbone
        self.tokenizer = tokenizer
        self.window = window
        self._start, self._end, self._mask, self._pad = special
        self._function = keras.Model(backbone.input, _sequence_output(backbone))

    @classmethod
    def from_preset(cls, preset: str | os.PathLike, window: int = 32) -> "TextEncoder":
        """Loads the encoder of a keras-hub preset.

        Args:
            preset: Name of a preset, its address on a hub (such as `hf://...`), or a folder in the
                format of keras-hub or of Hugging Face (which requires `safetensors`). Folders of
                Hugging Face may have the vocabulary in `vocab.txt` or in `tokenizer.json`.
            window: Largest number of tokens before the word, and largest number after the word.

        Raises:
            ImportError: keras-hub is not installed, or `safetensors` if it is required.
            FileNotFoundError: A folder has no configuration or no weights.
            ValueError: The preset is not an encoder.
        """
        if importlib.util.find_spec("keras_hub") is None:
            raise ImportError(
                "`from_preset` needs keras-hub: pip install 'keras-drill[pretrained]'. "
                "Received: no module keras_hub"
            )
        import keras_hub

        preset = os.fspath(preset)
        is_address = "://" in preset  # of a hub
        if not is_address and ("/" in preset or Path(preset).is_dir()):
            _check_folder(preset)
        backbone = keras_hub.models.Backbone.from_preset(preset)
        return cls(backbone, _tokenizer(preset, keras_hub), window)

    @property
    def width(self) -> int:
        return int(self._function.output.shape[-1])

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(f"{self.window} {self._ids(['a b c'])}".encode())
        for variable in self.backbone.weights:
            digest.update(np.ascontiguousarray(keras.ops.convert_to_numpy(variable)).tobytes())
        return digest.hexdigest()

    def check_words(self, words: Sequence[str]) -> None:
        """Raises `ValueError` if a word is not a single token, since a mask stands for one token.

        Raises:
            ValueError: The tokenizer splits a word, or does not know it.
        """
        for word in words:
            (ids,) = self._ids([word])
            tokens = [self.tokenizer.id_to_token(int(id)) for id in ids]
            if len(ids) != 1 or tokens[0] == getattr(self.tokenizer, "oov_token", None):
                pieces = ", ".join(map(repr, tokens))
                raise ValueError(
                    "`words` must be words that the encoder's tokenizer knows as one token. "
                    f"Received: {word!r}, which it splits into {pieces or 'nothing'}"
                )

    def knows(self, word: str) -> bool:
        """Returns whether the word is a single token of the tokenizer."""
        try:
            self.check_words([word])
        except ValueError:
            return False
        return True

    def states(self, contexts: Sequence[WordContext], masked: bool = True) -> np.ndarray:
        """Computes two vectors of each context: the state at the word, and the mean state.

        Args:
            contexts: A list of N `WordContext`s.
            masked: Whether to mask the word, so that the states depend only on the text around it.
                With `False`, the encoder reads only the first token of a word of several tokens.

        Returns:
            `[N, 2, width]` float32, the two vectors of each context.
        """
        before = [ids[-self.window :] for ids in self._ids([c.before for c in contexts])]
        after = [ids[: self.window] for ids in self._ids([c.after for c in contexts])]
        if masked:
            words = [[self._mask]] * len(contexts)
        else:
            words = [ids[:1] for ids in self._ids([c.word for c in contexts])]
        rows = [
            [self._start, *left, *word, *right, self._end]
            for left, word, right in zip(before, words, after, strict=True)
        ]
        return self._states(rows, np.array([1 + len(left) for left in before], "int32"))

    def embed(
        self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None
    ) -> np.ndarray:
        """Computes vectors of texts, such as words or definitions.

        The vector of a text is the mean of the last layer's outputs over all tokens.
        `keras_drill.DescriptionLabelEncoder` can compute labels from these vectors. The encoder
        cannot distinguish unknown words: texts that consist of equally many unknown words have the
        same vector.

        Args:
            texts: N texts, truncated to `2 * window + 1` tokens.
            progress: Function that is called after each batch as `progress(done, N)`, where `done`
                is the number of encoded texts; `None` for no calls.

        Returns:
            `[N, width]` float32.

        Raises:
            ValueError: `texts` is one string, empty, or not all strings.
        """
        if isinstance(texts, str) or not len(texts):
            raise ValueError(f"`texts` must be a list of texts, at least one. Received: {texts!r}")
        for text in texts:
            if not isinstance(text, str):
                raise ValueError(f"`texts` must be strings only. Received: an element {text!r}")
        longest = 2 * self.window + 1
        rows = [[self._start, *ids[:longest], self._end] for ids in self._ids(texts)]
        return self._states(rows, np.zeros(len(rows), "int32"), progress)[:, 1].copy()

    def _states(
        self,
        rows: list[list[int]],
        places: np.ndarray,
        progress: Callable[[int, int], None] | None = None,
    ) -> np.ndarray:
        """Returns `[N, 2, width]`: the state at a position of each row of tokens, and the mean
        state.
        """
        states = np.empty((len(rows), 2, self.width), "float32")
        order = sorted(range(len(rows)), key=lambda row: len(rows[row]))
        while order:  # the longest first: if their batch fits in memory, all later ones do
            size = max(1, _BATCH_TOKENS // len(rows[order[-1]]))
            order, batch = order[:-size], order[-size:]
            states[batch] = self._batch([rows[row] for row in batch], places[batch])
            if progress is not None:
                progress(len(rows) - len(order), len(rows))
        return states

    def _batch(self, rows: list[list[int]], places: np.ndarray) -> np.ndarray:
        length = -(-max(map(len, rows)) // 8) * 8  # few shapes to trace
        ids = np.full((len(rows), length), self._pad, "int32")
        for place, row in enumerate(rows):
            ids[place, : len(row)] = row
        mask = np.arange(length) < np.array([len(row) for row in rows])[:, None]
        inputs = {
            "token_ids": ids,
            "padding_mask": mask.astype("int32"),
            "segment_ids": np.zeros_like(ids),
        }
        output = self._function({name: inputs[name] for name in self.backbone.input})
        hidden = keras.ops.convert_to_numpy(keras.ops.cast(output, "float32"))  # [B, T, d]
        mean = (hidden * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return np.stack([hidden[np.arange(len(rows)), places], mean], axis=1)

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        ids = self.tokenizer.tokenize(list(texts))
        return ids.to_list() if hasattr(ids, "to_list") else [list(row) for row in ids]


def _sequence_output(backbone: keras.Model) -> Any:
    output = backbone.output
    return output["sequence_output"] if isinstance(output, dict) else output


def _check_folder(preset: str) -> None:
    folder = Path(preset)
    if not (folder / "config.json").is_file():
        raise FileNotFoundError(
            "`preset` must be the name of a preset of keras-hub, or a folder with config.json. "
            f"Received: preset={preset!r}"
        )
    if not any((folder / name).exists() for name in _WEIGHTS):
        raise FileNotFoundError(
            f"`preset` must have weights, one of {', '.join(_WEIGHTS)}. Received: {preset!r}, "
            f"with {', '.join(sorted(path.name for path in folder.iterdir()))}"
        )


def _tokenizer(preset: str, keras_hub: Any) -> Any:
    """Loads the tokenizer, also from Hugging Face's single file `tokenizer.json`."""
    folder, whole = Path(preset), Path(preset, "tokenizer.json")
    if (folder / "vocab.txt").exists() or not whole.is_file():
        return keras_hub.tokenizers.Tokenizer.from_preset(preset)
    content = json.loads(whole.read_text(encoding="utf-8"))
    model = content.get("model", {})
    if model.get("type") != "WordPiece":
        return keras_hub.tokenizers.Tokenizer.from_preset(preset)
    pieces = sorted(model["vocab"], key=model["vocab"].get)
    lowercase = bool((content.get("normalizer") or {}).get("lowercase", False))
    return keras_hub.tokenizers.BertTokenizer(vocabulary=pieces, lowercase=lowercase)
