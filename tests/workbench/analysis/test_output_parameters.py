import pathlib
import runpy
import sys

import keras
import numpy as np
import pytest

import keras_drill
from keras_drill.workbench.analysis.output_parameters import (
    CONFIGURATIONS,
    count_dedicated_parameters,
    count_output_parameters,
    output_parameter_table,
)


def test_counts_written_out():
    assert count_output_parameters(101, 7, 11, 5, 3) == {
        "softmax": 101 * 11 + 101,
        "tied": 101,
        "bilinear": 7 * 11 + 101,
        "dual nonlinear": (7 * 5 + 5) + (11 * 5 + 5) + 101,
        "DRILL": 3 * (7 * 7 + 7) + 101,
    }


@pytest.mark.parametrize("embedding_dim", [2, 7, 400])
@pytest.mark.parametrize("hidden_dim", [3, 11, 1150])
def test_inequality_holds_where_the_docstring_says(embedding_dim, hidden_dim):
    for joint_dim in (1, 5, min(embedding_dim, hidden_dim), 997):
        counts = count_output_parameters(10_007, embedding_dim, hidden_dim, joint_dim, 3)
        dual = joint_dim * (embedding_dim + hidden_dim + 2)
        assert counts["tied"] < counts["bilinear"]
        assert (counts["bilinear"] <= counts["dual nonlinear"]) == (
            dual >= embedding_dim * hidden_dim
        )
        assert (counts["dual nonlinear"] <= counts["softmax"]) == (dual <= 10_007 * hidden_dim)
    at_least_the_smaller = min(embedding_dim, hidden_dim)
    counts = count_output_parameters(10_007, embedding_dim, hidden_dim, at_least_the_smaller, 3)
    assert counts["bilinear"] <= counts["dual nonlinear"]


def test_documentation_holds_the_table_that_the_command_prints():
    page = pathlib.Path(__file__).parents[3] / "docs" / "explanation" / "output-layers.md"
    assert output_parameter_table(CONFIGURATIONS) in page.read_text(encoding="utf-8")


def test_command_prints_the_table_of_any_sizes(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["analysis", "101", "7", "7", "5", "3"])
    runpy.run_module("keras_drill.workbench.analysis", run_name="__main__")
    row = "| these sizes | 101 | 7 | 7 | 5 | 3 | 808 | 101 | 150 | 181 | 269 | yes |"
    assert row in capsys.readouterr().out


@pytest.mark.parametrize(
    "vocabulary_size, embedding_dim, hidden_dim, joint_dim, depth",
    [
        (101, 7, 11, 5, 3),
        (23, 13, 13, 17, 2),
    ],
)
def test_counts_are_those_of_the_layers(
    vocabulary_size, embedding_dim, hidden_dim, joint_dim, depth
):
    def dedicated(hidden_dim, shared=True, **options):
        embedding = keras.layers.Embedding(vocabulary_size, embedding_dim) if shared else None
        head = keras_drill.OutputLayer(vocabulary_size, embedding=embedding, **options)
        head(keras.ops.ones((1, hidden_dim)))
        of_embedding = [id(variable) for variable in embedding.variables] if shared else []
        return sum(
            int(np.prod(variable.shape))
            for variable in head.trainable_variables
            if id(variable) not in of_embedding
        )

    counted = {
        "softmax": dedicated(hidden_dim, shared=False),
        "tied": dedicated(embedding_dim),
        "bilinear": dedicated(hidden_dim, label_encoder=keras_drill.BilinearLabelEncoder()),
        "dual nonlinear": dedicated(
            hidden_dim, label_encoder=keras_drill.DualNonlinearLabelEncoder(units=joint_dim)
        ),
        "DRILL": dedicated(
            embedding_dim, label_encoder=keras_drill.ResidualLabelEncoder(depth=depth)
        ),
    }
    assert counted == count_output_parameters(
        vocabulary_size, embedding_dim, hidden_dim, joint_dim, depth
    )


def usage_senses(vocabulary_size, width):
    return keras_drill.SenseEmbedding(vocabulary_size, width, weighting="usage")


@pytest.mark.parametrize(
    "kind, make, expected",
    [
        (keras.layers.Embedding, lambda e: keras_drill.SoftmaxOutput(23), 23 * 13 + 23),
        (keras.layers.Embedding, lambda e: keras_drill.TiedOutput(23, e), 23),
        (
            keras.layers.Embedding,
            lambda e: keras_drill.DrillOutput(23, e, depth=2),
            2 * (13 * 13 + 13) + 23,
        ),
        # Three senses a word where a plain model has one, and θ of all of them.
        (usage_senses, lambda e: keras_drill.KernelizedBayesianSoftmax(23, e), 46 * 13 + 69),
        (
            usage_senses,
            lambda e: keras_drill.KernelizedBayesianSoftmax(
                23, e, label_encoder=keras_drill.BilinearLabelEncoder()
            ),
            46 * 13 + 69 + 13 * 13,
        ),
        (usage_senses, lambda e: keras_drill.KernelizedBayesianSoftmax(23), 69 * 13 + 69),
    ],
)
def test_dedicated_parameters_are_counted(kind, make, expected):
    embedding = kind(23, 13)
    backbone = keras.Sequential([embedding])
    head = make(embedding)
    head(backbone(np.ones((2, 3), "int32")))
    assert count_dedicated_parameters(head, backbone) == expected
