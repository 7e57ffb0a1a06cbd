"""Errors of each dtype policy against float64, on the present device."""

import json

import keras
import pytest

if keras.backend.backend() != "jax":
    pytest.skip("precisions of JAX", allow_module_level=True)

from benchmarks.precision import BEGIN, END, above_bounds, main, measure


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


def test_the_table_is_written_to_a_page(tmp_path, capsys):
    file, page = tmp_path / "errors.json", tmp_path / "page.md"
    errors = {"loss": 1.23e-7, "d_hidden": 2e-3, "d_labels": 3e-3}
    file.write_text(json.dumps({"device": "a card", "errors": {"float32, highest": errors}}))
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    main(["--table", str(file), "--page", str(page)])
    text = page.read_text()
    assert "| a card | float32 | highest | 1.2e-07 | 2.0e-03 | 3.0e-03 |" in text
    assert text.startswith("before\n") and text.endswith(f"{END}\nafter\n") and "old" not in text
    page.write_text("no markers")
    with pytest.raises(SystemExit, match="--page must have the lines"):
        main(["--table", str(file), "--page", str(page)])
