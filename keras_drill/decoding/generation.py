"""What decoding returns."""

from typing import Any, NamedTuple


class Generation(NamedTuple):
    """Sequences written by a sampler.

    Attributes:
        tokens: Integer tensor `[B, L]`: prompt, then generated tokens (the end token included),
            then padding.
        lengths: Integer tensor `[B]`: how many of these are not padding.
        log_probs: Float32 tensor `[B, L]`: the log-probability the model itself gave to each
            generated token (whatever the temperature, the words left out or forbidden), 0 at the
            prompt and at the padding.
    """

    tokens: Any
    lengths: Any
    log_probs: Any
