"""One text that a language model wrote, for the report."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class SampleContinuation:
    """A prompt and what a model wrote after it.

    Args:
        prompt: The text given to the model; the report shows it in bold.
        continuation: The text that the model added, without the prompt. It is shown right after the
            prompt: begin it with a space where one belongs.
        sampler: How it was drawn, for example `"top-p 0.9, temperature 0.8, seed 3"`.
    """

    prompt: str
    continuation: str
    sampler: str = ""
