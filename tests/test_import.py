import os
import subprocess
import sys
from pathlib import Path

import pytest

import keras_drill

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_a_package_run_as_a_program_finds_the_layers_of_saved_models(tmp_path):
    """While Python looks for `mypackage.serve`, `sys.argv` is that of no program at all."""
    package = tmp_path / "mypackage"
    package.mkdir()
    (package / "__init__.py").write_text("import keras_drill\n")
    (package / "serve.py").write_text(
        "import keras\n"
        "for name in ('LanguageModel', 'OutputLayer', 'AWDLSTM', 'Perplexity'):\n"
        "    assert keras.saving.get_registered_object(f'keras_drill>{name}'), name\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "mypackage.serve"]
    subprocess.run(command, check=True, cwd=tmp_path, env=environment)


def test_editors_can_list_the_public_names():
    assert {"OutputLayer", "decoding"} <= set(keras_drill.__all__) <= set(dir(keras_drill))


@pytest.mark.slow
def test_modules_that_import_tensorflow_are_there_when_they_are_asked_for():
    program = (
        "import sys\n"
        "import keras_drill\n"
        "names = ('data', 'distribute', 'export')\n"
        "assert not any(f'keras_drill.{name}' in sys.modules for name in names)\n"
        "assert set(names) <= set(dir(keras_drill))\n"
        "assert keras_drill.data.ContiguousBatches\n"
        "assert keras_drill.distribute.strategy and keras_drill.export.Translator\n"
        "assert not hasattr(keras_drill, 'NoSuchLayer')\n"
        "assert not any(name.startswith('keras_drill.workbench') for name in sys.modules)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


@pytest.mark.slow
def test_the_command_finds_public_names_when_it_asks_for_them():
    program = (
        "import sys\n"
        "import keras_drill_command, keras_drill\n"
        "assert 'keras' not in sys.modules\n"
        "from keras_drill import TiedOutput, decoding\n"
        "assert issubclass(TiedOutput, keras_drill.OutputLayer)\n"
        "assert not hasattr(keras_drill, 'NoSuchLayer')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_imports_point_one_way():
    pytest.importorskip("importlinter")
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_the_drawing_of_the_architecture_is_that_of_the_imports():
    pytest.importorskip("grimp")
    command = [sys.executable, "-m", "docs.draw_architecture", "--check"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_help_begins_with_names_that_exist():
    text = keras_drill.__doc__ or ""
    names = [
        name
        for line in text.splitlines()
        if line.startswith("    ")
        for name in line[:29].replace(",", " ").split()
    ]
    assert len(names) >= 12
    assert all(hasattr(keras_drill, name) for name in names)
