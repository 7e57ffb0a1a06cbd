"""What is blessed and what is refused, and what of it reaches the servers."""

import json
import math
import re

import numpy as np
import pytest

from keras_drill.export import ModelCard
from keras_drill.export.served_versions import ServedVersions
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.tasks.make_task import make_task
from keras_drill.workbench.tasks.sequence_to_sequence.ceiling import Ceiling
from keras_drill.workbench.training.evaluate_examples import EvaluatedExamples
from pipelines.command_line import main
from pipelines.components import evaluator as evaluator_module
from pipelines.components.comparison import compare, unigram_model
from pipelines.components.evaluator import Evaluator
from pipelines.components.pusher import Pusher
from pipelines.components.verdict import Verdict
from pipelines.engine.artifact_store import LINEAGE
from pipelines.options import EvaluatorOptions, PusherOptions
from tests.pipelines.corpora import tiny_task

LINES = [b"the cat sees a dog .", b"a bird", b"", b"the old bird hears the cat ."] * 31
COUNTS = {b"the": 900, b"a": 700, b"cat": 60, b"dog": 50, b"bird": 3, b"<eos>": 500, b".": 300}

CEILING = Ceiling(bleu=93.1, chrf=95.2, exact_match=50, unknown=0.041, changes={"in case": 0.5})


def evaluated(log_prob, lines=LINES, known=COUNTS, answers=None, noise=0.3, seed=0):
    """A model for which words have a log-probability, by their frequency, more or less."""
    random = np.random.default_rng(seed)
    rows = [[*line.split(), b"<eos>"] for line in lines]
    words = np.array([w if w in known else b"<unk>" for row in rows for w in row], dtype=object)
    values = [log_prob(COUNTS.get(word, 0)) + noise * random.normal() for word in words]
    lengths = np.array([len(row) for row in rows])
    texts = [line.decode() for line in lines] if answers is None else answers
    return EvaluatedExamples(words, np.array(values), lengths, texts)


def as_good_as(value):
    return lambda count: value


def compared(candidate, baseline):
    return compare(candidate, baseline, LINES, COUNTS, b"<unk>")


def test_words_that_one_of_them_does_not_know_are_left_out():
    candidate, baseline = evaluated(as_good_as(-3.0)), evaluated(as_good_as(-4.0), seed=1)
    fewer = {word: count for word, count in COUNTS.items() if word != b"cat"}
    lazy = evaluated(lambda count: -1.0 if count == 0 else -4.0, known=fewer, seed=2)
    for other, unknown in ((baseline, candidate), (lazy, lazy)):
        found = compared(candidate, other)
        words = [w for line in LINES for w in [*line.split(), b"<eos>"]]
        kept = np.array([w in COUNTS and (other is not lazy or w in fewer) for w in words])
        gain = (candidate.log_probs - other.log_probs)[kept].mean()
        assert found.unit == "word" and found.gain.value == pytest.approx(gain)
        assert found.perplexity == pytest.approx(math.exp(-candidate.log_probs[kept].mean()))
        share = 100 * np.mean(unknown.words == b"<unk>")
        assert max(found.unknown, found.baseline_unknown) == pytest.approx(share)
        assert found.frequency.overall.tokens == kept.sum()
        assert found.frequency.overall.difference == pytest.approx(gain)


def by_letters(log_prob):
    """A model of letters, all with one log-probability."""
    letters = [bytes([letter]) for line in LINES for letter in line + b"\n"]
    lengths = np.array([len(line) + 1 for line in LINES])
    return EvaluatedExamples(
        np.array(letters, object), np.full(len(letters), log_prob), lengths, []
    )


def test_other_words_are_compared_by_the_byte_where_no_word_is_unknown():
    ours, theirs = by_letters(-1.0), evaluated(as_good_as(-4.0), noise=0)
    found = compared(ours, theirs)
    assert found.unit == "byte" and found.frequency is None
    assert found.perplexity == pytest.approx(math.e)
    # "sees", "hears" and "old" are unknown: every second line is left out.
    spelled = [b"a bird", b""] * 31
    num_words = sum(len(line.split()) + 1 for line in spelled)
    num_bytes = sum(len(line) + 1 for line in spelled)
    assert found.lines_left_out == 62
    assert found.gain.value == pytest.approx((4.0 * num_words - num_bytes) / num_bytes)
    assert found.baseline_perplexity == pytest.approx(math.exp(4.0 * num_words / num_bytes))


