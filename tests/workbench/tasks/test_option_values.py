"""Every option of every configuration has the value, in what is built, that the configuration says.

Each is given two values at least, in a configuration in which it counts; the objects that are built
of it must have them. So an option that is ignored, or that a constructor contradicts, is noticed.
"""

import dataclasses
import functools
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest

import keras_drill
from keras_drill.data import StreamedText
from keras_drill.workbench.tasks.free_seeds import free_seeds
from keras_drill.workbench.tasks.load_config import CONFIGS, config_class
from keras_drill.workbench.tasks.make_sampler import make_sampler
from keras_drill.workbench.tasks.make_task import make_task
from keras_drill.workbench.training.build_optimizer import build_optimizer, validation_factor
from keras_drill.workbench.training.build_sense_reallocation import build_sense_reallocation
from keras_drill.workbench.training.training import Training
from tests.workbench.training.tiny import TINY as TINY_TEXT
from tests.workbench.training.tiny_pairs import TINY as TINY_PAIRS

# What is not in the objects that are built, and the test that sees its effect.
ELSEWHERE = {
    "data.path": "tests/workbench/training/test_training.py::test_a_run_is_evaluated_and_reported",
    "data.source": "tests/workbench/tasks/test_text_options.py::"
    "test_pairs_of_tensorflow_datasets_are_read",
    "data.target": "tests/workbench/tasks/test_text_options.py::"
    "test_pairs_of_tensorflow_datasets_are_read",
    "data.tokenizer_model": "tests/workbench/tasks/test_text_options.py::"
    "test_an_existing_tokenizer_is_taken",
    "data.source_tokenizer_model": "tests/workbench/tasks/test_text_options.py::"
    "test_an_existing_tokenizer_is_taken",
    "data.user_defined_symbols": "tests/workbench/tasks/test_text_options.py::"
    "test_text_is_preprocessed_and_words_are_the_same_after_saving",
    "data.character_coverage": "tests/workbench/tasks/test_text_options.py::"
    "test_rare_characters_are_left_out_by_coverage",
    "head.descriptions": "tests/workbench/training/test_described_words.py::"
    "test_a_run_begun_anew_with_other_options_describes_words_anew",
    "training.epochs": "tests/workbench/training/test_training.py::"
    "test_early_stop_and_more_patience",
    "training.strategy": "tests/distribute/test_train_command.py::"
    "test_what_is_written_and_said_is_that_of_one_device",
    "training.precision": "tests/workbench/training/test_described_words.py::"
    "test_described_words_in_half_precision",
    "training.deterministic": "tests/workbench/training/test_kill.py::"
    "test_interrupted_and_killed_runs_end_with_the_same_bits",
    "training.checkpoint_every": "tests/workbench/training/test_trained_runs.py::"
    "test_a_chosen_checkpoint",
    "training.keep_checkpoints": "tests/workbench/training/test_checkpoints.py::"
    "test_the_last_two_are_kept",
    "training.average_checkpoints": "tests/workbench/training/test_trained_runs.py::"
    "test_the_mean_of_checkpoints_is_evaluated_where_it_is_better",
    "training.start_from": "tests/workbench/training/test_trained_runs.py::"
    "test_weights_of_another_run",
    "training.tensorboard": "tests/workbench/training/test_training.py::"
    "test_a_run_is_evaluated_and_reported",
    "samples.prompts": "tests/workbench/training/test_training.py::"
    "test_a_run_is_evaluated_and_reported",
    "decoding.validation_sentences": "tests/workbench/tasks/sequence_to_sequence/test_scoring.py::"
    "test_training_and_evaluation_score_alike",
    "decoding.attention_maps": "tests/workbench/training/test_translation_runs.py::"
    "test_a_run_is_evaluated_and_reported",
}


