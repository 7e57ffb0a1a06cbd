"""Two random layers of a recipe's model never have one seed."""

import dataclasses

import numpy as np
import pytest

from keras_drill.workbench.tasks.language_model.build_model import build_model
from keras_drill.workbench.tasks.load_config import load_config, recipe_names
from keras_drill.workbench.tasks.sequence_to_sequence import build_model as sequence_to_sequence
from tests.conformance.test_seeds import random_states, shared

V, D = 13, 6
SMALL = {
    "backbone.embedding_dim": D,
    "backbone.units": 5,
    "backbone.num_layers": 2,
    "backbone.num_heads": 2,
    "backbone.feed_forward_dim": 7,
    "backbone.attention_dropout": 0.1,
    "backbone.activation_dropout": 0.1,
    "backbone.output_dim": 0,
    "head.context_dim": 0,
    "head.units": 0,
    "head.encode_hidden": True,
    "sampling.rate": 0.2,
    "sampling.loss_positions": 0.5,
}


@dataclasses.dataclass
class Vocabulary:
    pad_id: int = 0

    def __len__(self):
        return V


@dataclasses.dataclass
class Side:
    vocabulary: Vocabulary


@dataclasses.dataclass
class RunVocabulary:
    source: Side
    target: Side
    tokens: list
    descriptions: np.ndarray


def built(config):
    descriptions = np.ones((V, 3), "float32")
    if config.task == "language-model":
        return build_model(config, V, 2, descriptions)
    side = Side(Vocabulary())
    return sequence_to_sequence.build_model(
        config, RunVocabulary(side, side, [""] * V, descriptions)
    )


def small_recipes():
    """Each recipe's options, small; of recipes that are alike then, one."""
    configs = {}
    for name in recipe_names():
        config = load_config(name)
        changes = {}
        for option, value in SMALL.items():
            section, key = option.split(".")
            if hasattr(getattr(config, section, None), key):
                changes[option] = value
        config = config.replace(changes)
        kinds = (config.task, config.backbone.kind, config.head.kind, config.training.seed)
        configs.setdefault(kinds, pytest.param(config, id=name))
    return list(configs.values())


@pytest.mark.parametrize("config", small_recipes())
def test_random_layers_of_a_recipe_have_seeds_of_their_own(config):
    model = built(config)
    assert len(random_states(model)) > 3
    assert not shared(model)


@pytest.mark.parametrize("recipe", ["small-softmax", "small-translation-softmax"])
def test_labels_of_their_own_do_not_begin_as_the_embeddings(recipe):
    config = load_config(recipe)
    small = {"backbone.embedding_dim": D, "backbone.units": D, "backbone.num_layers": 1}
    model = built(config.replace(small))
    labels, embeddings = (
        np.asarray(table) for table in (model.head.embeddings, model.backbone.embedding.embeddings)
    )
    assert labels.shape == embeddings.shape == (V, D)
    assert abs(np.corrcoef(labels.ravel(), embeddings.ravel())[0, 1]) < 0.5
