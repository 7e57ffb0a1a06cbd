"""What mypy finds fault with because the public names have types, for `make types`.

Were they `Any`, nothing would be wrong here, and `warn_unused_ignores` would say so.
"""

import keras_drill

missing = keras_drill.no_such_name  # type: ignore[attr-defined]
layer: int = keras_drill.TiedOutput  # type: ignore[assignment]
module: int = keras_drill.decoding  # type: ignore[assignment]
