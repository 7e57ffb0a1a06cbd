"""`keras-drill translate` with a trained run, its options and its messages."""

import json
import shutil

import pytest
import tensorflow as tf

from keras_drill.decoding import (
    BannedWords,
    BeamSearch,
    MinLength,
    NoRepeatNGrams,
    RepetitionPenalty,
)
from keras_drill.export import Side, Translator
from keras_drill.workbench.cli.main import main
from keras_drill.workbench.tasks.answer import answer_all
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.run_folder import RunFolder

OPTIONS = {
    "num_beams": 4,
    "num_results": 3,
    "num_groups": 2,
    "diversity": 0.25,
    "min_length": 3,
    "repetition_penalty": 1.5,
    "no_repeat_ngram": 2,
}


def as_arguments(options):
    for name, value in options.items():
        for one in value if isinstance(value, tuple) else [value]:
            yield from (f"--{name.replace('_', '-')}", str(one))


@pytest.mark.slow
def test_options_of_the_search_are_those_of_the_command_line_and_of_exports(
    trained, loaded, tmp_path, capsys
):
    texts = ["der Hund sieht ein Vogel .", "", "ein alte Mann ruft der Hund ."]
    task = loaded.answering_task
    plain = task.translator(loaded.model, loaded.vocabulary, task.make_search())
    banned = next(one.texts[0].split()[0] for one in answer_all(plain, texts[:1]))
    options = {**OPTIONS, "banned_words": (banned, "the old", "Dampfschiff \u20ac")}
    # By hand: the search, and the constraints on ids.
    words = loaded.vocabulary.target
    *ids, unknown = words.vocabulary.ids(
        words.tokenizer.tokenize(options["banned_words"])
    ).to_list()
    assert words.vocabulary.unknown_id in unknown
    sides = [Side(side.tokenizer, side.vocabulary) for side in (loaded.vocabulary.source, words)]
    by_hand = Translator(
        loaded.model,
        *sides,
        BeamSearch(4, 1.0, num_results=3, num_groups=2, diversity=0.25),
        max_tokens=17,
        constraints=[
            MinLength(3),
            RepetitionPenalty(1.5),
            NoRepeatNGrams(2),
            BannedWords(ids),
        ],
    )
    expected = [one.texts for one in answer_all(by_hand, texts)]
    assert len(expected[0]) == 3
    assert not any(banned in text.split() for one in expected for text in one)

    assert main(["translate", str(trained.path), *texts, *as_arguments(options)]) == 0
    assert capsys.readouterr().out.splitlines() == [text for one in expected for text in one]

    command = ["export", str(trained.path), "--directory", str(tmp_path), *as_arguments(options)]
    assert main(command) == 0
    exported = tf.saved_model.load(str(tmp_path / "trained" / "1"))
    found = exported.signatures["translate"](tf.constant(texts))["texts"].numpy()
    assert [tuple(text.decode() for text in row) for row in found] == expected


@pytest.mark.slow
def test_options_of_a_run_are_those_of_its_search(trained, loaded):
    changes = {f"decoding.{name}": value for name, value in OPTIONS.items()}
    task = LoadedRun.load(trained, changes={**changes, "decoding.banned_words": ["ein"]}).task
    translator = task.translator(loaded.model, loaded.vocabulary, task.make_search())
    search = BeamSearch(4, 1.0, num_results=3, num_groups=2, diversity=0.25)
    assert translator.search.get_config() == search.get_config()
    assert [type(one) for one in translator.constraints] == [
        MinLength,
        RepetitionPenalty,
        NoRepeatNGrams,
        BannedWords,
    ]
    plain = loaded.answering_task
    assert plain.translator(loaded.model, loaded.vocabulary, plain.make_search()).constraints == ()


