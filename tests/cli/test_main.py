"""What is understood, and refused, before TensorFlow is imported."""

import subprocess
import sys

import pytest

from keras_drill.cli.main import main

WRONG = {
    "": "arguments are required: COMMAND",
    "trian": "invalid choice: 'trian'",
    "train": "arguments are required: --run",
    "train small-tied --data a --run b --colour red": "unrecognized arguments: --colour red",
    "train small-tide --data a --run b": "unknown recipe 'small-tide'; did you mean 'small-tied'?",
    "train none.toml --data a --run b": "none.toml: No such file or directory",
    "train --run b": "name a recipe",
    "train small-tied --run b": "say which text to train on: --data PATH",
    "train small-tied --data a --run b --head.dept 3": "did you mean 'head.depth'?",
    "train small-tied --data a --run b --head.depth x": "head.depth must be a whole number",
    "train small-tied --data a --run b --head.depth": "option --head.depth needs a value",
    "train small-tied --data a --run b --head.depth 2 --head.depth=3": "is given twice",
    "train small-tied --data a --run b --head.kind moss": "head.kind cannot be 'moss'",
    "train small-kerbs --data a --run b --senses.per_word 5": "senses.max_senses = 4, not 5.0",
    "train small-kerbs --data a --run b --senses.threshold 1": "senses.threshold must be at most 0",
    "train small-kerbs --data a --run b --head.num_senses 3": "unknown option --head.num_senses",
    "evaluate": "arguments are required: RUN",
    "evaluate a --head.depth 3": "is an option of `keras-drill train` only",
    "generate a b --temperature 0": "--temperature must be above 0, not 0.0",
    "generate a b --sampler beam": "invalid choice: 'beam'",
    "generate a b --p 2": "--p must be above 0 and at most 1, not 2.0",
    "generate a b --k 0": "--k must be at least 1",
    "generate a b --max-tokens 0": "--max-tokens must be at least 1",
    "export a --version x": "invalid int value: 'x'",
    "score a text --file b": "give texts or --file, not both",
    "score a text --total --senses": "give --senses or --total, not both",
    "recipes small-tide": "did you mean 'small-tied'?",
}


def status_of(words):
    try:
        return main(words)
    except SystemExit as stop:
        return stop.code


@pytest.mark.parametrize("line", WRONG)
def test_wrong_usage_gets_one_message(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert status_of(line.split()) == (1 if "No such file" in WRONG[line] else 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("keras-drill: error: ") and err.count("\n") == 1
    assert WRONG[line] in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    ["", "train", "evaluate", "generate", "score", "export", "recipes", "demo", "analyze"],
)
def test_help(command, capsys):
    assert status_of([*command.split(), "--help"]) == 0
    assert "usage: keras-drill" in capsys.readouterr().out


def test_recipes_are_listed_and_printed(capsys):
    assert main(["recipes"]) == 0
    assert "wikitext2-awd-lstm-drill" in capsys.readouterr().out
    assert main(["recipes", "small-drill"]) == 0
    assert '[head]\nkind = "drill"' in capsys.readouterr().out


def test_keras_is_not_imported_to_understand_the_arguments():
    program = (
        "import sys\n"
        "sys.argv = ['-m', 'recipes']\n"
        "from keras_drill.cli.main import main\n"
        "main(['recipes'])\n"
        "assert not {'keras', 'tensorflow', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
