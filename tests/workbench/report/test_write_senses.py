import dataclasses

import numpy as np
import pytest

from keras_drill.workbench.report import SenseStudy, StudiedWord, write_senses
from tests.workbench.report.test_write_report import _Page

_HOSTILE = "$x<script>$"


def _word(word="bank", senses=3, occurrences=31, theta=True, information=0.5):
    generator = np.random.default_rng(3)
    return StudiedWord(
        word=word,
        senses=np.arange(senses) + 41,
        information=information,
        shares=generator.dirichlet(np.ones(senses)),
        theta=generator.normal(size=senses) if theta else None,
        nearest=tuple((f"near{sense}", "river") for sense in range(senses)),
        contexts=tuple(
            ((f"before{sense}", "after", 0.75), ("on the", ".", 0.5)) if sense else ()
            for sense in range(senses)
        ),
        points=generator.normal(size=(occurrences, 2)),
        variance=(0.4, 0.25),
        sense=generator.integers(senses, size=occurrences),
    )


def _study(*words, theta=True):
    angles = np.linspace(0, 180, 91)
    cosine = np.cos(np.radians(angles))
    return SenseStudy(
        name="kerbs",
        output_layer="KerBS",
        text="the 1,234 tokens of the train text",
        by_senses={1: (3, ("the", _HOSTILE, "cat")), 3: (1, ("bank",))},
        words=words,
        theta=np.random.default_rng(5).normal(size=61) if theta else None,
        angles=angles,
        kernels={-2.0: cosine, 0.0: cosine, 2.0: cosine} if theta else {},
    )


def _write(tmp_path, study):
    return _Page(write_senses(tmp_path / "s.html", study).read_text(encoding="utf-8"))


def test_every_part_is_on_the_page(tmp_path):
    page = _write(tmp_path, _study(_word(), _word("mole", 2, 1009)))
    for words in (
        "kerbs (KerBS) has 1.50 senses per word. The occurrences of words are from the 1,234",
        "75.0 %",
        "θ = −2",
        "near2 · river",
        "1,009 occurrences of",
        "(40 % and 25 % of the variance)",
        "sense 2: probability 0.50 to 0.75",
    ):
        assert words in page.text, words
    assert "before1 " in page.texts and "before0 " not in page.texts
    plots = [svg for svg in page.having("svg") if svg.get("aria-hidden") != "true"]
    assert len(plots) == 8 and all(svg["aria-label"] for svg in plots)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_senses_have_the_ids_that_they_have_everywhere(tmp_path):
    word = dataclasses.replace(_word(theta=False), sense=np.array([0, 2] * 15 + [2]))
    page = _write(tmp_path, _study(word, theta=False))
    assert page.texts.count("sense 1") == page.texts.count("sense 3") == 2  # legend and table
    assert page.texts.count("sense 2") == 1  # nowhere the most probable one: no point is drawn
    assert [page.texts.count(str(id)) for id in (41, 42, 43)] == [1, 1, 1]


def test_it_is_said_when_no_senses_were_found(tmp_path):
    even = _word(information=0.01, theta=False)
    even = dataclasses.replace(even, shares=np.array([0.3, 0.3, 0.4]))
    page = _write(tmp_path, _study(even, theta=False))
    assert (
        "did not learn different senses" in page.text and "0.010 of at most 1.099 nats" in page.text
    )
    assert "For none of the words below do the senses depend on the context." in page.text
    single = dataclasses.replace(even, shares=np.array([0.98, 0.01, 0.01]))
    page = _write(tmp_path, _study(single, _word(theta=False), theta=False))
    assert "The model uses only one sense of this word." in page.text
    assert "did not learn" not in page.text and "For none of the words" not in page.text


def test_without_a_kernel_there_are_no_kernel_plots(tmp_path):
    page = _write(tmp_path, _study(_word(theta=False), theta=False))
    assert "Kernel parameters" not in page.text and "Shapes of kernels" not in page.text
    assert "bank" in page.texts


@pytest.mark.slow
def test_any_word_can_be_shown(tmp_path):
    words = (_HOSTILE, "$\\frac{1}{$", "שלום", "\x00", "x" * 101)
    page = _write(tmp_path, _study(*(_word(word, occurrences=3) for word in words)))
    assert not {tag for tag, _ in page.elements} & {"script", "img"}
    for word in words:
        shown = word.replace("\x00", "\N{REPLACEMENT CHARACTER}")
        assert page.texts.count(shown) >= 2, word


def test_a_word_of_one_sense_can_be_shown(tmp_path):
    page = _write(tmp_path, _study(_word(senses=1, theta=False), theta=False))
    assert page.texts.count("sense 1") == 2 and "did not learn different senses" not in page.text