class Built:
    """What a configuration becomes, each part when it is asked for."""

    def __init__(self, config: Any, folder: Any):
        self.config, self.folder, self.task = config, folder, make_task(config)

    @functools.cached_property
    def words(self):
        config = self.config
        if config.head.kind == "described":  # the descriptions are not there
            config = config.replace({"head.kind": "tied"})
        return make_task(config).make_vocabulary(self.folder / "none")

    @property
    def tokenizer(self):
        return getattr(self.words, "target", self.words).tokenizer

    def cut(self, text):
        return [word.decode() for word in self.tokenizer.tokenize(text).numpy()]

    @functools.cached_property
    def texts(self):
        return self.task.read_texts(self.words)

    @property
    def batches(self):
        return self.task.training_batches(self.words, self.texts["train"])

    @property
    def evaluation(self):
        return self.task.evaluation_batches(self.words, self.texts["valid"])

    @functools.cached_property
    def model(self):
        """The parts of the model, without variables."""

        def parts(backbone, head, **others):
            return SimpleNamespace(backbone=backbone, head=head, **others)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(keras_drill, "LanguageModel", parts)
            patch.setattr(keras_drill, "SequenceToSequence", parts)
            if self.config.head.kind == "described":
                words = dataclasses.replace(
                    self.words, descriptions=np.zeros((len(self.words.tokens), 3), "float32")
                )
                return self.task.build_model(words)
            return self.task.build_model(self.words)

    @property
    def backbone(self):
        return self.model.backbone

    @property
    def head(self):
        return self.model.head

    @property
    def encoder(self):
        return self.head.label_encoder

    @property
    def composition(self):
        return self.head.composition

    @property
    def sampling(self):
        return self.model.scheduled_sampling

    @property
    def optimizer(self):
        return build_optimizer(self.config, self.batches)

    @property
    def rate(self):
        return self.optimizer._learning_rate

    @property
    def compiled(self):
        """What the model is compiled with, beside the optimizer."""
        told = SimpleNamespace()
        training = SimpleNamespace(
            config=self.config,
            _batches=self.batches,
            _gradient_norm=SimpleNamespace(mean=keras.metrics.Mean()),
        )
        model = SimpleNamespace(compile=lambda optimizer, **others: vars(told).update(others))
        Training._compile(training, model)
        return told

    @property
    def reallocation(self):
        return build_sense_reallocation(self.config, None, None)

    @property
    def search(self):
        return self.task.make_search()

    @property
    def limits(self):
        return self.task._limits(self.words)

    @property
    def constraint(self):
        (found,) = self.limits["constraints"]
        return found

    @property
    def sampler(self):
        options = self.config.samples
        return make_sampler(
            options.sampler, options.temperature, options.k, options.p, options.min_p
        )


def at(path: str):
    """The attribute at a path such as `"head.label_encoder.depth"` of what is built."""
    return lambda built: functools.reduce(getattr, path.split("."), built)


def number(path: str):
    """The same as a number: of a Keras variable, for example."""
    return lambda built: 0.0 if at(path)(built) is None else float(at(path)(built))


def named(path: str):
    """The name of the class, or of the function, at a path."""

    def name(built):
        found = at(path)(built)
        return getattr(found, "__name__", type(found).__name__)

    return name


def seed_of(path: str):
    """The seed of the run, where the one at a path is the first that its backbone leaves free."""

    def see(built):
        seed, found = built.config.training.seed, at(path)(built)
        return seed if found == next(free_seeds(seed, built.backbone)) else found

    return see


KERBS = {"head.kind": "kerbs", "senses.weighting": "usage"}
DRILL = {"head.kind": "drill"}
MOS = {"head.kind": "mos"}
DESCRIBED = {"head.kind": "described", "head.descriptions": "x"}
ADAM = {"optimizer.kind": "adam"}
UNSCALED = {"optimizer.scale_with_length": False}
WARM = {**UNSCALED, "optimizer.warmup_steps": 3, "optimizer.schedule": "cosine"}
TRANSFORMER = {"backbone.kind": "transformer"}
LINEAR = {"sampling.schedule": "linear", "sampling.rate": 0.3}
TEXT = ("language-model",)
PAIRS = ("translation", "dialog", "autoencoder")
FIRST_PAIRS = ("translation",)
BOTH = ("language-model", "translation")


