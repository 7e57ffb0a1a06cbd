"""The page in a real browser, with the mouse and without."""

import os
import shutil

import pytest

from keras_drill.workbench.serving import Limits
from tests.workbench.serving.exported import EVIL, export_all
from tests.workbench.serving.running import running

playwright = pytest.importorskip(
    "playwright.sync_api", reason="needs the extra `browser`: pip install 'keras-drill[browser]'"
)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    base = tmp_path_factory.mktemp("saved_models")
    export_all(base)
    with running(base, limits=Limits(text_bytes=200), grpc_port=None) as made:
        yield made


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = started.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(params=[(1100, "light"), (400, "dark")], ids=["wide", "narrow"])
def page(server, browser, request):
    """The page, which must say nothing to the console and ask nobody else."""
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(300_000)  # milliseconds; models are slow where other programs run
    trouble = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("dialog", lambda dialog: (trouble.append("dialog"), dialog.dismiss()))
    asked = []
    page.on("request", lambda sent: asked.append(sent.url))
    page.goto(server.url)
    page.wait_for_selector("#model option", state="attached")
    page.trouble = trouble
    yield page
    assert not trouble
    assert all(url.startswith((server.url, "data:")) for url in asked)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


def ask(page, mode, text, model, beside=""):
    page.get_by_label("Model", exact=True).select_option(model)
    page.get_by_label("Compare with").select_option(beside)
    if page.get_by_role("group", name="View").is_visible():
        page.get_by_role("radio", name=mode, exact=True).check(force=True)
    page.locator("#text").fill(text)
    page.locator("#run").click()
    page.wait_for_selector("#results:not([aria-busy]) .result")


def outputs(server, model, signature, text):
    body = {"signature_name": signature, "inputs": [text]}
    return server.predict(body, model).json()["outputs"]


def words(page):
    return page.locator(".result button.word")


def bars(page):
    return [
        (row.locator("bdi").inner_text(), row.locator(".number").inner_text())
        for row in page.locator(".bars li").all()
    ]


def test_a_continuation_and_its_alternatives(server, page):
    ask(page, "Continue", "the cat", "kerbs", beside="mixture")
    for place, model in zip(page.locator(".result").all(), ("kerbs", "mixture"), strict=True):
        expected = outputs(server, model, "continue", "the cat")
        assert place.locator("h2").inner_text() == model
        assert place.locator("blockquote").inner_text() == expected["texts"][0]
        assert place.locator("button.word").count() == expected["lengths"][0]
    page.locator(".result").first.locator("button.word").first.click()
    page.wait_for_selector(".bars")
    top = outputs(server, "kerbs", "top_k", "the cat")
    shown = [word.replace("<eos>", "↵") for word in top["words"][0]]
    assert [word for word, _ in bars(page)][: len(shown)] == shown
    assert page.locator(".bars [aria-current=true]").count() == 1


def test_probabilities_of_a_text(server, page):
    text = f"the cat\nsat {EVIL} שלום"
    ask(page, "Probabilities", text, "mixture")
    scored = outputs(server, "mixture", "score", text)
    assert words(page).count() == scored["lengths"][0]
    assert words(page).all_inner_texts() == ["the", "cat", "↵", "sat", EVIL, "שלום", "↵"]
    assert f"Perplexity {scored['perplexities'][0]:.4g}" in page.locator(".result").inner_text()
    words(page).nth(4).click()
    assert EVIL in page.locator(".details").inner_text()
    assert page.locator("img").count() == 0
    assert words(page).nth(2).get_attribute("aria-label").startswith("end of line, probability ")


def test_senses_of_words(server, page):
    text = "the cat sat\nthe dog and the cat"
    ask(page, "Senses", text, "kerbs")
    answer = outputs(server, "kerbs", "senses", text)
    several = [sum(one >= 0 for one in senses) for senses in answer["senses"][0]]
    index = next(i for i, count in enumerate(several) if count > 1)
    words(page).nth(index).click()
    assert len(bars(page)) == several[index]
    best = max(range(several[index]), key=answer["probabilities"][0][index].__getitem__)
    assert words(page).nth(index).locator("sub").inner_text() == str(best + 1)
    words(page).nth(answer["words"][0].index("the")).click()
    contexts = page.locator(".contexts").first.locator("li").all_inner_texts()
    lines = sorted(one.partition(": ")[2].strip() for one in contexts)
    assert lines == ["the cat sat", "the dog and the cat", "the dog and the cat"]


