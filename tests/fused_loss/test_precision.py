"""Errors of each dtype policy against float64, on the present device."""

import json

import keras
import pytest

if keras.backend.backend() != "jax":
    pytest.skip("precisions of JAX", allow_module_level=True)

from benchmarks import precision
from benchmarks.precision import above_bounds, measure


def test_errors_of_each_policy_are_within_bounds(capsys):
    errors = measure()
    assert len(errors) == 4
    assert not above_bounds(errors), errors
    # A policy that computed in float32 would have the errors of float32.
    for policy in ("mixed_bfloat16", "mixed_float16"):
        assert errors[f"{policy}, default"]["d_labels"] > 1e-5


def test_an_error_above_its_bound_is_found():
    errors = {"float32, highest": {"loss": 0.0, "d_hidden": 1.1e-5, "d_labels": float("nan")}}
    assert list(above_bounds(errors)) == ["float32, highest"]


def test_the_table_is_written_to_a_file(tmp_path, monkeypatch):
    errors = {"loss": 1.23e-7, "d_hidden": 2e-6, "d_labels": 3e-6}
    monkeypatch.setattr(precision, "measure", lambda: {"float32, highest": errors})
    precision.main(["--json", str(tmp_path / "errors.json")])
    table = json.loads((tmp_path / "errors.json").read_text())["tables"]["errors"]
    assert table["columns"] == precision.COLUMNS
    assert table["rows"][0][1:] == ["float32", "highest", "1.2e-07", "2.0e-06", "3.0e-06"]