@dataclasses.dataclass
class Case:
    """An option, what else must be for it to count, and where its value is found.

    Args:
        name: The option.
        values: Values to give it, or for each the value that is expected where that is another.
        see: Tells the value of what is built.
        context: Other options.
        tasks: Those whose option it is.
    """

    name: str
    values: Any
    see: Any
    context: dict = dataclasses.field(default_factory=dict)
    tasks: tuple = TEXT  # what all tasks share is looked at in one


HEAD = [
    Case(
        "head.kind",
        {
            "softmax": "IdentityLabelEncoder",
            "bilinear": "BilinearLabelEncoder",
            "dual": "DualNonlinearLabelEncoder",
            "drill": "ResidualLabelEncoder",
        },
        named("encoder"),
    ),
    Case("head.tied", [True, False], lambda b: b.head.embedding is not None, MOS),
    Case("head.depth", [2, 3], at("encoder.depth"), DRILL),
    Case("head.units", {0: 14, 5: 5}, at("encoder.units"), {"head.kind": "dual"}),
    Case("head.activation", ["relu", "tanh"], named("encoder.activation"), DRILL),
    Case("head.activation", ["relu", "tanh"], named("encoder.activation"), {"head.kind": "dual"}),
    Case("head.dropout", [0.0, 0.3], at("encoder.dropout"), DRILL),
    Case(
        "head.dropout",
        [0.0, 0.3],
        lambda b: b.encoder.network.layers[0].rate,
        DESCRIBED,
    ),
    Case("head.variational_dropout", [False, True], at("encoder.variational_dropout"), DRILL),
    Case("head.residual_to_input", [True, False], at("encoder.residual_to_input"), DRILL),
    Case("head.residual_to_input", [True, False], at("encoder.residual_to_input"), DESCRIBED),
    Case("head.residual_to_previous", [False, True], at("encoder.residual_to_previous"), DRILL),
    Case("head.encode_hidden", [False, True], at("encoder.dual"), DRILL),
    *(
        Case(
            "head.learning_rate_multiplier",
            [1.0, 0.3],
            at("encoder.learning_rate_multiplier"),
            {"head.kind": kind},
        )
        for kind in ("bilinear", "dual", "drill")
    ),
    Case("head.embedding_dropout", [0.0, 0.3], at("encoder.embedding_dropout"), DESCRIBED),
    Case("head.num_mixtures", [2, 5], at("composition.num_mixtures"), MOS),
    Case(
        "head.context_dim",
        {0: 14, 5: 5},
        at("composition.context_dim"),
        {**MOS, "head.tied": False},
    ),
    Case("head.context_dropout", [0.0, 0.3], at("composition.context_dropout"), MOS),
    Case("head.use_bias", [True, False], at("head.use_bias")),
    Case("head.use_bias", [True, False], at("head.use_bias"), KERBS),
    Case("head.logit_soft_cap", {0.0: None, 7.0: 7.0}, at("head.logit_soft_cap")),
    Case("head.z_loss", [0.0, 0.3], at("head.z_loss")),
    Case("head.label_smoothing", [0.0, 0.3], at("model.label_smoothing"), tasks=BOTH),
    Case("head.tile_size", {0: None, 37: 37}, at("head.tile_size")),
    Case(
        "senses.per_word",
        [2.0, 3.0],
        lambda b: b.head.num_senses / b.head.vocabulary_size,
        KERBS,
    ),
    Case("senses.min_senses", [1, 2], at("head.min_senses"), KERBS),
    Case("senses.max_senses", [3, 5], at("head.max_senses"), KERBS),
    Case("senses.variant", ["paper", "reference", "inner_product"], at("head.variant"), KERBS),
    Case(
        "senses.weighting", ["posterior", "usage"], at("backbone.embedding.weighting"), KERBS, BOTH
    ),
    Case("senses.dynamic", [True, False], at("head.dynamic_allocation"), KERBS),
    Case(
        "senses.policy",
        {
            "threshold": "ThresholdPolicy",
            "ranking": "RankingPolicy",
            "idle": "IdleSensePolicy",
        },
        named("reallocation.policy"),
        KERBS,
    ),
    Case(
        "senses.threshold",
        [-7.0, -3.0],
        at("reallocation.policy.threshold"),
        {**KERBS, "senses.policy": "threshold"},
    ),
    Case("senses.ratio", [0.005, 0.3], at("reallocation.policy.ratio"), KERBS),
    Case(
        "senses.idle_share",
        [0.1, 0.3],
        at("reallocation.policy.idle_share"),
        {**KERBS, "senses.policy": "idle"},
    ),
    Case("senses.interval", [100, 7], at("reallocation.interval"), KERBS),
    Case("senses.momentum", [0.1, 0.3], at("reallocation.momentum"), KERBS),
    Case("senses.moved_embedding", ["keep", "near"], at("reallocation.moved_embedding"), KERBS),
]
OPTIMIZER = [
    Case("optimizer.kind", {"sgd": "SGD", "adam": "Adam"}, named("optimizer")),
    Case("optimizer.learning_rate", [0.5, 0.3], number("optimizer.learning_rate"), UNSCALED),
    Case("optimizer.beta_2", [0.999, 0.7], at("optimizer.beta_2"), ADAM),
    Case(
        "optimizer.accumulate_steps",
        {1: None, 3: 3},
        at("optimizer.gradient_accumulation_steps"),
    ),
    Case("optimizer.schedule", ["inverse-sqrt", "cosine", "linear"], at("rate.decay"), WARM),
    Case("optimizer.warmup_steps", [2, 5], at("rate.warmup_steps"), WARM),
    Case("optimizer.decay_steps", [7, 11], at("rate.decay_steps"), WARM),
    Case("optimizer.final_share", [0.0, 0.3], at("rate.final_share"), WARM),
    Case(
        "optimizer.validation_decay",
        [1.0, 0.3],
        lambda b: validation_factor(b.config, [2.0, 3.0]),
    ),
    Case(
        "optimizer.validation_patience",
        [1, 2],
        lambda b: [validation_factor(b.config, [2.0, 3.0, 3.0][:n]) for n in (2, 3)].index(0.5) + 1,
        {"optimizer.validation_decay": 0.5},
    ),
    Case("optimizer.weight_decay", [0.0, 0.3], number("optimizer.weight_decay")),
    Case("optimizer.clip_norm", [0.0, 0.3], number("optimizer.global_clipnorm")),
    Case("training.jit_compile", [False, True], at("compiled.jit_compile")),
    Case("training.patience", [2, 3], at("config.patience")),
    Case("training.seed", [0, 5], at("batches.seed"), tasks=BOTH),
    Case("training.seed", [0, 5], at("backbone.seed"), tasks=BOTH),
    Case("training.seed", [0, 5], seed_of("encoder.seed"), DRILL),
    Case("training.seed", [0, 5], seed_of("composition.seed"), MOS),
    Case("training.seed", [0, 5], at("reallocation.seed"), KERBS),
]
LANGUAGE_MODEL = [
    Case(
        "optimizer.kind",
        {"sgd": 1, "nt-asgd": 8},
        lambda b: b.config.patience,
        {"training.patience": 1, "optimizer.nonmonotone_interval": 6},
    ),
    Case(
        "optimizer.nonmonotone_interval",
        {5: 7, 6: 8},
        lambda b: b.config.patience,
        {"training.patience": 1, "optimizer.kind": "nt-asgd"},
    ),
    Case(
        "optimizer.scale_with_length",
        {True: "SequenceLengthSchedule", False: "float"},
        lambda b: "float" if isinstance(b.rate, keras.Variable) else type(b.rate).__name__,
    ),
    Case(
        "data.tokenizer",
        {"words": ["the", "(", "cat", ")"], "whitespace": ["The", "(CAT)"]},
        lambda b: b.cut("The (CAT)"),
    ),
    Case(
        "data.lowercase",
        {
            "auto": ["the", "cat"],
            "true": ["the", "cat"],
            "false": ["The", "CAT"],
            True: ["the", "cat"],
        },
        lambda b: b.cut("The CAT"),
        {"data.tokenizer": "words"},
    ),
    Case(
        "data.lowercase",
        {"auto": ["The", "CAT"], "true": ["the", "cat"], "false": ["The", "CAT"]},
        lambda b: b.cut("The CAT"),
        {"data.tokenizer": "whitespace"},
    ),
    Case("data.vocabulary", {"": False, "words.txt": True}, lambda b: "zebra" in b.words.tokens),
    Case(
        "data.unit",
        {"line": 28, "paragraph": 1},
        lambda b: len(list(b.task.read_columns(b.config.data.path)["train"]["text"])),
    ),
    Case("data.max_vocabulary", [5, 7], lambda b: len(b.words.tokens)),
    Case("data.min_count", {1: True, 2: False}, lambda b: "once" in b.words.tokens),
    Case(
        "data.on_disk",
        {"": False, "disk": True},
        lambda b: isinstance(b.texts["train"], StreamedText),
    ),
    *(
        Case(f"data.{name}", values, at(f"{batches}.{name}"))
        for name, values in (("batch_size", [3, 5]), ("sequence_length", [7, 11]))
        for batches in ("batches", "evaluation")
    ),
    Case("data.batch_size", [3, 5], at("backbone.batch_size")),
    Case("data.variable_length", [True, False], at("batches.variable_length")),
    Case("backbone.kind", {"awd-lstm": "AWDLSTM", "gru": "GRULanguageBackbone"}, named("backbone")),
    *(
        Case(f"backbone.{name}", values, at(f"backbone.{name}"), {"backbone.kind": kind})
        for kind in ("awd-lstm", "gru")
        for name, values in (
            ("embedding_dim", [7, 14]),
            ("units", [5, 11]),
            ("num_layers", [1, 2]),
            ("dropout", [0.4, 0.3]),
            ("hidden_dropout", [0.25, 0.3]),
            ("input_dropout", [0.65, 0.3]),
            ("embedding_dropout", [0.1, 0.3]),
        )
    ),
    Case(
        "backbone.output_dim",
        {0: None, 5: 5},
        at("backbone.output_dim"),
        {"head.kind": "softmax"},
    ),
    *(
        Case(f"backbone.{name}", [0.5, 0.3], at(f"backbone.{name}"))
        for name in (
            "weight_dropout",
            "activation_regularization",
            "temporal_activation_regularization",
        )
    ),
    Case(
        "samples.sampler",
        {
            "greedy": "GreedySampler",
            "temperature": "TemperatureSampler",
            "top-k": "TopKSampler",
            "top-p": "TopPSampler",
            "min-p": "MinPSampler",
        },
        named("sampler"),
    ),
    *(
        Case("samples.temperature", [0.8, 0.3], at("sampler.temperature"), {"samples.sampler": one})
        for one in ("temperature", "top-k", "top-p", "min-p")
    ),
    Case("samples.k", [40, 7], at("sampler.k"), {"samples.sampler": "top-k"}),
    Case("samples.p", [0.9, 0.3], at("sampler.p"), {"samples.sampler": "top-p"}),
    Case("samples.min_p", [0.1, 0.3], at("sampler.p"), {"samples.sampler": "min-p"}),
    Case("samples.max_tokens", [40, 7], lambda b: b.sampled["max_tokens"]),
    Case("samples.seed", [0, 7], lambda b: b.sampled["seed"]),
]
SEQUENCE_TO_SEQUENCE = [
    Case(
        "data.tokenizer",
        {
            "words": "WordTokenizer",
            "whitespace": "WhitespaceTokenizer",
            "wordpiece": "WordPieceTokenizer",
            "bpe": "SentencePieceTokenizer",
            "unigram": "SentencePieceTokenizer",
        },
        named("tokenizer"),
        tasks=PAIRS,
    ),
    *(
        Case(
            "data.lowercase",
            {False: "CAT", True: "cat"},
            lambda b: b.tokenizer.detokenize(b.tokenizer.tokenize("CAT")).numpy().decode(),
            {"data.tokenizer": tokenizer},
            PAIRS,
        )
        for tokenizer in ("words", "whitespace", "wordpiece", "bpe", "unigram")
    ),
    *(
        Case(
            "data.unicode_normalization",
            {"none": "ﬁé", "NFC": "ﬁé", "NFD": "ﬁe\u0301", "NFKC": "fié", "NFKD": "fie\u0301"},
            lambda b: b.tokenizer.detokenize(b.tokenizer.tokenize("ﬁé")).numpy().decode(),
            {"data.tokenizer": tokenizer},
            FIRST_PAIRS,
        )
        for tokenizer in ("words", "whitespace")
    ),
    Case(
        "data.moses",
        {"": ["don't"], "en": ["don", "'t"]},
        lambda b: b.cut("don't"),
        {"data.tokenizer": "whitespace"},
        PAIRS,
    ),
    Case("data.vocabulary_size", [7, 11], lambda b: len(b.words.tokens), tasks=PAIRS),
    Case(
        "data.shared_vocabulary",
        [True, False],
        lambda b: b.words.source.vocabulary is b.words.target.vocabulary,
        tasks=("translation", "dialog"),
    ),
    Case("data.shared_vocabulary", [True], lambda b: b.words.source is b.words.target, tasks=PAIRS),
    Case("data.batch_tokens", [128, 64], at("batches.batch_tokens"), tasks=PAIRS),
    Case("data.batch_tokens", [128, 64], at("evaluation.batch_tokens"), tasks=PAIRS),
    Case("data.max_length", [128, 7], at("batches.max_length"), tasks=PAIRS),
    Case("data.max_length", [128, 7], lambda b: b.limits["max_source_tokens"], tasks=PAIRS),
    Case("data.long_pairs", ["drop", "cut", "end"], at("batches.long_pairs"), tasks=PAIRS),
    Case(
        "data.max_length_ratio", {0.0: None, 7.0: 7.0}, at("batches.max_length_ratio"), tasks=PAIRS
    ),
    Case("decoding.max_ratio", {0.0: None, 7.0: 7.0}, lambda b: b.limits["max_ratio"], tasks=PAIRS),
    Case(
        "decoding.max_source_tokens",
        {0: 128, 7: 7},
        lambda b: b.limits["max_source_tokens"],
        tasks=PAIRS,
    ),
    Case(
        "decoding.replace_unknown",
        [True, False],
        lambda b: b.limits["replace_unknown"],
        tasks=("translation", "dialog"),
    ),
    Case(
        "data.turn_end",
        {"__eou__": ["Hi .", "Fine .", "a | b c |"], "|": ["b c"]},
        lambda b: [line.decode() for line in b.texts["valid"].lines.target],
        tasks=("dialog",),
    ),
    Case(
        "data.context_turns",
        {1: "Fine .", 2: "Hi . __eou__ Fine ."},
        lambda b: [line.decode() for line in b.texts["valid"].lines.source][-1],
        tasks=("dialog",),
    ),
    Case(
        "data.drop_repeated",
        {True: 14, False: 20},
        lambda b: len(list(b.texts["train"].lines.target)),
        tasks=("dialog",),
    ),
    Case(
        "backbone.kind",
        {"recurrent": "RecurrentEncoderDecoder", "transformer": "Transformer"},
        named("backbone"),
    ),
    *(
        Case(f"backbone.{name}", values, at(f"backbone.{name}"), {"backbone.kind": kind})
        for kind in ("recurrent", "transformer")
        for name, values in (
            ("embedding_dim", [6, 14]),
            ("num_layers", [1, 2]),
            ("dropout", [0.2, 0.3]),
        )
    ),
    Case("backbone.cell", ["lstm", "gru"], at("backbone.cell")),
    Case("backbone.units", [5, 11], at("backbone.units")),
    Case("backbone.bidirectional", [True, False], at("backbone.bidirectional")),
    Case(
        "backbone.reverse_source",
        [False, True],
        at("backbone.reverse_source"),
        {"backbone.bidirectional": False},
    ),
    Case(
        "backbone.attention",
        {"general": "GeneralScore", "additive": "AdditiveScore", "dot": "DotScore"},
        named("backbone.attention.score"),
    ),
    Case(
        "backbone.attention",
        {"none": "NoneType", "multi-head": "MultiHeadSourceAttention"},
        named("backbone.attention"),
    ),
    Case("backbone.input_feeding", [False, True], at("backbone.input_feeding")),
    Case("backbone.num_heads", [2, 7], at("backbone.num_heads"), TRANSFORMER),
    Case(
        "backbone.num_heads",
        [2, 7],
        at("backbone.attention.num_heads"),
        {"backbone.attention": "multi-head"},
    ),
    *(
        Case(f"backbone.{name}", values, at(f"backbone.{name}"), TRANSFORMER)
        for name, values in (
            ("feed_forward_dim", [13, 5]),
            ("norm_first", [True, False]),
            ("attention_dropout", [0.0, 0.3]),
            ("activation_dropout", [0.0, 0.3]),
        )
    ),
    Case("sampling.rate", [0.3, 0.7], at("sampling.rate")),
    Case("sampling.rate", [0.3, 0.7], at("sampling.rate.final_rate"), LINEAR),
    Case(
        "sampling.schedule",
        {
            "constant": "float",
            "linear": "LinearSchedule",
            "exponential": "ExponentialSchedule",
            "inverse-sigmoid": "InverseSigmoidSchedule",
        },
        named("sampling.rate"),
        LINEAR,
    ),
    Case("sampling.steps", [7, 11], at("sampling.rate.steps"), LINEAR),
    Case("sampling.argmax", [False, True], at("sampling.argmax"), LINEAR),
    Case("sampling.loss_positions", [1.0, 0.3], at("model.loss_positions")),
    *(
        Case(f"decoding.{name}", values, at(f"search.{name}"), {"decoding.num_beams": 6})
        for name, values in (
            ("num_beams", [6, 5]),
            ("length_penalty", [1.0, 0.3]),
            ("coverage_penalty", [0.0, 0.3]),
            ("num_results", [1, 3]),
            ("num_groups", [1, 3]),
            ("diversity", [0.5, 0.3]),
        )
    ),
    Case("decoding.max_tokens", [17, 7], lambda b: b.limits["max_tokens"]),
    Case("decoding.min_length", [3, 5], at("constraint.length")),
    Case("decoding.repetition_penalty", [1.3, 0.7], at("constraint.penalty")),
    Case("decoding.no_repeat_ngram", [3, 5], at("constraint.n")),
    Case(
        "decoding.banned_words",
        {("the",): ["the"], ("a", "dog"): ["a", "dog"]},
        lambda b: [b.words.tokens[row[0]] for row in b.constraint.words],
    ),
    Case(
        "decoding.best_by",
        {"perplexity": np.log(7.0), "bleu": -2.0, "chrf": -3.0},
        lambda b: b.task.validation_loss({"val_perplexity": 7.0, "val_bleu": 2, "val_chrf": 3}),
        {"decoding.validation_sentences": 3},
    ),
    Case(
        "decoding.tokenize",
        {"auto": "13a", "char": "char", "none": "none"},
        lambda b: b.task.scoring["tokenize"],
        tasks=PAIRS,
    ),
    Case(
        "decoding.score_lowercase",
        {"auto": False, "true": True, True: True, "false": False},
        lambda b: b.task.scoring["lowercase"],
        tasks=PAIRS,
    ),
    Case(
        "decoding.score_lowercase",
        {"auto": True, "true": True, "false": False},
        lambda b: b.task.scoring["lowercase"],
        {"data.lowercase": True},
        PAIRS,
    ),
]
for case in SEQUENCE_TO_SEQUENCE:
    case.tasks = FIRST_PAIRS if case.tasks == TEXT else case.tasks
