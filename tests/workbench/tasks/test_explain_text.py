"""What is told of the text of a run when its training begins."""

import numpy as np
import pytest

from keras_drill.data import Vocabulary, WordTokenizer
from keras_drill.workbench.tasks.language_model.config import DataConfig, LanguageModelConfig
from keras_drill.workbench.tasks.language_model.evaluation import beginnings
from keras_drill.workbench.tasks.language_model.explain_text import explain_text as explain_language
from keras_drill.workbench.tasks.language_model.run_vocabulary import LanguageModelVocabulary
from keras_drill.workbench.tasks.make_task import make_task
from keras_drill.workbench.tasks.sequence_to_sequence.explain_text import warn_of_cut_text
from keras_drill.workbench.tasks.sequence_to_sequence.pairs_config import PairsConfig
from tests.data.test_paragraphs import wrapped
from tests.workbench.tasks.test_tasks import config_of

VOCABULARY = Vocabulary(["<unk>", "<eos>", "der", "hund", "sieht", "eine", "katze"])
WORDS = LanguageModelVocabulary(WordTokenizer(), VOCABULARY)
# Lines of 4, 2, 0 and 5 words, the last word of which is unknown.
IDS = np.array([2, 3, 4, 5, 1, 2, 3, 1, 1, 2, 6, 4, 5, 0, 1])


def test_each_part_comes_with_its_option(capsys):
    told = explain_language(DataConfig(), WORDS, IDS, [b"Der Hund sieht."] * 31)
    assert told == (
        "text: lower-cased (data.lowercase); Unicode NFKC (data.tokenizer); 9.1 % of the "
        "validation words are unknown (data.min_count, data.max_vocabulary); median length of a "
        "line: 4 words; generated texts end with a line (data.unit)"
    )
    assert capsys.readouterr().err == ""


def test_wrapped_lines_and_code_are_told(capsys):
    explain_language(DataConfig(), WORDS, IDS, wrapped(70))
    assert "--data.unit paragraph joins the lines" in capsys.readouterr().err
    paragraphs = explain_language(DataConfig(unit="paragraph"), WORDS, IDS, wrapped(70))
    assert capsys.readouterr().err == "" and "median length of a paragraph" in paragraphs
    code = [b"def f():", b"    return 1", b""] * 31
    assert "indentation is lost" in explain_language(DataConfig(), WORDS, IDS, code)


def test_examples_that_hold_ids_alone_are_explained_by_their_ids(tmp_path):
    (tmp_path / "Split-train").mkdir()
    task = make_task(LanguageModelConfig().replace({"data.path": str(tmp_path)}))
    assert "median length of a line: 4 words" in task.explain_text(WORDS, {"valid": IDS})


def test_prompts_are_beginnings_of_the_text():
    assert beginnings(WORDS, IDS) == ("der hund sieht", "der katze sieht")
    assert beginnings(WORDS, IDS[:8], number=3) == ("der hund sieht",)
    assert beginnings(WORDS, IDS[5:9]) == beginnings(WORDS, IDS[:0]) == ()


RAW = [b"The dog, the cat."] * 31
CUT = [b"The dog , the cat ."] * 31


@pytest.mark.parametrize(
    ("options", "tokenize", "sources", "targets", "advice"),
    [
        ({}, "13a", CUT, CUT, ["sources", "targets", "tokenize none"]),
        ({}, "13a", RAW, CUT, ["the targets", "tokenize none"]),
        ({}, "13a", CUT, RAW, []),
        ({}, "none", CUT, CUT, []),
        ({"tokenizer": "words"}, "none", CUT, CUT, ["tokenizer whitespace"]),
        ({"tokenizer": "words"}, "13a", CUT, RAW, ["the sources", "tokenizer whitespace"]),
        ({"tokenizer": "whitespace"}, "none", CUT, CUT, []),
        ({"moses": "en"}, "13a", CUT, CUT, ["tokenizer whitespace", "tokenize none"]),
        ({"tokenizer": "words"}, "13a", RAW, RAW, []),
    ],
)
def test_pairs_that_were_cut_before_are_warned_of(
    options, tokenize, sources, targets, advice, capsys
):
    columns = {"source": sources, "target": targets}
    warn_of_cut_text(PairsConfig(**options), tokenize, "pairs", columns)
    told = capsys.readouterr().err
    assert bool(told) == bool(advice) and told.count("\n") <= 1
    assert all(part in told for part in advice)


def test_pairs_tell_what_their_references_reach(tmp_path, capsys):
    for split in ("train", "valid"):
        for language in ("de", "en"):
            text = "The Dog , the ﬁne cat .\n" * 31 + ("one two\n" if split == "valid" else "")
            (tmp_path / f"{split}.{language}").write_text(text)
    config = config_of(
        "translation", tmp_path, data_tokenizer="words", data_lowercase=True,
        data_unicode_normalization="NFKC",
    )  # fmt: skip
    task = make_task(config)
    words = task.make_vocabulary(tmp_path / "none")
    told = task.explain_text(words, task.read_texts(words))
    assert told.startswith(
        "text: Unicode NFKC (data.unicode_normalization); lower-cased (data.lowercase); 0.9 % of "
        "the words in validation targets are unknown (data.vocabulary_size); median length of a "
        "target: 7 words\nvalidation: after encoding and decoding, the references themselves have "
    )
    assert "0.9 % of their tokens are unknown" in told and "differ in white space" in told
    assert "look tokenized already" in capsys.readouterr().err
