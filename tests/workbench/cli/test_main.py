"""What is understood, and refused, before TensorFlow is imported."""

import io
import re
import signal
import subprocess
import sys
import warnings

import pytest

from keras_drill.workbench.cli import recipes, streams
from keras_drill.workbench.cli.main import main, make_parser
from keras_drill.workbench.cli.messages import message_of
from keras_drill.workbench.cli.streams import import_tensorflow_alone, prepare_warnings
from keras_drill.workbench.tasks.load_config import recipe_names

WRONG = {
    "trian": "unknown command 'trian'; did you mean 'train'?",
    "train": "arguments are required: --run",
    "train small-tied --data a --run b --colour red": "unrecognized arguments: --colour red",
    "train small-tide --data a --run b": "unknown recipe 'small-tide'; did you mean 'small-tied'?",
    "train a/b.json --data a --run b": "lists all; the name of a recipe file must end in .toml",
    "train none.toml --data a --run b": "none.toml: No such file or directory",
    "train --run b": "give a recipe",
    "train small-tied --run b": "give the text to train on with --data PATH",
    "train small-tied --data a --run b --head.dept 3": "did you mean 'head.depth'?",
    "train small-tied --data a --run b --head.depth x": "head.depth must be a whole number",
    "train small-tied --data a --run b --head.depth": "option --head.depth needs a value",
    "train small-tied --data a --run b --head.depth 2 --head.depth=3": "is given twice",
    "train small-tied --data a --run b --head.kind moss": "head.kind cannot be 'moss'",
    "train small-kerbs --data a --run b --senses.per_word 5": "max_senses = 4. Received: 5.0",
    "train small-kerbs --data a --run b --senses.threshold 1": "senses.threshold must be at most 0",
    "train small-kerbs --data a --run b --head.num_senses 3": "unknown option --head.num_senses",
    "train small-tied --data a --run b --epochs 3": "--epochs 3; did you mean --training.epochs?",
    "train small-tied --data a --run b --epoch=3": "did you mean --training.epochs?",
    "train small-tied --data a --run b --learning-rate 3": "mean --optimizer.learning_rate?",
    "train small-tied --data a --run b --kind gru": "--backbone.kind or --head.kind or",
    "train small-tied --dat a --run b": "did you mean '--data'?",
    "evaluate": "arguments are required: RUN",
    "evaluate a --epochs 3": "; --training.epochs is an option of `keras-drill train` only; see",
    "score a --input-dropout 3": "--backbone.input_dropout is an option of `keras-drill train`",
    "evaluate a --head.depth 3": "is an option of `keras-drill train` only",
    "generate a b --temperature 0": "above 0; see keras-drill generate --help. Received: 0.0",
    "generate a b --sampler beam": "invalid choice: 'beam'",
    "generate a b --p 2": "--p must be above 0 and at most 1; see",
    "generate a b --k 0": "--k must be at least 1",
    "generate a b --max-tokens 0": "--max-tokens must be at least 1",
    "export a --version x": "must be a whole number; see keras-drill export --help. Received: 'x'",
    "score a text --file b": "give texts or --file, not both",
    "score a text --total --senses": "give --senses or --total, not both",
    "score --file a --lines": "arguments are required: RUN",
    "score a b --lines": "give texts or --lines, not both",
    "score a -foo": "words that begin with a dash go after --",
    "score a b --totl": "unrecognized arguments: --totl; did you mean '--total'?",
    "score a b --file": "--file needs a value",
    "generate a b --stop=": "--stop must be a non-empty string",
    "generate a b -n 2 --sampler greedy": "-n 2 needs a sampler with random choices",
    "generate a b -n 0": "-n/--num-samples must be at least 1; see",
    "generate a b --seed -1": "--seed must be at least 0; see",
    "generate a b --seed 4294967296": "--seed must be at most 4294967295",
    "generate a b --temperature nan": "--help. Received: nan",
    "generate a b --k 1.5": "--help. Received: '1.5'",
    "generate a b --k 99999999999": "--k must be at most 2147483647",
    "export a --name a\x7f": "--name must not contain control characters",
    "export a --directory=": "--directory must be a non-empty path",
    "export a --version 0": "--version must be at least 1; see",
    "senses a --nearest 0": "--nearest must be at least 1; see",
    "--colour": "see keras-drill --help",
    "recipes small-tide": "did you mean 'small-tied'?",
}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_usage_gets_one_message(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == (1 if "No such file" in WRONG[line] else 2)
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
    assert main([*command.split(), "--help"]) == 0
    assert "usage: keras-drill" in capsys.readouterr().out


def test_without_arguments_five_commands_to_begin_with_are_shown(capsys):
    assert main([]) == 0
    shown = re.findall(r"^  keras-drill ([a-z]+)", capsys.readouterr().out, re.M)
    assert shown == ["demo", "train", "evaluate", "generate", "export"]


def test_recipes_are_grouped_small_ones_first_and_each_stands_once(capsys):
    assert main(["recipes"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("start here:\n  small-tied")
    assert sorted(re.findall(r"^  (\S+)", out, re.M)) == recipe_names()
    assert out.count("\n" + " " * 8) == out.count("  settings: ") == len(recipe_names())
    assert re.search(r"wikitext2-awd-lstm-mos .*\n +settings: the authors'.*; not trained", out)
    assert out.index("small-gru-mos") < out.index("iwslt-seq2seq-tied")


def test_recipes_are_listed_and_printed(capsys):
    assert main(["recipes"]) == 0
    assert "wikitext2-awd-lstm-drill" in capsys.readouterr().out
    assert main(["recipes", "small-drill"]) == 0
    assert '[head]\nkind = "drill"' in capsys.readouterr().out


def test_a_file_does_not_say_where_to_write(tmp_path, capsys):
    (tmp_path / "a.toml").write_text(f'[data]\non_disk = "{tmp_path}/elsewhere"\n')
    words = ["train", str(tmp_path / "a.toml"), "--data", "none", "--run", str(tmp_path / "run")]
    assert main(words) == 2
    assert "give --data.on_disk FOLDER instead" in capsys.readouterr().err
    assert main([*words, "--data.on_disk", str(tmp_path / "cache")]) == 1  # there is no text
    assert "there is nothing there" in capsys.readouterr().err
    assert not (tmp_path / "elsewhere").exists()


def test_a_pipe_that_nobody_reads_ends_it_without_a_word():
    words = [sys.executable, "-m", "keras_drill_command", "recipes"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_closed_streams_are_no_traceback(tmp_path):
    (tmp_path / "config.toml").write_text("[head]\n")
    (tmp_path / "model.keras").touch()
    command = f"{sys.executable} -m keras_drill_command generate {tmp_path} <&-"
    result = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("keras-drill: error: give texts as arguments or in a file")
    result = subprocess.run(f"{command} >&- 2>&-", shell=True)
    assert result.returncode == 1


@pytest.mark.parametrize("becomes", [None, ValueError])
def test_interrupts_end_with_130_whatever_a_library_makes_of_them(becomes, monkeypatch, capsys):
    def interrupted(args):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as interrupt:
            raise (becomes("a mistake") if becomes else interrupt) from None

    monkeypatch.setattr(recipes, "run", interrupted)
    monkeypatch.setattr(sys, "argv", ["keras-drill", "recipes"])
    # As in a terminal; what runs in the background may have been started to ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main() == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == "\nkeras-drill: interrupted\n"


def test_warnings_are_messages_and_told_once(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        prepare_warnings("keras-drill")
        for text in ("`max_new_tokens` is large.\n Received: 7", "other", "other"):
            warnings.warn(text, UserWarning, stacklevel=1)
        assert capsys.readouterr().err.splitlines() == [
            "keras-drill: warning: --max-tokens is large: 7",
            "keras-drill: warning: other",
        ]


@pytest.mark.parametrize("is_terminal", [False, True])
def test_who_waits_at_a_terminal_is_told_what_for(is_terminal, monkeypatch):
    stream = io.StringIO()
    stream.isatty = lambda: is_terminal
    monkeypatch.setattr(sys, "stderr", stream)
    import_tensorflow_alone()
    assert stream.getvalue() == ""  # it is loaded already
    monkeypatch.delitem(sys.modules, "tensorflow")
    with streams._without_log():
        pass
    assert stream.getvalue() == ("loading TensorFlow\n" if is_terminal else "")


def test_a_mistake_of_the_program_is_one_message(monkeypatch, capsys):
    monkeypatch.setattr(recipes, "run", lambda args: {}["missing"])
    assert main(["recipes"]) == 1
    err = capsys.readouterr().err
    assert "internal error, KeyError: 'missing'" in err and err.count("\n") == 1
    assert main(["recipes", "--traceback"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line, texts",
    [
        ("RUN --seed 3 a b", ["a", "b"]),
        ("--seed 3 RUN a b", ["a", "b"]),
        ("RUN a --seed 3 b", ["a", "b"]),
        ("RUN --seed=3 - -5", ["-", "-5"]),
        ("RUN --seed 3 -- --seed -- -x", ["--seed", "--", "-x"]),
        ("--seed 3 -- RUN -x", ["-x"]),
        ("RUN --seed 3", []),
    ],
)
def test_options_stand_anywhere(line, texts):
    args = make_parser()[1]["generate"].parse_words(line.split())
    assert (args.folder, args.seed, args.prompts) == ("RUN", 3, texts)


@pytest.mark.parametrize(
    "error, message",
    [
        (FileNotFoundError(2, "No such file", "a.txt"), "a.txt: No such file"),
        (ValueError("`k` must be positive. Received: k=0"), "--k must be positive. Received: 0"),
        (
            ValueError("Lower `batch_size`. Received: batch_size=3"),
            "Lower --data.batch_size. Received: 3",
        ),
        (ValueError("It is empty. Received: path='a'"), "a: It is empty"),
        (MemoryError(), "out of memory"),
        (ZeroDivisionError(), None),
    ],
)
def test_messages_speak_the_command_lines_language(error, message):
    said = message_of(error)
    assert said is None if message is None else said.startswith(message)


def test_keras_is_not_imported_to_understand_the_arguments():
    program = (
        "import sys\n"
        "sys.argv = ['keras-drill', 'recipes']\n"
        "from keras_drill_command import main\n"
        "main()\n"
        "assert not {'keras', 'tensorflow', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
