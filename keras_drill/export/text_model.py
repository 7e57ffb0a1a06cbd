"""A language model with text as input and output.

Shapes: B texts, T words of the longest one, N words of the longest continuation, k words asked
for, d hidden features, S most senses of a word.
"""

from typing import Any

import tensorflow as tf

from keras_drill.decoding import GreedySampler, LanguageModelStep, Sampler
from keras_drill.decoding.random_streams import row_keys, sample_keys
from keras_drill.export.continuation import Continuation, StopStrings, last_words
from keras_drill.export.examples import read_texts
from keras_drill.export.rowwise_sampler import RowwiseSampler
from keras_drill.export.score_words import score_words
from keras_drill.export.sense_contexts import SenseContexts
from keras_drill.export.text_codec import TextCodec
from keras_drill.export.tiles import in_tiles
from keras_drill.ready_made import KernelizedBayesianSoftmax

_TEXTS, _PROMPTS, _EXAMPLES = (
    tf.TensorSpec([None], tf.string, name) for name in ("texts", "prompts", "examples")
)
_SETTINGS = [
    tf.TensorSpec([None], dtype, name)
    for name, dtype in {
        "max_new_tokens": tf.int32,
        "temperature": tf.float32,
        "top_k": tf.int32,
        "top_p": tf.float32,
        "min_p": tf.float32,
        "seed": tf.int64,
    }.items()
]
_NUMBER = tf.TensorSpec([], tf.int32)
_SENSES = tf.TensorSpec([None], tf.int32, "senses")


