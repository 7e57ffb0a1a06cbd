"""A language model that takes and gives text.

Shapes: B texts, T words of the longest one, N words of the longest continuation, k words asked
for, d hidden features, S most senses of a word.
"""

import numpy as np
import tensorflow as tf

from keras_drill.decoding import GreedySampler, LanguageModelStep, Sampler
from keras_drill.export.rowwise_sampler import RowwiseSampler
from keras_drill.ready_made import KernelizedBayesianSoftmax

_TILE_BYTES = 2**26
_TEXTS = tf.TensorSpec([None], tf.string)


class TextModel(tf.Module):
    """Text in, text out: a language model together with its tokenizer and its vocabulary.

    What `export_saved_model` writes, usable as it is in the exporting process. All methods take
    tensors with the batch first, return dictionaries of tensors with the batch first, and accept
    an empty batch, empty texts, unknown words and texts of any length. Results of different
    lengths are padded (with "" and 0) and come with their lengths.

    A text is read as the model was trained: the start token (or, without one, the end token)
    stands in front of it, and each line break is an end token.

    Args:
        model: A built `keras_drill.LanguageModel` with a recurrent backbone.
        tokenizer: A `keras_drill.data.Tokenizer`.
        vocabulary: A `keras_drill.data.Vocabulary`, or an `AssetVocabulary`.
        sampler: How `continue_text` chooses words. The default, `GreedySampler()`, gives one
            answer to one prompt, whatever else is in the batch.
        seed: Seed of that sampler: the same batch gets the same answer.
        max_new_tokens: Length of a continuation that does not end by itself.
        k: How many words `top_k` gives.
        forbidden_tokens: Ids never to generate. Defaults to the unknown, start and pad tokens.

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
        model,
        tokenizer,
        vocabulary,
        sampler: Sampler | None = None,
        seed: int = 0,
        max_new_tokens: int = 50,
        k: int = 10,
        forbidden_tokens=None,
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
        self.tokenizer = tokenizer
        self.vocabulary = vocabulary
        self.sampler = GreedySampler() if sampler is None else sampler
        self.seed = seed
        self.max_new_tokens = max_new_tokens
        self.k = k
        self._start_id = vocabulary.end_id if vocabulary.start_id is None else vocabulary.start_id
        if forbidden_tokens is None:
            special = {vocabulary.unknown_id, vocabulary.start_id, vocabulary.pad_id}
            forbidden_tokens = sorted(special - {None, vocabulary.end_id})
        self.forbidden_tokens = tuple(forbidden_tokens)

    @tf.function(input_signature=[_TEXTS], autograph=False)
    def continue_text(self, prompts):
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
        max_new_tokens = tf.fill(tf.shape(prompts), self.max_new_tokens)
        return self._continue(prompts, max_new_tokens, self.sampler, self.seed)

    @tf.function(
        input_signature=[
            _TEXTS,
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec([None], tf.float32),
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec([None], tf.float32),
            tf.TensorSpec([None], tf.int64),
        ],
        autograph=False,
    )
    def sample(self, prompts, max_new_tokens, temperature, top_k, top_p, seed):
        """Continues prompts with settings of their own, one value per prompt.

        The answer to a prompt depends on its own seed alone, not on the rest of the batch.

        Args:
            prompts: String tensor `[B]`.
            max_new_tokens: Integer tensor `[B]`, at most the model's `max_new_tokens`; a greater
                value means that.
            temperature: Float tensor `[B]`; 1 for the model's distribution, 0 for the most
                probable word.
            top_k: Integer tensor `[B]`; 0 to keep all words.
            top_p: Float tensor `[B]`; 1 to keep all words.
            seed: Integer tensor `[B]`; the 32 lower bits count.

        Returns:
            The dictionary of `continue_text`.
        """
        max_new_tokens = tf.clip_by_value(max_new_tokens, 0, self.max_new_tokens)
        sampler = RowwiseSampler(temperature, top_k, top_p)
        return self._continue(prompts, max_new_tokens, sampler, seed)

    @tf.function(input_signature=[_TEXTS], autograph=False)
    def score(self, texts):
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
        ids, words, lengths = self._whole_texts(texts)
        hidden = self._step.read(self._with_start(ids[:, :-1]))  # [B, T, d]
        log_probs = self._in_tiles(
            lambda hidden, ids: tf.gather(self._step.head(hidden), ids, batch_dims=1),
            hidden,
            ids.to_tensor(0),
        )  # [B, T]
        log_probs = tf.where(tf.sequence_mask(lengths), log_probs, 0.0)
        total_log_probs = tf.reduce_sum(log_probs, axis=-1)
        return {
            "words": words,
            "log_probs": log_probs,
            "lengths": lengths,
            "total_log_probs": total_log_probs,
            "perplexities": tf.exp(-total_log_probs / tf.cast(lengths, tf.float32)),
        }

    @tf.function(input_signature=[_TEXTS], autograph=False)
    def senses(self, texts):
        """Which senses the words of texts have, given the words before them.

        Only for models whose words have senses, with the output layer
        `keras_drill.KernelizedBayesianSoftmax`. Texts are read as by `score`.

        Args:
            texts: String tensor `[B]`.

        Returns:
            Dictionary of
            `words` `[B, T]`: the words as the model knows them, unknown ones replaced;
            `senses` `[B, T, S]`: ids of the senses of each word, ascending, the same wherever the
            word occurs; -1 where it has no more;
            `probabilities` `[B, T, S]`: of these senses, given the word and those before it; they
            add up to 1, and are 0 where there is no sense;
            `lengths` `[B]`: how many words.
        """
        ids, words, lengths = self._whole_texts(texts)
        hidden = self._step.read(self._with_start(ids[:, :-1]))  # [B, T, d]
        dense = ids.to_tensor(0)
        probabilities = self._in_tiles(self._step.head.sense_posteriors, hidden, dense)
        senses = tf.gather(self._step.head.allocation.senses_of_word, dense)  # [B, T, S]
        is_word = tf.sequence_mask(lengths)[..., None]
        return {
            "words": words,
            "senses": tf.where(is_word, senses, -1),
            "probabilities": tf.where(is_word, probabilities, 0.0),
            "lengths": lengths,
        }

    @tf.function(input_signature=[_TEXTS], autograph=False)
    def top_k(self, texts):
        """The most probable next words.

        Args:
            texts: String tensor `[B]`.

        Returns:
            Dictionary of
            `words` `[B, k]`: the words, special tokens among them, most probable first;
            `log_probs` `[B, k]`: their log-probabilities.
        """
        ids = self._prompt_ids(texts)
        last = tf.cast(ids.row_lengths(), tf.int32)  # [B], the start token comes before
        hidden = self._step.read(self._with_start(ids))  # [B, T, d]
        hidden = tf.gather(hidden, last, batch_dims=1)  # [B, d]
        log_probs, best = self._step.head.top_k(hidden, self.k)
        return {"words": self.vocabulary.words(best), "log_probs": log_probs}

    def signatures(self) -> dict:
        """The functions a server offers, by name.

        `serving_default`, what a request gets that names no signature, is `continue`: the one
        thing everybody expects of a language model, and with the greedy default a pure function
        of the prompt. Only models whose words have senses offer `senses`.
        """
        signatures = {
            "serving_default": self.continue_text,
            "continue": self.continue_text,
            "sample": self.sample,
            "score": self.score,
            "top_k": self.top_k,
        }
        if self.has_senses:
            signatures["senses"] = self.senses
        return signatures

    @property
    def has_senses(self) -> bool:
        """Whether words have senses that `senses` can tell."""
        return isinstance(self._step.head, KernelizedBayesianSoftmax)

    def example_inputs(self, signature: str, texts: list[str]) -> dict:
        """Inputs that a signature answers, by name, for warming up a server."""
        if signature in ("score", "senses", "top_k"):
            return {"texts": texts}
        if signature != "sample":
            return {"prompts": texts}
        count = len(texts)
        return {
            "prompts": texts,
            "max_new_tokens": np.full(count, self.max_new_tokens, "int32"),
            "temperature": np.ones(count, "float32"),
            "top_k": np.zeros(count, "int32"),
            "top_p": np.ones(count, "float32"),
            "seed": np.zeros(count, "int64"),
        }

    def _in_tiles(self, function, hidden, ids):
        """Applies a function to tokens, a tile of them at a time.

        `OutputLayer.log_prob` is tiled with `XlaDynamicUpdateSlice`, which TensorFlow Serving runs
        on a CPU only with `--xla_cpu_compilation_enabled` and not on a GPU.

        Args:
            function: From hidden states `[n, d]` and words `[n]` to float32 `[n, ...]`.
            hidden: `[B, T, d]`.
            ids: `[B, T]`.

        Returns:
            `[B, T, ...]`.
        """
        composition = self._step.head.composition
        scores = composition.num_labels(len(self.vocabulary)) * composition.num_contexts
        count = tf.size(ids)
        tile = tf.clip_by_value(count, 1, max(1, _TILE_BYTES // (4 * scores)))
        tiles = tf.maximum(1, -(-count // tile))  # an empty loop has no result of known shape

        def cut(x):
            x = tf.pad(x, [[0, tiles * tile - count]] + [[0, 0]] * (x.shape.rank - 1))
            return tf.reshape(x, tf.concat([[tiles, tile], tf.shape(x)[1:]], axis=0))

        results = tf.map_fn(
            lambda pair: function(*pair),
            (cut(tf.reshape(hidden, [-1, hidden.shape[-1]])), cut(tf.reshape(ids, [-1]))),
            fn_output_signature=tf.float32,
        )  # [tiles, tile, ...]
        flat = tf.reshape(results, [-1, *results.shape[2:]])[:count]
        return tf.reshape(flat, tf.concat([tf.shape(ids), results.shape[2:]], axis=0))

    def _whole_texts(self, texts):
        """Ids, ragged `[B, (T)]`, words `[B, T]` and lengths `[B]`, with all end tokens."""
        texts = tf.strings.regex_replace(texts, r"\n\z", "")
        ids = self.vocabulary.ids(self._words_of_lines(texts))
        words = self.vocabulary.words(ids).to_tensor("")
        return ids, words, tf.cast(ids.row_lengths(), tf.int32)

    def _continue(self, prompts, max_new_tokens, sampler, seed):
        prompt_words = self._words_of_lines(prompts)[:, :-1]  # [B, (T)]
        tokens = self._with_start(self.vocabulary.ids(prompt_words))  # [B, 1 + T]
        prompt_lengths = tf.cast(prompt_words.row_lengths(), tf.int32) + 1
        tokens = tf.pad(tokens, [[0, 0], [0, self.max_new_tokens]])  # [B, L]
        result = sampler(
            self._step,
            tokens,
            prompt_lengths,
            max_lengths=prompt_lengths + max_new_tokens,
            end_token=self.vocabulary.end_id,
            forbidden_tokens=self.forbidden_tokens,
            seed=seed,
        )
        columns = tf.range(tf.shape(tokens)[1])  # [L]
        is_new = (columns >= prompt_lengths[:, None]) & (columns < result.lengths[:, None])
        words = self.vocabulary.words(tf.ragged.boolean_mask(result.tokens, is_new))  # [B, (N)]
        log_probs = tf.ragged.boolean_mask(result.log_probs, is_new)
        readable = tf.ragged.boolean_mask(words, words != self.vocabulary.end_token)
        return {
            "texts": self._join(tf.concat([prompt_words, readable], axis=1)),
            "continuations": self._join(readable),
            "words": words.to_tensor(""),
            "log_probs": log_probs.to_tensor(0.0),
            "lengths": result.lengths - prompt_lengths,
        }

    def _words_of_lines(self, texts):
        """Words, with the end token after each line: strings, ragged `[B, (T)]`."""
        lines = tf.strings.split(texts, "\n")  # [B, (lines)]
        words = self.tokenizer.tokenize(lines.flat_values)  # [lines, (words)]
        ends = tf.fill([words.nrows(), 1], self.vocabulary.end_token)
        return lines.with_flat_values(tf.concat([words, ends], axis=1)).merge_dims(1, 2)

    def _prompt_ids(self, texts):
        return self.vocabulary.ids(self._words_of_lines(texts)[:, :-1])

    def _with_start(self, ids):
        """Puts the start token in front and pads: int32 `[B, 1 + T]`."""
        start = tf.fill([ids.nrows(), 1], self._start_id)
        # Dense, so that an empty batch too has a first column for the model to read.
        return tf.concat([start, ids.to_tensor(0)], axis=1)

    def _join(self, words):
        lines = tf.ragged.map_flat_values(
            lambda flat: tf.where(flat == self.vocabulary.end_token, "\n", flat), words
        )
        return tf.strings.regex_replace(self.tokenizer.detokenize(lines), " *\n *", "\n")