def test_an_unknown_word_makes_no_model_better_per_byte(evaluate):
    answers = [line.decode() for line in LINES]
    fewer = {word: count for word, count in COUNTS.items() if word in (b"a", b"bird", b"<eos>")}
    lazy = evaluated(lambda count: -0.01 if count == 0 else -6.0, known=fewer, answers=answers)
    verdict, _ = evaluate(lazy, by_letters(-1.5), max_more_unknown=100.0)
    assert not verdict.blessed
    assert "on 124 lines of test without 62 lines with unknown words" in verdict.reasons[0]


def test_models_of_which_one_knows_a_word_of_no_line_cannot_be_compared():
    with pytest.raises(RunError, match="models cannot be compared"):
        compared(by_letters(-1.0), evaluated(as_good_as(-4.0), known={}))


def test_the_unigram_model_knows_frequencies():
    candidate = evaluated(as_good_as(-3.0))
    unigram = unigram_model(candidate, COUNTS)
    total = sum(COUNTS.values()) + len(COUNTS)
    assert unigram.log_probs[0] == pytest.approx(math.log(901 / total))
    assert np.exp(unigram.log_probs[candidate.words == b"<unk>"][0]) == pytest.approx(1 / total)


@pytest.fixture
def given(tmp_path):
    """Artifacts that stand for a model, and the place where it is to be served."""
    model = tmp_path / "model"
    extra = model / "serving" / "1" / "assets.extra"
    extra.mkdir(parents=True)
    (model / LINEAGE).write_text(
        json.dumps(
            {
                "content": "candidate",
                "made_at": "now",
                "code_version": "1",
                "settings": {},
                "inputs": {},
                "command": "make",
            }
        )
    )
    ModelCard("serving", "A model.", "then", "not stated", {"corpus": "x"}, {}).write(extra)
    (model / "serving" / "1" / "saved_model.pb").write_bytes(b"graph")
    return {"model": model, "served": ServedVersions(tmp_path / "saved_models" / "cats")}


def push(given, tmp_path, verdict, name="pushed", **options):
    for folder in ("verdict", name):
        (tmp_path / folder).mkdir(exist_ok=True)
    verdict.save(tmp_path / "verdict")
    inputs = {"model": given["model"], "verdict": tmp_path / "verdict"}
    pusher = Pusher(given["served"], "corpora/cats", PusherOptions(**options))
    return pusher.run(inputs, tmp_path / name, lambda *told: None)


def rename(given, content):
    file = given["model"] / LINEAGE
    file.write_text(json.dumps({**json.loads(file.read_text()), "content": content}))


def test_a_blessed_model_is_pushed_once(given, tmp_path):
    verdict = Verdict(True, ["better"])
    assert push(given, tmp_path, verdict)["version"] == 1
    again = push(given, tmp_path, Verdict(True, ["the same"], 1))
    assert again["version"] == 1 and again["was"] == "served already"
    card = json.loads((given["served"].folder(1) / "assets.extra/model_card.json").read_text())
    assert (card["name"], card["data"]["corpus"]) == ("cats", "cats")
    lineage = given["served"].lineage(1)
    assert lineage["model"] == "candidate" and lineage["verdict"]["reasons"] == ["better"]
    assert lineage["trained"]["command"] == "make"


def test_a_version_that_has_gone_is_missed(given, tmp_path):
    push(given, tmp_path, Verdict(True, ["better"]))
    pusher = Pusher(given["served"], "corpora/cats")
    before = pusher.settings()
    assert pusher.stopping_reason(tmp_path / "pushed") is None
    with given["served"].lock():
        given["served"].roll_back()
    assert "this version is no longer in" in pusher.stopping_reason(tmp_path / "pushed")
    assert pusher.settings() != before


def test_a_refused_model_is_not_pushed(given, tmp_path):
    with pytest.raises(RunError, match="refused: it is worse; and slower"):
        push(given, tmp_path, Verdict(False, ["it is worse", "and slower"]))
    assert given["served"].versions() == []


def test_so_many_versions_are_kept(given, tmp_path):
    for number, content in enumerate("abcd"):
        rename(given, content)
        told = push(given, tmp_path, Verdict(True, ["better"], number or None), keep=2)
    assert given["served"].versions() == [3, 4] and told["removed"] == "2"