class TextModel(tf.Module):
    """Text in, text out: a language model together with its tokenizer and its vocabulary.

    The model that `export_saved_model` writes, for use in this process. All methods take tensors
    with the batch first, return dictionaries of tensors with the batch first, and accept an empty
    batch, empty texts, unknown words and texts of any length. Results of different lengths are
    padded (with "" and 0) and come with their lengths.

    A text is read as the model was trained, see `keras_drill.export.TextCodec`. A model that can
    read so many words only (by learned positions, or the shape of its input) reads the end of
    longer prompts, before the words that it adds. Texts to score must not be longer.

    Args:
        model: A built `keras_drill.LanguageModel`.
        tokenizer: A `keras_drill.data.Tokenizer`.
        vocabulary: A `keras_drill.data.Vocabulary`, or an `AssetVocabulary`.
        sampler: Chooses the words of `continue_text`. Defaults to `GreedySampler()`.
        seed: Seed of that sampler: the continuation of a prompt does not depend on the batch.
        max_new_tokens: Length of a continuation that does not end by itself.
        k: Number of words that `top_k` returns.
        forbidden_tokens: Ids never to generate. Defaults to the unknown, start and pad tokens.
        stop_strings: Strings at which a continuation ends: no more words are generated as soon as
            its readable text has one of them, and the text ends before it. `words` and `log_probs`
            include the word that completed it.
        contexts: Examples of the use of senses, for models whose words have several.
        unit: Unit of texts, as in training; see `TextCodec`.

    Example:

    >>> import keras, keras_drill
    >>> from keras_drill.data import Vocabulary, WhitespaceTokenizer
    >>> backbone = keras_drill.models.AWDLSTM(5, embedding_dim=4, units=6, num_layers=1)
    >>> head = keras_drill.OutputLayer(5, embedding=backbone.embedding)
    >>> model = keras_drill.LanguageModel(backbone, head)
    >>> _ = model(keras.ops.zeros((1, 1), dtype="int32"))
    >>> vocabulary = Vocabulary(["<unk>", "<eos>", "the", "cat", "sat"])
    >>> text_model = TextModel(model, WhitespaceTokenizer(), vocabulary, k=2)
    >>> scores = text_model.score(["the cat", "sat"])
    >>> scores["words"].numpy().tolist()
    [[b'the', b'cat', b'<eos>'], [b'sat', b'<eos>', b'']]
    >>> text_model.top_k(["the cat", ""])["words"].shape
    TensorShape([2, 2])
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        vocabulary: Any,
        sampler: Sampler | None = None,
        seed: int = 0,
        max_new_tokens: int = 50,
        k: int = 10,
        forbidden_tokens: Any = None,
        stop_strings: tuple[str, ...] = (),
        contexts: SenseContexts | None = None,
        unit: str = "line",
    ):
        super().__init__(name="text_model")
        # Kept in a plain object: tf.Module would track, and export, every variable of a layer.
        self._step = LanguageModelStep(model)
        if self._step.vocabulary_size != len(vocabulary):
            raise ValueError(
                f"`vocabulary` must have the model's {self._step.vocabulary_size} words. "
                f"Received: {len(vocabulary)} words"
            )
        if not 1 <= k <= len(vocabulary):
            raise ValueError(f"`k` must be from 1 to {len(vocabulary)}. Received: k={k}")
        if max_new_tokens < 1:
            raise ValueError(
                f"`max_new_tokens` must be positive. Received: max_new_tokens={max_new_tokens}"
            )
        longest = self._step.max_length
        if longest is not None and max_new_tokens >= longest:
            raise ValueError(
                f"`max_new_tokens` must be less than {longest}, the most words that the model can "
                f"read. Received: max_new_tokens={max_new_tokens}"
            )
        self.codec = TextCodec(tokenizer, vocabulary, unit)
        self.vocabulary = vocabulary
        self.sampler = GreedySampler() if sampler is None else sampler
        self.seed = seed
        self.max_new_tokens = max_new_tokens
        self.k = k
        self.contexts = contexts
        if forbidden_tokens is None:
            special = {vocabulary.unknown_id, vocabulary.start_id, vocabulary.pad_id}
            forbidden_tokens = sorted(special - {None, vocabulary.end_id})
        self._continuation = Continuation(
            self._step,
            self.codec,
            max_new_tokens,
            tuple(forbidden_tokens),
            StopStrings(stop_strings),
        )

    @tf.function(input_signature=[_PROMPTS], autograph=False)
    def continue_text(self, prompts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Continues prompts with the model's own sampler.

        Args:
            prompts: String tensor `[B]`.

        Returns:
            Dictionary of
            `texts` `[B]`: prompt and continuation as one readable text;
            `continuations` `[B]`: what was added, readable;
            `words` `[B, N]`: the words that were added, a closing end token included;
            `log_probs` `[B, N]`: the log-probability the model gave to each of them;
            `lengths` `[B]`: how many.
        """
        return self._continue_alike(prompts, tf.fill(tf.shape(prompts), self.max_new_tokens))

    @tf.function(input_signature=[_PROMPTS, _NUMBER, _NUMBER], autograph=False)
    def continue_samples(
        self, prompts: tf.Tensor, num_samples: tf.Tensor, first_row: tf.Tensor | int = 0
    ) -> dict[str, tf.Tensor]:
        """Several continuations of each prompt, drawn independently with the model's own sampler.

        The continuations are reproducible with the model's seed, and do not depend on their number:
        the first one of the first prompt is that of `continue_text`.

        Args:
            prompts: String tensor `[B]`.
            num_samples: Integer scalar n.
            first_row: Integer scalar: how many prompts other batches had before. The continuations
                do not depend on how prompts are split into batches.

        Returns:
            The dictionary of `continue_text` for `[B · n]` rows: those of the first prompt, then
            those of the second ...
        """
        keys = row_keys(self.seed, first_row + tf.shape(prompts)[0])[first_row:]  # [B, 2]
        keys = sample_keys(keys, num_samples)  # [B · n, 2]
        prompts = tf.repeat(prompts, num_samples)
        max_new_tokens = tf.fill(tf.shape(prompts), self.max_new_tokens)
        return self._continuation(prompts, max_new_tokens, self.sampler, keys)

    @tf.function(input_signature=[_PROMPTS, *_SETTINGS], autograph=False)
    def sample(
        self,
        prompts: tf.Tensor,
        max_new_tokens: tf.Tensor,
        temperature: tf.Tensor,
        top_k: tf.Tensor,
        top_p: tf.Tensor,
        min_p: tf.Tensor,
        seed: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Continues prompts with settings of their own, one value per prompt.

        The continuation of a prompt depends on its own seed only, not on the rest of the batch.

        Args:
            prompts: String tensor `[B]`.
            max_new_tokens: Integer tensor `[B]`, at most the model's `max_new_tokens`; a greater
                value means that.
            temperature: Float tensor `[B]`; 1 for the model's distribution, 0 for the most
                probable word.
            top_k: Integer tensor `[B]`; 0 to keep all words.
            top_p: Float tensor `[B]`; 1 to keep all words.
            min_p: Float tensor `[B]`; 0 to keep all words.
            seed: Integer tensor `[B]`; the 32 lower bits count.

        Returns:
            The dictionary of `continue_text`.
        """
        max_new_tokens = tf.clip_by_value(max_new_tokens, 0, self.max_new_tokens)
        sampler = RowwiseSampler(temperature, top_k, top_p, min_p)
        return self._continuation(prompts, max_new_tokens, sampler, seed)

    @tf.function(input_signature=[_TEXTS], autograph=False)
    def score(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Log-probability of texts, word by word.

        Every line of a text, the last one too, counts with its end token, as in training; one
        line break at the very end is the end of the last line.

        Args:
            texts: String tensor `[B]`.

        Returns:
            Dictionary of
            `words` `[B, T]`: the words as the model knows them, unknown ones replaced;
            `log_probs` `[B, T]`: log-probability of each word given those before it;
            `lengths` `[B]`: how many words;
            `total_log_probs` `[B]`: sums of `log_probs`;
            `perplexities` `[B]`: exp(-total_log_probs / lengths).
        """
        return score_words(self._step.head, *self._read(texts))

    @tf.function(input_signature=[_EXAMPLES], autograph=False)
    def examples(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        """Scores and continues the texts of serialized `tf.Example`s.

        An example has a feature `text`, which is scored, or `prompt`, which is continued, or both.

        Args:
            examples: String tensor `[B]`.

        Returns:
            The dictionary of `score` for `text`, with lengths and perplexities of 0 where there is
            none, and
            `answers` `[B]`: the continuations of `prompt` as by `continue_text`, `""` without one;
            `problems` `[B]`: what is wrong with an example, for which all else is empty, or `""`.
        """
        features, problems = read_texts(examples, ["text", "prompt"])
        text, prompt = features["text"], features["prompt"]
        hidden, ids, words, lengths = self._read(text.texts)
        lengths = tf.where(text.has, lengths, 0)
        max_new_tokens = tf.where(prompt.has, self.max_new_tokens, 0)
        return score_words(self._step.head, hidden, ids, words, lengths) | {
            "answers": self._continue_alike(prompt.texts, max_new_tokens)["continuations"],
            "problems": problems,
        }

    @tf.function(input_signature=[_TEXTS], autograph=False)
    def senses(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Senses of the words of texts, given the words before them.

        Only for models whose words have senses, with the output layer
        `keras_drill.KernelizedBayesianSoftmax`. Texts are read as by `score`.

        Args:
            texts: String tensor `[B]`.

        Returns:
            Dictionary of `words` `[B, T]`: the words as the model knows them, unknown ones
            replaced; `senses` `[B, T, S]`: ids of the senses of each word, ascending, the same
            wherever the word occurs; -1 where it has no more; `probabilities` `[B, T, S]`: of these
            senses, given the word and those before it; they sum to 1, and are 0 where there is no
            sense; `lengths` `[B]`: how many words.
        """
        hidden, ids, words, lengths = self._read(texts)
        head = self._step.head
        probabilities = in_tiles(head, head.sense_posteriors, hidden, ids)
        senses = tf.gather(head.allocation.senses_of_word, ids)  # [B, T, S]
        is_word = tf.sequence_mask(lengths)[..., None]
        return {
            "words": words,
            "senses": tf.where(is_word, senses, -1),
            "probabilities": tf.where(is_word, probabilities, 0.0),
            "lengths": lengths,
        }

    @tf.function(input_signature=[_SENSES], autograph=False)
    def sense_contexts(self, senses: tf.Tensor) -> dict[str, tf.Tensor]:
        """Contexts of senses, from the text that was exported with the model.

        Only for models that were given `contexts`.

        Args:
            senses: Integer tensor `[B]`: ids, as `senses` returns them.

        Returns:
            Dictionary of `before`, `after` `[B, K]`: text before and after the word of the sense,
            the most probable example first; both `""` where there are no more; `probabilities`
            `[B, K]`: of the sense there, given the word and those before it.
        """
        if self.contexts is None:
            raise ValueError("The model must have `contexts`. Received: contexts=None")
        return self.contexts(senses)

    @tf.function(input_signature=[_TEXTS], autograph=False)
    def top_k(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """The most probable next words.

        Args:
            texts: String tensor `[B]`.

        Returns:
            Dictionary of
            `words` `[B, k]`: the words, special tokens among them, most probable first;
            `log_probs` `[B, k]`: their log-probabilities.
        """
        ids = self.vocabulary.ids(last_words(self.codec.words_of_prompts(texts), self._step, 0))
        last = tf.cast(ids.row_lengths(), tf.int32)  # [B], the start token comes before
        hidden = self._step.read_whole(self.codec.with_start(ids))  # [B, T, d]
        log_probs, best = self._step.head.top_k(tf.gather(hidden, last, batch_dims=1), self.k)
        return {"words": self.vocabulary.words(best), "log_probs": log_probs}

    @property
    def weights(self) -> list:
        """The variables of inference."""
        return self._step.variables

    def signatures(self) -> dict:
        """The functions a server offers, by name.

        `serving_default`, for requests that name no signature, is `continue`: the one thing
        everybody expects of a language model, and with the greedy default a pure function of the
        prompt. Only models whose words have senses offer `senses`, and only those with examples of
        them `sense_contexts`.
        """
        signatures = {
            "serving_default": self.continue_text,
            "continue": self.continue_text,
            "sample": self.sample,
            "score": self.score,
            "top_k": self.top_k,
            "examples": self.examples,
        }
        if self.has_senses:
            signatures["senses"] = self.senses
        if self.contexts is not None:
            signatures["sense_contexts"] = self.sense_contexts
        return signatures

    @property
    def has_senses(self) -> bool:
        """Whether words have several senses."""
        return isinstance(self._step.head, KernelizedBayesianSoftmax)

    def _read(self, texts):
        """Hidden states `[B, T, d]`, ids and words `[B, T]` with all end tokens, lengths `[B]`."""
        ids = self.codec.ids_of_texts(texts)  # [B, (T)]
        words = self.vocabulary.words(ids).to_tensor("")
        hidden = self._step.read_whole(self.codec.with_start(ids[:, :-1]))
        return hidden, ids.to_tensor(0), words, tf.cast(ids.row_lengths(), tf.int32)

    def _continue_alike(self, prompts, max_new_tokens):
        seeds = tf.fill(tf.shape(prompts), self.seed)  # whatever row of a batch a prompt is in
        return self._continuation(prompts, max_new_tokens, self.sampler, seeds)
