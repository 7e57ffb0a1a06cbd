"""Examples of the programs that make the documentation."""

import doctest

import pytest

from docs import (
    charts,
    docstring_to_markdown,
    prose_figures,
    results_data,
    run_page,
    write_notebooks,
    write_reference,
)


@pytest.mark.parametrize(
    "module",
    [
        charts,
        docstring_to_markdown,
        prose_figures,
        results_data,
        run_page,
        write_notebooks,
        write_reference,
    ],
    ids=lambda m: m.__name__,
)
def test_examples(module):
    result = doctest.testmod(module)
    assert result.attempted and not result.failed
