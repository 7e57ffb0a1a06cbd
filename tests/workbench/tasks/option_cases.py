"""Each option of a configuration, values to give it, and where they are found in what is built."""

import dataclasses
from typing import Any

import keras
import numpy as np

from keras_drill.data import StreamedText
from keras_drill.workbench.training.build_optimizer import validation_factor
from tests.workbench.tasks.built import at, named, number, seed_of

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
    Case("senses.start", ["random", "copies"], at("head.senses_start"), KERBS, BOTH),
    Case("senses.usage", ["posterior", "probability"], at("head.usage_by"), KERBS, BOTH),
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
        "backbone.source_end_last",
        [False, True],
        at("backbone.source_end_last"),
        {"backbone.bidirectional": False, "backbone.reverse_source": True},
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
    Case(
        "backbone.shared_value",
        [False, True],
        at("backbone.attention.shared_value"),
        {"backbone.attention": "multi-head"},
    ),
    Case(
        "backbone.attention_layers",
        [1, 3],
        at("backbone.attention.score.num_layers"),
        {"backbone.attention": "additive"},
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
    Case("sampling.one_position", {False: 1.0, True: "one"}, at("model.loss_positions")),
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
