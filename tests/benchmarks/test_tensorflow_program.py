"""What TensorFlow compiles for a GPU has nothing in it that is slow or impossible there."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import keras
import pytest

from benchmarks.tensorflow_program import find_obstacles, large_products, make_step, traced

N, V, D = 4099, 2053, 131


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="programs of TensorFlow")
@pytest.mark.parametrize("kind, labels", [("softmax", V), ("kerbs", 3 * V)])
@pytest.mark.parametrize(
    "policy", ["mixed_bfloat16", pytest.param("float32", marks=pytest.mark.slow)]
)
def test_a_training_step_has_three_products_and_no_obstacles(kind, labels, policy):
    size = f"{N},{V},{D}"
    hlo = traced(make_step(kind, size, policy), size, policy)(stage="hlo")
    assert not find_obstacles(hlo)
    products = large_products(hlo, least=V * D)
    dtype = "bf16" if policy == "mixed_bfloat16" else "f32"
    # In one tile: scores over all labels, and the gradients of hidden states and labels.
    rows = 4224  # a multiple of 128
    expected = [(rows, labels), (rows, D), (labels, D)]
    assert sorted(products) == sorted(f"{dtype}[{a},{b}]" for a, b in expected)


def test_obstacles_are_found():
    hlo = """
      a = f64[3,5]{1,0} convert(b)
      c = (f32[3]{0}) custom-call(a), custom_call_target="__onednn$matmul"
      d = token[] outfeed(c)
    """
    assert find_obstacles(hlo) == ["f64[", 'custom_call_target="__onednn$matmul"', "outfeed"]


def test_thin_products_are_not_counted():
    hlo = """
      a = f32[30,50]{1,0} parameter(0)
      b = f32[50,20]{1,0} parameter(1)
      c = f32[50,1]{1,0} parameter(2)
      d = f32[30,20]{1,0} dot(a, b), lhs_contracting_dims={1}
      ROOT e = f32[30,1]{1,0} dot(a, c), lhs_contracting_dims={1}
    """
    assert large_products(hlo, 1000) == ["f32[30,20]"]


@pytest.mark.slow
@pytest.mark.skipif(
    not (find_spec("jax") and find_spec("tensorflow")), reason="needs TensorFlow and JAX"
)
def test_jax_runs_what_tensorflow_traced(tmp_path):
    def run(backend, *words):
        command = [sys.executable, "-m", "benchmarks.tensorflow_program", *map(str, words)]
        root = Path(__file__).parents[2]
        environment = {**os.environ, "KERAS_BACKEND": backend}
        return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)

    sizes = ["--small", "29,53,7", "--softmax", "31,59,11", "--kerbs", "31,59,11"]
    result = run("tensorflow", "trace", tmp_path, *sizes)
    assert result.returncode == 0, result.stderr
    figures = tmp_path / "figures.json"
    result = run("jax", "run", tmp_path, "--rounds", 1, "--json", figures)
    assert result.returncode == 0, result.stderr
    found = json.loads(figures.read_text())
    assert found["errors"]["softmax 29,53,7 float32"] < 1e-5
    assert 1e-5 < found["errors"]["kerbs 29,53,7 mixed_bfloat16"] < 2e-2
    for label in ("softmax 31,59,11 mixed_bfloat16", "kerbs 31,59,11 mixed_bfloat16"):
        assert all(found["figures"][label][name]["ms"] > 0 for name in ("TensorFlow", "JAX"))
    result = run("tensorflow", "run", tmp_path)
    assert result.returncode == 2 and "Received: tensorflow" in result.stderr
