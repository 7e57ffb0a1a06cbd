"""The replay itself: it passes right cases of every setting, and fails wrong ones."""

import os
from pathlib import Path

import numpy as np
import pytest

from tests.reference.replay import main

V, D, N = 23, 7, 5
FOLDER = os.environ.get("KERAS_DRILL_REFERENCE")
REFERENCE = sorted(Path(FOLDER).glob("*.npz")) if FOLDER else []
ACTIVATIONS = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
}


def drill_case(depth, activation, residual_to_previous, residual_to_input, dual) -> dict:
    """A case computed in NumPy, whose gradients for hidden and bias follow from the formulas."""
    rng = np.random.default_rng(depth)
    case = {
        "depth": np.array([depth]),
        "activation": np.array(activation),
        "residual_to_previous": np.array(residual_to_previous),
        "residual_to_input": np.array(residual_to_input),
        "dual": np.array(dual),
        "embeddings": rng.normal(size=(V, D)),
        "hidden": rng.normal(size=(N, D)),
        "bias": rng.normal(size=V),
        "targets": rng.integers(0, V, N),
    }

    def encode(x, side):
        output = x
        for i in range(depth):
            kernel = case[f"{side}_kernel_{i}"] = rng.normal(size=(D, D)) / 3
            bias = case[f"{side}_bias_{i}"] = rng.normal(size=D)
            previous = output
            output = ACTIVATIONS[activation](previous @ kernel + bias)
            output = output + (previous if residual_to_previous and i else 0)
            output = output + (x if residual_to_input else 0)
        return output

    case["encoded_labels"] = encode(case["embeddings"], "label")
    case["encoded_hidden"] = encode(case["hidden"], "hidden") if dual else case["hidden"]
    logits = case["logits"] = case["encoded_hidden"] @ case["encoded_labels"].T + case["bias"]
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    case["loss"] = np.array(-log_probs[np.arange(N), case["targets"]].mean())
    derivative = (np.exp(log_probs) - np.eye(V)[case["targets"]]) / N
    case["grad_bias"] = derivative.sum(0)
    if not dual:
        case["grad_hidden"] = derivative @ case["encoded_labels"]
    return case


SETTINGS = [
    (1, "sigmoid", False, True, False),
    (3, "tanh", True, True, False),
    (2, "relu", True, False, False),
    (2, "tanh", False, True, True),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_right_cases_pass(setting, tmp_path):
    np.savez(tmp_path / "drill_a.npz", **drill_case(*setting))
    assert main([str(tmp_path / "drill_a.npz")]) == 0


@pytest.mark.parametrize("result", ["encoded_labels", "logits", "loss", "grad_bias", "grad_hidden"])
def test_a_wrong_result_fails(result, tmp_path, capsys):
    case = drill_case(*SETTINGS[0])
    case[result] = case[result] * (1 + 1e-4)
    np.savez(tmp_path / "drill_a.npz", **case)
    assert main([str(tmp_path / "drill_a.npz")]) == 1
    assert "ABOVE" in capsys.readouterr().out


def test_what_cannot_be_replayed_is_said(tmp_path, capsys):
    np.savez(tmp_path / "other_0.npz", x=np.zeros(3))
    assert main([str(tmp_path / "other_0.npz")]) == 2
    assert main([str(tmp_path / "absent.npz")]) == 2
    assert "replay: error:" in capsys.readouterr().err


def test_files_of_other_kinds_may_be_left_out(tmp_path, capsys):
    np.savez(tmp_path / "drill_a.npz", **drill_case(*SETTINGS[0]))
    np.savez(tmp_path / "other_0.npz", x=np.zeros(3))
    assert main(["--skip-unknown", *map(str, sorted(tmp_path.iterdir()))]) == 0
    out = capsys.readouterr().out
    assert "other_0.npz" in out and out.endswith("1 passed, 0 failed, 1 skipped\n")


@pytest.mark.parametrize("file", REFERENCE, ids=lambda file: file.name)
def test_cases_of_the_original_implementations(file):
    assert main(["--skip-unknown", str(file)]) == 0