def test_examples_of_senses_from_the_training_text(server, page):
    ask(page, "Senses", "the cat sat", "kerbs")
    answer = outputs(server, "kerbs", "senses", "the cat sat")
    ids = [[id for id in senses if id >= 0] for senses in answer["senses"][0]]
    index = next(i for i, some in enumerate(ids) if len(some) > 1)
    words(page).nth(index).click()
    page.get_by_text("In the training text").wait_for()
    shown = page.locator(".contexts").last
    word = answer["words"][0][index]
    expected = [f"{place + 1}: before {id} {word} {EVIL}" for place, id in enumerate(ids[index])]
    assert shown.locator("li").all_inner_texts() == expected
    assert page.locator("img").count() == 0
    single = next((i for i, some in enumerate(ids) if len(some) == 1), None)
    if single is not None:
        words(page).nth(single).click()
        assert "In the training text" not in page.locator(".details").inner_text()


def test_translations(server, page):
    ask(page, "Translate", "ein Haus\n\nHaus", "de-en")
    sources = ("ein Haus", "", "Haus")
    answers = [outputs(server, "de-en", "translate", source)["texts"][0] for source in sources]
    shown = [one.inner_text() for one in page.locator("blockquote").all()]
    assert shown == [best or "(empty)" for best, _ in answers]
    others = [other or "(empty)" for _, other in (answers[0], answers[2])]
    assert page.locator(".others li").all_inner_texts() == others


def test_everything_can_be_done_with_the_keyboard(page):
    def focused():
        return page.evaluate("document.activeElement.id || document.activeElement.value")

    page.keyboard.press("Tab")
    assert focused() == "model"
    page.keyboard.type("kerbs")
    page.keyboard.press("Tab")
    assert focused() == "beside"
    page.keyboard.press("Tab")
    assert focused() == "sample"
    page.keyboard.press("ArrowRight")
    assert focused() == "score"
    page.keyboard.press("Tab")
    page.keyboard.type("the cat sat")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#results:not([aria-busy]) button.word")
    page.keyboard.press("Tab")
    assert focused() == "run"
    page.keyboard.press("Tab")
    for key in ("ArrowRight", "End", "Home", "ArrowRight"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.textContent") == "cat"
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    page.keyboard.press("Enter")
    assert page.locator("[aria-pressed=true]").inner_text() == "cat"
    assert "cat has the probability" in page.locator(".details").inner_text()
    page.keyboard.press("Shift+Tab")
    assert focused() == "run"


def test_everything_has_a_name(page):
    for control in page.locator("select, input, textarea, button").all():
        name = control.evaluate("one => one.labels?.[0]?.textContent || one.textContent")
        assert name.strip(), control


def test_what_is_refused_is_told(page):
    ask(page, "Continue", "a" * 300, "kerbs")
    message = page.locator(".result [role=alert]").inner_text()
    assert "a string of 300 bytes; at most 200 are allowed" in message
    (told,) = page.trouble
    assert "400" in told  # the browser itself notes refused requests
    page.trouble.clear()
    ask(page, "Senses", "the cat", "kerbs", beside="mixture")
    assert "This model has no signature “senses”." in page.locator(".result").last.inner_text()


def test_settings_are_checked_before_they_are_sent(page):
    ask(page, "Continue", "the cat", "kerbs")
    page.get_by_text("Settings").click()
    page.get_by_label("Maximum number of words").fill("3")
    page.get_by_label("Temperature").fill("1.5")
    page.locator("#run").click()
    page.wait_for_selector("#results:not([aria-busy]) .result")
    assert words(page).count() <= 3
    page.get_by_label("Top p").fill("7")
    page.locator("#run").click()
    assert page.evaluate("document.activeElement.id") == "top-p"
