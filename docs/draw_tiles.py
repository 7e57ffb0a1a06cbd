"""A drawing of how the fused loss walks over tiles."""

from docs.charts import document, label, rectangle


def draw_tiles() -> str:
    """Hidden states, labels, the logits of one tile, and where its gradients go."""
    blue, green, soft = "#2f6fdb", "#0e9f6e", "#8b95a1"
    parts = [
        label(210, 26, "labels [V, d], cut into blocks", bold=True),
        *(rectangle(210 + 80 * n, 38, 76, 34, soft, 0.35) for n in range(4)),
        label(12, 112, "hidden states", bold=True),
        label(12, 130, "[N, d], cut into tiles"),
        *(
            rectangle(150, 92 + 40 * n, 44, 36, blue if n == 1 else soft, 1.0 if n == 1 else 0.35)
            for n in range(4)
        ),
        *(rectangle(210 + 80 * n, 132, 76, 36, green, 0.85 if n < 3 else 0.45) for n in range(4)),
        rectangle(208, 90, 320, 162, "none", dashed=True),
        label(540, 146, "logits of"),
        label(540, 164, "one tile"),
        label(216, 116, "never in memory"),
        label(216, 200, "never in memory"),
        label(12, 286, "of each tile: loss, normalizer, and two products", bold=True),
        label(24, 310, "gradient of the tile's hidden states = derivative × labels"),
        label(24, 332, "gradient of the labels += derivative × hidden states"),
        label(24, 354, "then the tile is dropped, and its memory serves the next one"),
    ]
    return document(parts, 370)
