"""A language model with text as input and output.

Shapes: B texts, T words of the longest one, N words of the longest continuation, k requested words,
d hidden features, S the largest number of senses of a word.
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
    """A language model with text as input and output, with its tokenizer and vocabulary.

    `export_saved_model` writes such a model as a SavedModel. Use this class to call the model in
    the current process. All methods take and return tensors with the batch first; results are
    dictionaries. Texts and words are strings, lengths and ids are int32, and probabilities,
    log-probabilities and perplexities are float32. Empty batches, empty texts and unknown words are
    allowed. Rows of different lengths are padded (strings with `""`, ids of senses with -1, other
    numbers with 0), and their lengths are returned.

    Texts are split into words and end tokens as in training, see `keras_drill.export.TextCodec`.
    Words are entries of the vocabulary; with a subword tokenizer they are parts of words.

    Texts may have any length, unless the model has learned positions or a fixed input length. Such
    a model has a maximum length. It reads only the end of a long prompt, so that prompt and new
    words together fit. If a text to score is longer, a model with a fixed input length raises an
    error. With learned positions, the words beyond the maximum length get NaN.

    Shape letters: B rows of a batch, T words of the longest text (with end tokens), N words of the
    longest continuation, S the most senses that a word may have (`max_senses` of the output layer),
    K examples of the sense with the most examples.

    Args:
        model: A built `keras_drill.LanguageModel`.
        tokenizer: The `keras_drill.data.Tokenizer` of the training.
        vocabulary: The model's `keras_drill.data.Vocabulary`. `export_saved_model` passes an
            `AssetVocabulary` instead, which a SavedModel can contain.
        sampler: `Sampler` that chooses the new words, except in the method `sample`. Defaults to
            `GreedySampler()`.
        seed: Seed of the sampler, from 0 to 2**32 - 1. `continue_text` uses the same random numbers
            for all prompts, so a continuation does not depend on the other prompts of the batch.
        max_new_tokens: Largest number of words to add to a prompt.
        k: Number of words that `top_k` returns.
        forbidden_tokens: Ids of words that are never generated. Defaults to the unknown, start and
            pad tokens.
        stop_strings: Strings at which a continuation ends. Generation stops as soon as the text of
            the continuation contains one of them. The results `texts` and `continuations` end
            before this string, but `words`, `log_probs` and `lengths` include the word that
            completed it.
        contexts: A `SenseContexts` with examples of each sense, for models whose words have several
            senses (output embeddings). The method `sense_contexts` returns the examples. `None` for
            no examples.
        unit: Whether an end token follows each `"line"` or each `"paragraph"` of a text, as in
            training; see `TextCodec`.

    Example:

    >>> import keras, keras_drill
    >>> from keras_drill.data import Vocabulary, WhitespaceTokenizer
    >>> backbone = keras_drill.models.AWDLSTM(5, embedding_dim=4, units=6, num_layers=1)
    >>> head = keras_drill.OutputLayer(5, embedding=backbone.embedding)
    >>> model = keras_drill.LanguageModel(backbone, head)
    >>> _ = model(keras.ops.zeros((1, 1), dtype="int32"))
    >>> vocabulary = Vocabulary(["<unk>", "<eos>", "the", "cat", "sat"])
    >>> tokenizer = WhitespaceTokenizer()
    >>> text_model = keras_drill.export.TextModel(model, tokenizer, vocabulary, k=2)
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
        # Stored in a plain object, since tf.Module would track and export every variable of a
        # layer.
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
        """Continues prompts, with the sampler and the options of the constructor.

        Args:
            prompts: String tensor `[B]`.

        Returns:
            Dictionary of
            `texts` `[B]`: the detokenized prompt and continuation;
            `continuations` `[B]`: the detokenized continuation;
            `words` `[B, N]`: the new words, with the end token if it was generated;
            `log_probs` `[B, N]`: the log-probability of each new word by the model, before the
            sampler changes the probabilities;
            `lengths` `[B]`: numbers of new words, with the end token.
        """
        return self._continue_alike(prompts, tf.fill(tf.shape(prompts), self.max_new_tokens))

    @tf.function(input_signature=[_PROMPTS, _NUMBER, _NUMBER], autograph=False)
    def continue_samples(
        self, prompts: tf.Tensor, num_samples: tf.Tensor, first_row: tf.Tensor | int = 0
    ) -> dict[str, tf.Tensor]:
        """Draws several independent continuations of each prompt, with the constructor's sampler.

        The continuations are reproducible with the constructor's `seed`. A larger `num_samples`
        adds continuations and does not change the others. With `first_row=0`, the first
        continuation of the first prompt equals the continuation of this prompt by `continue_text`.
        A `GreedySampler` returns n equal continuations.

        Args:
            prompts: String tensor `[B]`.
            num_samples: Integer scalar, the number n of continuations of each prompt.
            first_row: Integer scalar. If you divide prompts into batches, pass the number of
                prompts in earlier batches: the continuations are then those of a single batch.

        Returns:
            The dictionary of `continue_text` with `B · n` rows: first all continuations of the
            first prompt, then those of the second prompt, and so on.
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
        """Continues prompts with different sampling settings for each prompt.

        The continuation of a prompt depends only on the prompt, its settings and its seed, not on
        the rest of the batch. The constructor's `sampler` and `seed` are not used. `temperature`,
        `top_k`, `top_p` and `min_p` are applied in this order.

        Args:
            prompts: String tensor `[B]`.
            max_new_tokens: int32 tensor `[B]`. Values above the constructor's `max_new_tokens` are
                reduced to this limit.
            temperature: float32 tensor `[B]`, which divides the logits: 1 for the model's
                distribution, 0 for the most probable word.
            top_k: int32 tensor `[B]`, as in `keras_drill.decoding.TopKSampler`; 0 to keep all
                words.
            top_p: float32 tensor `[B]`, as in `keras_drill.decoding.TopPSampler`; 1 to keep all
                words.
            min_p: float32 tensor `[B]`, as in `keras_drill.decoding.MinPSampler`; 0 to keep all
                words.
            seed: int64 tensor `[B]`; only the lower 32 bits are used.

        Returns:
            The dictionary of `continue_text`.
        """
        max_new_tokens = tf.clip_by_value(max_new_tokens, 0, self.max_new_tokens)
        sampler = RowwiseSampler(temperature, top_k, top_p, min_p)
        return self._continuation(prompts, max_new_tokens, sampler, seed)

    @tf.function(input_signature=[_TEXTS], autograph=False)
    def score(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Computes the log-probability of texts, word by word.

        As in training, every line of a text (with `unit="paragraph"`, every paragraph) ends in an
        end token, also the last one. End tokens have log-probabilities like other words. One line
        break at the end of a text is ignored.

        Args:
            texts: String tensor `[B]`.

        Returns:
            Dictionary of
            `words` `[B, T]`: the words and end tokens, with the unknown token for unknown words;
            `log_probs` `[B, T]`: log-probability of each word given the words before it;
            `lengths` `[B]`: numbers of words and end tokens;
            `total_log_probs` `[B]`: sums of `log_probs`;
            `perplexities` `[B]`: exp(-total_log_probs / lengths).
        """
        return score_words(self._step.head, *self._read(texts))

    @tf.function(input_signature=[_EXAMPLES], autograph=False)
    def examples(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        """Scores and continues the texts of serialized `tf.train.Example`s.

        An example has a feature `text`, which is scored, a feature `prompt`, which is continued, or
        both. Each feature is a single string.

        Args:
            examples: String tensor `[B]` of serialized examples. An example that cannot be parsed,
                or whose `text` or `prompt` is not a string, raises an error for the whole batch.

        Returns:
            The dictionary of `score` for `text`, with length and perplexity 0 for examples without
            `text`, and additionally
            `answers` `[B]`: the continuations of `prompt`, the result `continuations` of
            `continue_text`; `""` for examples without `prompt`;
            `problems` `[B]`: an error message for each example that has neither feature, or a
            feature with several strings, else `""`. The other results of such an example are `""`
            or 0.
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
        """Computes the probabilities of the senses of each word of a text.

        Only for models with the output layer `keras_drill.KernelizedBayesianSoftmax`, which has
        several output embeddings (senses) for a word. Texts are read as by `score`.

        Args:
            texts: String tensor `[B]`.

        Returns:
            Dictionary of
            `words` `[B, T]`: the words and end tokens, with the unknown token for unknown words;
            `senses` `[B, T, S]`: ids of all senses of each word, ascending and padded with -1;
            `probabilities` `[B, T, S]`: probability of each of these senses, given the word and the
            words before it. The probabilities of a word's senses sum to 1;
            `lengths` `[B]`: numbers of words and end tokens.
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
        """Returns examples of senses: places in a corpus where a word is used in this sense.

        The examples are those of the constructor's `contexts`, which must not be `None`.

        Args:
            senses: int32 tensor `[B]` of ids, as the method `senses` returns them. For other
                numbers, the results contain only padding.

        Returns:
            Dictionary of
            `before`, `after` `[B, K]`: text before and after the word in each example, the most
            probable example first;
            `probabilities` `[B, K]`: probability of the sense in each example, given the word and
            the words before it.
        """
        if self.contexts is None:
            raise ValueError(
                "`sense_contexts` needs a `TextModel` that was made with the argument `contexts`. "
                "Received: contexts=None"
            )
        return self.contexts(senses)

    @tf.function(input_signature=[_TEXTS], autograph=False)
    def top_k(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the most probable next words after each text: k words, the constructor's `k`.

        Texts are read as prompts, without an end token after the last line.

        Args:
            texts: String tensor `[B]`.

        Returns:
            Dictionary of
            `words` `[B, k]`: the words, the most probable first. They may be special tokens, also
            those of `forbidden_tokens`;
            `log_probs` `[B, k]`: their log-probabilities.
        """
        ids = self.vocabulary.ids(last_words(self.codec.words_of_prompts(texts), self._step, 0))
        last = tf.cast(ids.row_lengths(), tf.int32)  # [B], the start token comes before
        hidden = self._step.read_whole(self.codec.with_start(ids))  # [B, T, d]
        log_probs, best = self._step.head.top_k(tf.gather(hidden, last, batch_dims=1), self.k)
        return {"words": self.vocabulary.words(best), "log_probs": log_probs}

    @property
    def weights(self) -> list:
        """List of the variables that inference reads. Shared variables occur twice."""
        return self._step.variables

    def signatures(self) -> dict:
        """The functions (signatures) of the exported model, a dictionary by name.

        `continue` is the method `continue_text`. The signatures `sample`, `score`, `top_k`,
        `examples`, `senses` and `sense_contexts` are the methods of the same names.
        `serving_default`, for requests without the name of a signature, is `continue`. Its output
        depends only on the prompt and, with a sampler that draws random numbers, on the
        constructor's `seed`. Only models with several senses per word have `senses`, and only
        models with `contexts` have `sense_contexts`.
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
        """Whether words of the model have several senses (`keras_drill.KernelizedBayesianSoftmax`).

        If not, the method `senses` is not available.
        """
        return isinstance(self._step.head, KernelizedBayesianSoftmax)

    def _read(self, texts):
        """Reads texts. Returns hidden states `[B, T, d]`, ids and words `[B, T]`, lengths `[B]`."""
        ids = self.codec.ids_of_texts(texts)  # [B, (T)]
        words = self.vocabulary.words(ids).to_tensor("")
        hidden = self._step.read_whole(self.codec.with_start(ids[:, :-1]))
        return hidden, ids.to_tensor(0), words, tf.cast(ids.row_lengths(), tf.int32)

    def _continue_alike(self, prompts, max_new_tokens):
        seeds = tf.fill(tf.shape(prompts), self.seed)  # independent of the row in the batch
        return self._continuation(prompts, max_new_tokens, self.sampler, seeds)