@pytest.mark.slow
def test_answers_come_with_their_scores(trained, capsys):
    command = ["translate", str(trained.path), "ein Vogel", "\t", "der Hund", "--n-best", "3"]
    assert main([*command, "--format", "json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert main([*command, "--format", "tsv"]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split("\t") == ["number", "rank", "score", "log_prob", "text", "is_truncated"]
    rows = [line.split("\t") for line in lines]
    places = [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (3, 2), (3, 3)]
    assert [(int(row[0]), int(row[1])) for row in rows] == places
    assert records[1]["answers"] == [
        {"text": "", "score": 0.0, "log_prob": 0.0, "is_truncated": False}
    ]
    assert [row[5] for row in rows] == [
        str(answer["is_truncated"]).lower() for record in records for answer in record["answers"]
    ]
    answers = [answer for record in records for answer in record["answers"]]
    assert [row[4] for row in rows] == [answer["text"] for answer in answers]
    assert [float(row[2]) for row in rows] == [answer["score"] for answer in answers]
    assert [float(row[3]) for row in rows] == [answer["log_prob"] for answer in answers]


@pytest.mark.slow
def test_more_beams_than_words_find_as_many_answers_as_there_are(trained, tmp_path, capsys):
    shutil.copytree(trained.path, tmp_path / "short")
    short = RunFolder(tmp_path / "short")
    short.write_config(trained.config().replace({"decoding.max_tokens": 1}))
    command = ["translate", str(short.path), "ein Vogel", "-n", "99"]
    assert main([*command, "--format", "json"]) == 0
    (record,) = map(json.loads, capsys.readouterr().out.splitlines())
    # Of one piece, or of the end alone; pieces that are the same text count once.
    pieces = LoadedRun.load(short).vocabulary.tokens[4:]
    expected = {piece.replace("▁", " ").strip() for piece in pieces} | {""}
    texts = [one["text"] for one in record["answers"]]
    assert len(texts) == len(expected) and set(texts) == expected
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines() == texts + [""] * (99 - len(texts))


@pytest.mark.slow
def test_answers_that_met_a_limit_are_marked(trained, capsys):
    command = ["translate", str(trained.path), "der Hund sieht ein Vogel .", "ein"]
    never = ["--max-ratio", "0.1", "--banned-words", "."]
    for limits, most in (
        (["--max-tokens", "3"], 3),
        (never, 11),
        ([*never, "--min-length", "14"], 15),
    ):
        assert main([*command, "--format", "json", *limits]) == 0
        out, err = capsys.readouterr()
        records = [json.loads(line) for line in out.splitlines()]
        marks = [record["answers"][0]["is_truncated"] for record in records]
        assert (
            f"{sum(marks)} of 2 outputs are incomplete: they reached decoding.max_tokens" in err
        ) == any(marks)
        assert not any(record["is_source_truncated"] for record in records)
        if most == 3:
            assert any(marks)


@pytest.mark.slow
def test_sources_prefixes_and_samples_of_the_command_line(trained, loaded, tmp_path, capsys):
    sources = ["der Hund sieht ein Vogel .", "", "ein Vogel ruft der Hund ."]
    (tmp_path / "sources").write_text("\n".join(sources) + "\n")
    (tmp_path / "prefixes").write_text("the old\n\nthe\n")
    translate = ["translate", str(trained.path)]

    def lines_of(*words):
        assert main([*translate, *map(str, words)]) == 0
        return capsys.readouterr().out.splitlines()

    from_file = ["--file", tmp_path / "sources"]
    assert lines_of(*from_file) == lines_of(*sources)
    begun = lines_of(*from_file, "--prefixes", tmp_path / "prefixes")
    assert begun[0].startswith("the old") and begun[1] == "" and begun[2].startswith("the")
    sample = [*from_file, "--sample", "-n", 3, "--seed", 5]
    drawn = lines_of(*sample)
    assert len(drawn) == 9 and drawn == lines_of(*sample) != lines_of(*sample[:-1], 6)
    assert len(set(lines_of("ein Vogel", "ein Vogel", "--sample"))) == 2
    best = lines_of(*sample[:3], "--sampler", "top-k", "--k", 1)
    assert best == lines_of(*from_file, "--num-beams", 1)
    assert main([*translate, *map(str, from_file), "--prefixes", str(tmp_path / "sources")]) == 0
    (tmp_path / "prefixes").write_text("the\n")
    assert main([*translate, *map(str, from_file), "--prefixes", str(tmp_path / "prefixes")]) == 1
    assert "sources, line 3" in capsys.readouterr().err


@pytest.mark.slow
def test_lines_are_never_dropped_merged_or_reordered(trained, tmp_path, capsys):
    strange = "der\u2028Hund \u0085 sieht"
    lines = ["ein Vogel", "", strange, "ein " * 999, "\t", "der alte Mann ruft"]
    content = "\r\n".join(lines).encode() + b"\n\xff\xfe\nHund\0\nein Hund"
    output = tmp_path / "answers"
    with pytest.MonkeyPatch.context() as patch, open(_file(tmp_path, content), "rb") as file:
        patch.setattr("sys.stdin", type("Stdin", (), {"buffer": file, "isatty": lambda s: False})())
        assert main(["translate", str(trained.path), "--output", str(output)]) == 1
    said = capsys.readouterr().err
    assert "line 7: byte 1, 0xff, is not UTF-8" in said and "line 8: byte 5 is NUL" in said
    assert said.count("1 of 9 sources are longer than data.max_length = 128 tokens") == 1
    answers = output.read_text().split("\n")
    assert len(answers) == 10 and answers[-1] == ""
    assert [bool(answer) for answer in answers[:9]] == [
        *(True, False, True, True, False, True),
        *(False, False, True),
    ]
    assert main(["translate", str(trained.path), lines[-1], "ein Vogel"]) == 0
    assert capsys.readouterr().out.splitlines() == [answers[5], answers[0]]


def _file(folder, content):
    (folder / "sources").write_bytes(content)
    return folder / "sources"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["generate", "the"], "use `keras-drill translate`"),
        (["score", "the"], "text 1: the text has no tab between source and target; this text is"),
        (["score", "--lines"], "--lines has no effect for"),
        (["score", "a\tb", "--sources", "x"], "give texts or --sources, not both"),
        (["score", "--sources", "/gone"], "--sources must be an existing file"),
        (["export", "--seed", "3"], "--seed has no effect for"),
        (["translate", "ein", "--num-groups", "3"], "decoding.num_groups must divide"),
        (["translate", "ein", "--min-length", "18"], "must be at most decoding.max_tokens = 17"),
        (
            ["translate", "ein", "--banned-words", " "],
            "banned_words must be a list of non-empty words",
        ),
        (["translate", "ein", "--min-length", "few"], "--min-length must be a whole number"),
        (
            ["translate", "ein", "--temperature", "2"],
            "--temperature has no effect without --sample",
        ),
        (["translate", "ein", "--sample", "--num-beams", "3"], "--num-beams has no effect with"),
        (
            ["translate", "ein", "--sample", "--sampler", "greedy", "-n", "2"],
            "greedy gives",
        ),
        (["translate", "ein", "--file", "x"], "give texts or --file, not both"),
        (["translate", "--file", "/gone"], "--file must be an existing file"),
        (["export", "--repetition-penalty", "0"], "--repetition-penalty must be greater than 0"),
        (["translate", "ein", "-n", "9", "--num-beams", "3"], "-n must be at most --num-beams = 3"),
    ],
)
def test_what_has_no_meaning_is_refused(trained, capsys, command, message):
    name, *words = command
    assert main([name, str(trained.path), *words]) != 0
    assert message in capsys.readouterr().err