def test_a_verdict_over_another_version_than_the_newest_is_out_of_date(given, tmp_path):
    with given["served"].lock():
        for name in "ab":
            given["served"].push(given["model"] / "serving" / "1", {"model": name})
    with pytest.raises(RunError, match="of cats to compare with is 1, but version 2 is served now"):
        push(given, tmp_path, Verdict(True, ["better"], 1))
    with pytest.raises(RunError, match="of cats to compare with is none, but"):
        push(given, tmp_path, Verdict(True, ["the first"]))
    assert push(given, tmp_path, Verdict(True, ["better"], 2))["version"] == 3


def test_a_model_that_was_rolled_back_stays_away(given, tmp_path):
    push(given, tmp_path, Verdict(True, ["better"]))
    with given["served"].lock():
        given["served"].roll_back()
    with pytest.raises(RunError, match="was version 1 of cats and was rolled back"):
        push(given, tmp_path, Verdict(True, ["better"]))
    assert push(given, tmp_path, Verdict(True, ["better"]), again=True)["version"] == 2


@pytest.fixture
def evaluate(given, tmp_path, monkeypatch):
    """Runs the evaluator on what a candidate and the served version are made to say."""

    def run(candidate, baseline=None, task="language-model", **options):
        config = tiny_task(task, tmp_path / "text")
        task = make_task(config)
        served = given["served"]
        if baseline is not None and served.newest() is None:
            with served.lock():
                served.push(given["model"] / "serving" / "1", {"model": "before"})
        component = Evaluator(task, served, EvaluatorOptions(**options))
        said = {"candidate": candidate, "version 1": baseline}
        monkeypatch.setattr(
            evaluator_module, "_evaluate", lambda folder, examples, progress, name: said[name]
        )
        columns = dict.fromkeys(task.columns, LINES)
        monkeypatch.setattr(task, "read_columns", lambda data: {"train": columns, "test": columns})
        monkeypatch.setattr(component, "_words", lambda transformed: (COUNTS, b"<unk>"))
        monkeypatch.setattr(task, "load_vocabulary", lambda transformed: None)
        monkeypatch.setattr(task, "measure_ceiling", lambda *_: CEILING, raising=False)
        (tmp_path / "verdict").mkdir(exist_ok=True)
        inputs = {"examples": tmp_path, "transformed": tmp_path, "model": given["model"]}
        facts = component.run(inputs, tmp_path / "verdict", lambda *told: None)
        verdict = Verdict.load(tmp_path / "verdict")
        numbers = {name: x for name, x in verdict.figures.items() if isinstance(x, int | float)}
        assert facts.pop("verdict") == ("blessed" if verdict.blessed else "refused")
        assert facts == pytest.approx(numbers, abs=5.1e-4)
        page = component.sections(tmp_path / "verdict")
        assert len(page) == 1
        return verdict, component.stopping_reason(tmp_path / "verdict")

    return run


def test_a_first_model_must_know_more_than_frequencies(evaluate):
    verdict, stop = evaluate(evaluated(as_good_as(-1.0)))
    assert verdict.blessed and verdict.baseline is None and stop is None
    assert "a unigram model" in verdict.reasons[0]
    verdict, stop = evaluate(evaluated(as_good_as(-5.0)))
    assert not verdict.blessed and "required: more than 0 %" in stop
    verdict, stop = evaluate(evaluated(as_good_as(-1.0)), max_perplexity=2.5)
    assert not verdict.blessed and "is above 2.5" in stop


def test_a_better_model_is_blessed_and_a_worse_one_refused_with_reasons(evaluate):
    better, worse = evaluated(as_good_as(-3.0)), evaluated(as_good_as(-3.2), seed=1)
    verdict, stop = evaluate(better, worse)
    assert verdict.blessed and verdict.baseline == 1 and stop is None
    gain = verdict.figures["perplexity lower by %"]
    assert gain == pytest.approx(100 * (1 - math.exp(-0.2)), abs=3)
    assert verdict.figures["interval"][0] < gain < verdict.figures["interval"][1]
    assert f"{gain:.2f} % lower" in verdict.reasons[0] and "124 lines of test" in verdict.reasons[0]
    verdict, stop = evaluate(worse, better)
    assert not verdict.blessed and "Version 1 continues to be served" in stop
    assert re.search(r"\d % higher \(95 % interval of the gain -", verdict.reasons[0])