SHARED = ("head", "senses", "optimizer", "training")
CASES = [*HEAD, *OPTIMIZER, *LANGUAGE_MODEL, *SEQUENCE_TO_SEQUENCE]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A small text for each task."""
    found = {}
    lines = ["The cat sees a dog .", "A dog hears the CAT .", "the dog and a cat ﬁé"] * 9
    for task in ("language-model", "translation", "dialog", "autoencoder"):
        found[task] = folder = tmp_path_factory.mktemp(task)
        (folder / "words.txt").write_text("<unk>\n<eos>\nthe\nzebra\n")
        for split in ("train", "valid", "test"):
            text = "\n".join([*lines, "once"]) + "\n"
            if task == "dialog":
                known = "Hello . __eou__ Hi . __eou__ Fine . __eou__ a | b c |\n"
                others = "".join(
                    f"{split} {n} __eou__ CAT cat __eou__ the dog __eou__\n" for n in range(7)
                )
                others += f"{split} | other turns |\n"
                text = known * 2 + others if split == "train" else known
            if task == "translation":
                (folder / f"{split}.de").write_text(text)
                (folder / f"{split}.en").write_text(text)
            else:
                (folder / f"{split}.txt").write_text(text)
    return found


def config_of(case, task, value, folder):
    tiny = TINY_TEXT if task == "language-model" else {**TINY_PAIRS, "data.tokenizer": "words"}
    tiny = {**tiny, "backbone.embedding_dim": 14, "optimizer.kind": "sgd"}
    options = config_class(task).options()
    defaults = {"optimizer.scale_with_length": task == "language-model"}
    changes = {**tiny, **defaults, "data.path": str(folder), **case.context, case.name: value}
    if value and case.name in ("data.vocabulary", "data.on_disk"):
        changes[case.name] = str(folder / value)
    return config_class(task)().replace(
        {name: change for name, change in changes.items() if name in options}
    )


PARAMETERS = [(case, task) for case in CASES for task in case.tasks]


@pytest.mark.parametrize(
    ("case", "task"), PARAMETERS, ids=[f"{case.name}-{task}" for case, task in PARAMETERS]
)
def test_what_the_configuration_says_is_what_is_built(case, task, folders, monkeypatch):
    expected = case.values if isinstance(case.values, dict) else {one: one for one in case.values}
    for value, told in expected.items():
        value = list(value) if isinstance(value, tuple) else value
        built = Built(config_of(case, task, value, folders[task]), folders[task])
        if case.name in ("samples.max_tokens", "samples.seed"):
            built.sampled = _sampled(built, monkeypatch)
        seen = case.see(built)
        assert seen == (pytest.approx(told) if isinstance(told, float) else told), (value, seen)


def _sampled(built, monkeypatch):
    """The arguments of the module that writes the samples of a report."""
    from keras_drill.workbench.tasks.language_model import task as module

    told = {}

    def text_model(model, words, sampler, seed, max_tokens):
        told.update(seed=seed, max_tokens=max_tokens)

    monkeypatch.setattr(built.task, "text_model", text_model)
    monkeypatch.setattr(module, "write_samples", lambda *_: ())
    built.task.config = built.config.replace({"samples.prompts": ["the"]})
    built.task.evaluate(None, built.words, {})
    return told


def test_every_option_is_looked_at(request):
    for one in CONFIGS:
        seen = {case.name for case in CASES if one.task in case.tasks}
        if one.task in PAIRS:  # which share all sections but that of the data
            seen |= {case.name for case in CASES if "translation" in case.tasks}
        seen |= {case.name for case in CASES if case.name.split(".")[0] in SHARED}
        missing = set(one.options()) - seen - set(ELSEWHERE)
        assert not missing, one.task
    root = request.config.rootpath
    for test in ELSEWHERE.values():
        file, _, name = test.partition("::")
        assert f"def {name}(" in (root / file).read_text(encoding="utf-8"), test
