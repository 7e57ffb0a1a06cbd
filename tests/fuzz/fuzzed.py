"""How many inputs each test tries: some in the fast one, `--fuzz-inputs` in the slow one."""

import functools

import pytest
from hypothesis import HealthCheck, Phase, given, settings

_SHARED = {
    "database": None,
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    # Inputs are small as they are, and making them smaller takes minutes where each takes long.
    "phases": (Phase.generate,),
}


def fuzzed(number, /, **strategies):
    """Makes a test of so many inputs, and a slow one of `--fuzz-inputs` / 1000 times as many.

    The test gets a folder, which all its inputs share, then the inputs by name.

    Args:
        number: Of inputs in the fast test; those of all tests together are about a thousand.
        **strategies: Of Hypothesis, by the test's arguments.
    """

    def decorate(test):
        @pytest.mark.parametrize(
            "scale",
            [pytest.param(False, id="few"), pytest.param(True, marks=pytest.mark.slow, id="many")],
        )
        @functools.wraps(test, assigned=("__module__", "__name__", "__doc__"), updated=())
        def run(scale, request, tmp_path, monkeypatch):
            # The disk is not what is tried, and waiting for it would be most of the time.
            monkeypatch.setattr("os.fsync", lambda descriptor: None)
            inputs = number
            if scale:
                inputs = max(1, number * request.config.getoption("fuzz_inputs") // 1000)

            # The fast test tries the same inputs each time: what it finds, it finds for everybody.
            @settings(max_examples=inputs, derandomize=not scale, **_SHARED)
            @given(**strategies)
            def tried(**drawn):
                test(tmp_path, **drawn)

            tried()

        del run.__wrapped__  # or pytest would look for fixtures of its names
        return run

    return decorate