def test_a_gain_that_may_be_chance_is_not_enough_unless_it_is_said_to_be(evaluate):
    one, other = (
        evaluated(as_good_as(-3.0), noise=2.0),
        evaluated(as_good_as(-3.0), noise=2.0, seed=1),
    )
    better, worse = sorted((one, other), key=lambda each: each.perplexity)
    verdict, _ = evaluate(better, worse)
    assert not verdict.blessed and "which may be due to chance" in verdict.reasons[0]
    options = {"certain": False, "max_bin_loss": 0.0}
    assert evaluate(better, worse, **options)[0].blessed
    assert not evaluate(better, worse, **options, min_gain=50.0)[0].blessed


def test_words_of_one_frequency_must_not_pay_for_the_others(evaluate):
    before = evaluated(as_good_as(-4.0), seed=1)
    robs_the_rare = evaluated(lambda count: -5.0 if count == 3 else -3.0)
    verdict, stop = evaluate(robs_the_rare, before)
    assert not verdict.blessed and len(verdict.reasons) == 1
    assert "words that occur 1–49 times" in stop
    assert evaluate(robs_the_rare, before, max_bin_loss=0.0)[0].blessed


def test_what_words_of_one_frequency_lose_by_chance_does_not_count(evaluate):
    before = evaluated(as_good_as(-4.0), noise=0)
    unsteady = evaluated(as_good_as(-3.0), noise=0)
    rare = np.flatnonzero(unsteady.words == b"bird")
    unsteady.log_probs[rare[len(rare) // 2 :]] = -5.6
    verdict, _ = evaluate(unsteady, before)
    (rare,) = (each for each in verdict.bins if each["label"] == "1–49")
    assert rare["gain"] < -10 < rare["interval"][1] and verdict.blessed


def test_a_model_that_knows_fewer_words_is_refused(evaluate):
    fewer = {word: count for word, count in COUNTS.items() if word != b"cat"}
    lazy, before = evaluated(as_good_as(-1.0), known=fewer), evaluated(as_good_as(-4.0), seed=1)
    verdict, _ = evaluate(lazy, before)
    assert not verdict.blessed and "of the words are unknown" in verdict.reasons[0]
    assert evaluate(lazy, before, max_more_unknown=50.0)[0].blessed


def test_the_model_that_is_served_is_not_evaluated_again(evaluate, given, tmp_path):
    first, _ = evaluate(evaluated(as_good_as(-1.0)))
    push(given, tmp_path, first)
    for _ in range(2):  # what is told is what was told when it was pushed
        verdict, stop = evaluate(None, None)
        assert verdict.blessed and verdict.baseline == 1 and stop is None
        assert "is already served, as version 1" in verdict.reasons[0]
        assert verdict.reasons[1:] == first.reasons and verdict.figures == first.figures != {}
        assert verdict.bins == first.bins != []


def test_a_served_model_without_a_verdict_is_not_evaluated_again_either(evaluate, given):
    with given["served"].lock():
        given["served"].push(given["model"] / "serving" / "1", {"model": "candidate"})
    verdict, stop = evaluate(None, None)
    assert verdict.blessed and verdict.baseline == 1 and stop is None
    assert verdict.reasons == ["this model is already served, as version 1"]


@pytest.mark.parametrize(("worse_perplexity", "min_bleu"), [(False, 0.0), (True, 0.0), (True, 99)])
def test_answers_are_evaluated_by_bleu(worse_perplexity, min_bleu, evaluate):
    answers = [line.decode().replace("sees", "hears") for line in LINES]
    spoiled = [answer.replace("cat", "dog").replace("old", "new") for answer in answers]
    value = -5.0 if worse_perplexity else -3.0
    candidate = evaluated(as_good_as(value), answers=answers)
    before = evaluated(as_good_as(-4.0), answers=spoiled, seed=1)
    options = {"max_bin_loss": 0.0, "min_bleu": min_bleu}
    verdict, stop = evaluate(candidate, before, "autoencoder", **options)
    assert verdict.blessed == (min_bleu == 0)
    if verdict.blessed:
        assert verdict.figures["BLEU"] > verdict.figures["BLEU before"]
        assert verdict.reasons[0].startswith("BLEU ")
        assert verdict.figures["highest reachable BLEU"] == CEILING.bleu
        assert verdict.notes == [f"Highest scores that the vocabulary allows: {CEILING}"]
    else:
        assert "is below 99" in stop
    verdict, _ = evaluate(before, candidate, "autoencoder", **options)
    assert not verdict.blessed


def test_the_page_has_the_reasons_and_the_words_by_frequency(tmp_path):
    few = {"tokens": 1, "baseline": 2.0, "candidate": 4.0, "gain": -100.0}
    many = {"tokens": 1234, "baseline": 5.254, "candidate": 4.5, "gain": 14.35}
    bins = [
        {"label": "0", **few, "interval": (math.nan, math.nan)},
        {"label": "1–49", **many, "interval": (-1.5, 26.0)},
    ]
    Verdict(False, ["it is worse", "and slower"], 1, {}, bins, ["a note"]).save(tmp_path)
    (section,) = Evaluator(None).sections(tmp_path)
    paragraphs = ["".join(each.itertext()) for each in section if each.tag in ("p", "ul")]
    assert paragraphs == ["Refused", "it is worseand slower", "a note"]
    rows = [["".join(cell.itertext()) for cell in row] for row in section.iter("tr")]
    assert rows[1:] == [
        ["0", "1", "2.00", "4.00", "-100.0 %", "–"],
        ["1–49", "1,234", "5.25", "4.50", "+14.3 %", "-1.50 to +26.00 %"],
    ]
    assert rows[0][2:5] == ["baseline perplexity", "new perplexity", "lower by"]
    Verdict(True, ["it is better"]).save(tmp_path)
    (section,) = Evaluator(None).sections(tmp_path)
    assert [each.tag for each in section] == ["h2", "p", "ul"]
    assert "".join(section[1].itertext()) == "Blessed"


def test_a_version_is_rolled_back_by_a_command(given, capsys):
    served = given["served"]
    command = ["--rollback", "--pusher.directory", str(served.directory.parent)]

    def run(*words):
        status = main("language-model", "small-tied", [*command, *words])
        return status, "".join(capsys.readouterr())

    assert run() == (2, "pipelines: error: give the model to roll back with --serve-as NAME\n")
    status, said = run("--serve-as", "cats")
    assert status == 2 and "Received: cats" in said
    with served.lock():
        for name in "ab":
            served.push(given["model"] / "serving" / "1", {"model": name})
    told = "cats: version 2 is rolled back, version 1 is served now\n"
    assert run("--serve-as", "cats") == (0, told)
    told = "cats: version 1 is rolled back, no version is left\n"
    assert run("--serve-as", "cats") == (0, told)


def test_what_reaches_a_limit_is_let_pass(evaluate):
    fewer = {word: count for word, count in COUNTS.items() if word != b"cat"}
    answers = [line.decode() for line in LINES]
    candidate = evaluated(as_good_as(-1.0), known=fewer, answers=answers)
    before = evaluated(as_good_as(-4.0), answers=[text[::-1] for text in answers], seed=1)
    told, _ = evaluate(candidate, before, "autoencoder", max_more_unknown=100.0, max_bin_loss=0.0)
    more = told.figures["unknown words %"] - told.figures["unknown words before %"]
    limits = {
        "min_bleu": told.figures["BLEU"],
        "max_perplexity": told.figures["perplexity of known words"],
        "max_more_unknown": more,
    }
    for name, limit in limits.items():
        options = {"max_more_unknown": 100.0, "max_bin_loss": 0.0, name: limit}
        assert evaluate(candidate, before, "autoencoder", **options)[0].blessed
        options[name] = limit * (1.001 if name == "min_bleu" else 0.999)
        verdict, _ = evaluate(candidate, before, "autoencoder", **options)
        assert not verdict.blessed and len(verdict.reasons) == 1


def test_a_gain_must_be_above_the_least_one(evaluate):
    better, worse = evaluated(as_good_as(-3.0)), evaluated(as_good_as(-3.2), seed=1)
    figures = evaluate(better, worse)[0].figures
    for certain, reached in ((False, figures["perplexity lower by %"]), (True, None)):
        reached = figures["interval"][0] if reached is None else reached
        for least, blessed in ((reached, False), (reached - 1e-6, True)):
            assert evaluate(better, worse, min_gain=least, certain=certain)[0].blessed == blessed


def test_the_words_that_lose_most_are_named_first(evaluate):
    def robs_all(count):
        return {3: -4.6, 50: -6.0, 60: -6.0, 300: -5.2, 500: -5.2}.get(count, -3.0)

    verdict, _ = evaluate(evaluated(robs_all, noise=0.05), evaluated(as_good_as(-4.0), noise=0.05))
    lost = [float(told) for told in re.findall(r"perplexity ([\d.]+) % higher than", str(verdict))]
    assert len(lost) == 2 and lost[0] > lost[1]
    gains = sorted(each["gain"] for each in verdict.bins)
    assert lost == pytest.approx([-gain for gain in gains[:2]], abs=0.05) and gains[2] < -10
