"""Scheduled sampling: training on the model's own predictions instead of the target."""

from typing import Any

import keras
from keras import ops

from keras_drill.decoding.random_streams import draw
from keras_drill.ops.seed_generator import SeedGenerator
from keras_drill.types import Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class ScheduledSampling(keras.layers.Layer):
    """Scheduled sampling: replaces some input words of a decoder by the model's own predictions.

    Pass this layer to `keras_drill.SequenceToSequence`. During training, each word of the decoder's
    input (the target) after the first is replaced with probability `rate`. The replacement is a
    sample from the model's probabilities, or the most probable word. The words to predict (the
    labels of `fit`) do not change, and no gradient passes through the choice of words. Without
    scheduled sampling, a model is trained only on correct prefixes, and sees its own mistakes for
    the first time when it generates text.

    A training step runs the decoder twice. The second run, through which gradients pass, reads the
    words that the first run chose. In the first run, a `RecurrentEncoderDecoder` chooses the words
    one after the other: each prediction depends on the words chosen before (Bengio et al.). Other
    backbones run as a whole twice: the first run reads the target without dropout, and all words
    are chosen from its predictions (Mihaylova & Martins). Padding, the `pad_id` of the backbone, is
    neither replaced nor chosen. Evaluation always reads the target.

    Args:
        rate: Probability in [0, 1], or a function from the number of training steps so far to a
            probability, such as `keras_drill.optimizers.InverseSigmoidSchedule` or any
            `LearningRateSchedule` of Keras with values in [0, 1].
        argmax: Whether the replacement is the most probable word instead of a sample.
        seed: Integer seed for the choice of positions and words, or `None` for a random seed.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Attributes:
        step: Variable with the number of training steps so far. Checkpoints contain the variable,
            so that the rate resumes exactly.

    Example:

    >>> schedule = keras_drill.optimizers.InverseSigmoidSchedule(1000)
    >>> sampling = keras_drill.ScheduledSampling(schedule, seed=1)
    >>> backbone = keras_drill.models.RecurrentEncoderDecoder(31, 6, units=7)
    >>> head = keras_drill.TiedOutput(31, backbone.embedding)
    >>> model = keras_drill.SequenceToSequence(backbone, head, scheduled_sampling=sampling)

    References:
        - [Bengio et al., 2015](https://arxiv.org/abs/1506.03099)
        - [Mihaylova & Martins, 2019](https://arxiv.org/abs/1906.07651) (Transformers)
    """

    def __init__(self, rate: Any, argmax: bool = False, seed: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        if not callable(rate) and not (isinstance(rate, int | float) and 0 <= rate <= 1):
            raise ValueError(
                "`rate` must be a number in [0, 1], or a function of the training step. "
                f"Received: rate={rate!r}"
            )
        self.rate = rate
        self.argmax = argmax
        self.seed = seed
        self.seed_generator = SeedGenerator(seed)
        # Not the optimizer's iterations, which would be a constant in JAX's compiled step.
        self.step = self.add_weight(
            name="step",
            shape=(),
            dtype="int32",
            initializer="zeros",
            trainable=False,
            autocast=False,
            aggregation="only_first_replica",
        )
        self.built = True

    def begin(self, model: keras.Model, target: Tensor) -> "OwnWords":
        """Counts a training step and draws the positions at which the target is replaced.

        `SequenceToSequence` calls this method in every training step, and reads the result.

        Args:
            model: The `SequenceToSequence` that is trained.
            target: `[B, T]` integers, the target words of B pairs.

        Returns:
            An internal object, by which `SequenceToSequence` replaces the words of `target` at
            these positions by predictions of `model`.
        """
        rate = self.rate(ops.add(self.step, 0)) if callable(self.rate) else self.rate
        self.step.assign_add(1)
        shape = ops.shape(target)
        replaced = keras.random.uniform(shape, seed=self.seed_generator) < rate
        replaced = ops.logical_and(replaced, ops.arange(shape[1]) > 0)
        pad_id = getattr(model.backbone, "pad_id", None)
        if pad_id is not None:
            replaced = ops.logical_and(replaced, ops.not_equal(target, pad_id))
        uniforms = keras.random.uniform(shape, seed=self.seed_generator)
        return OwnWords(model, replaced, None if self.argmax else uniforms, pad_id)

    def get_config(self) -> dict:
        rate = self.rate
        return {
            **super().get_config(),
            "rate": keras.saving.serialize_keras_object(rate) if callable(rate) else rate,
            "argmax": self.argmax,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict) -> "ScheduledSampling":
        config = dict(config)
        if isinstance(config["rate"], dict):
            config["rate"] = keras.saving.deserialize_keras_object(config["rate"])
        return cls(**config)


class OwnWords:
    """Replaces words of the target by the model's own predictions, for one training step.

    Args:
        model: A model with `backbone` and `head`.
        replaced: Bool `[B, T]`, positions at which the target is replaced.
        uniforms: `[B, T]` random numbers in [0, 1) for sampling; `None` for the most probable
            words.
        pad_id: The word that is never chosen, or `None`.
    """

    def __init__(self, model: keras.Model, replaced: Tensor, uniforms: Any, pad_id: int | None):
        self.model = model
        self.replaced = replaced
        self.uniforms = uniforms
        self.pad_id = pad_id

    def sample_sequentially(self, target: Tensor, read: Any, cache: Any) -> Any:
        """Chooses the input words `[B, T]` one after the other, each after reading those before it.

        Args:
            target: `[B, T]` integers.
            read: Function from words `[B]` and a cache to hidden states `[B, d]` and the next
                cache.
            cache: Cache before the first word.
        """
        with self._without_derivatives():
            labels = self.model.head.encoded_labels()

            def step(t, state):
                words, cache = state
                hidden, cache = read(ops.take(words, t - 1, axis=1), cache)
                column = self._choose(ops.take(words, t, axis=1), hidden, labels, t)
                return ops.slice_update(words, (0, t), column[:, None]), cache

            return ops.fori_loop(1, ops.shape(target)[1], step, (target, cache))[0]

    def sample_in_parallel(self, inputs: dict) -> Any:
        """Chooses the input words `[B, T]` in parallel, from the model's predictions for the
        target.
        """
        target = inputs["target"]
        with self._without_derivatives():
            labels = self.model.head.encoded_labels()
            hidden = self.model.backbone(inputs, training=False)

            # One position at a time, so that the scores of all positions are never in memory.
            def step(t, words):
                column = ops.take(target, t, axis=1)
                column = self._choose(column, ops.take(hidden, t - 1, axis=1), labels, t)
                return ops.slice_update(words, (0, t), column[:, None])

            return ops.fori_loop(1, ops.shape(target)[1], step, target)

    def _choose(self, words, hidden, labels, t):
        """Chooses the words `[B]` at position t, from the target or the model's predictions."""
        log_probs = self.model.head.log_probs(hidden, labels)  # [B, V]
        if self.uniforms is None:
            own = ops.argmax(log_probs, axis=-1)
        else:
            own = draw(ops.exp(log_probs), ops.take(self.uniforms, t, axis=1))
        own = ops.cast(own, words.dtype)
        replaced = ops.take(self.replaced, t, axis=1)
        if self.pad_id is not None:
            replaced = ops.logical_and(replaced, own != self.pad_id)
        return ops.where(replaced, own, words)

    def _without_derivatives(self):
        """Context manager without gradients, added losses, and changes of layer state."""
        variables = self.model.variables
        return keras.StatelessScope(
            [(v, ops.stop_gradient(ops.convert_to_tensor(v))) for v in variables]
        )
