import pytest

from keras_drill.data.cut_text import signs_of_cut_text

WIKITEXT = """ = = Early life = =
 The 1 @,@ 000 men of the well @-@ known <unk> , who came , saw , and went .
"""
PENN_TREEBANK = "mr. <unk> is chairman of <unk> n.v. the dutch publishing group\n"
CHINESE = "我们 走 ， 你们 来 。\n"
RAW = """The "well-known" men, who came, saw, and went. It isn't e.g. a list.
C'est quoi ? Rien ! Deux choses : une , mal écrite, et l'autre.
"""
CODE = "x = 3 , y = = 4 . # see <unk>, a, b, c, d, e, f, g.\n"


@pytest.mark.parametrize(
    "text, times, signs",
    [
        (WIKITEXT, 9, {'" ,"', '" ."', '"@-@"', '"@,@"', '"<unk>"', '"= ="'}),
        (PENN_TREEBANK, 9, {'"<unk>"'}),
        (CHINESE, 9, {'" ，"', '" 。"'}),
        (WIKITEXT, 1, set()),
        (RAW, 99, set()),
        (CODE, 1, set()),
        ("", 9, set()),
    ],
)
def test_signs(text, times, signs):
    lines = [line.encode() for line in text.splitlines() * times]
    assert set(signs_of_cut_text(lines)) == signs


@pytest.mark.parametrize(
    ("lines", "signs"),
    [
        ([b"<unk>"] * 5, ('"<unk>"',)),
        ([b"<unk>"] * 4, ()),
        ([b"a,"] * 3 + [b"b ,"] * 11, ('" ,"',)),  # more than twice as many, by five
        ([b"a,"] * 3 + [b"b ,"] * 10, ()),
        ([b"a,"] * 3 + [b"b ,"] * 10 + [b"<unk>"] * 6, ('"<unk>"',)),
    ],
)
def test_few_signs_are_none(lines, signs):
    assert signs_of_cut_text(lines) == signs


def test_what_is_not_utf8_is_read_all_the_same():
    assert signs_of_cut_text([b"caf\xe9 , th\xe9 ."] * 9) == ('" ,"', '" ."')
