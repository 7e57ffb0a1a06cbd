"""The lower part of plots with bins: the share of each bin, and the labels of the axis."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from keras_drill.workbench.report.page.plot import GRID, MUTED


def draw_shares(
    axes: Axes, labels: Sequence[str], shares: Sequence[float], of: str, along: str, narrow: bool
) -> None:
    """Draws one bar per bin, whose height is the share of the bin.

    Args:
        axes: Empty axes, which share their horizontal axis with the plot above.
        labels: Labels of the bins.
        shares: Percentages.
        of: Unit of the shares, for example `"tokens"`.
        along: Quantity of the bins, for example `"occurrences in the training set"`.
        narrow: Whether the page is narrow, so that labels are rotated.
    """
    axes.bar(range(len(labels)), shares, width=0.62, color=GRID, edgecolor=MUTED, linewidth=0.6)
    axes.grid(axis="x", visible=False)
    axes.set_ylabel(f"% {of}" if narrow else f"% of {of}")
    axes.set_xlim(-0.6, len(labels) - 0.4)
    axes.set_xticks(
        range(len(labels)),
        labels,
        rotation=55 if narrow else 0,
        rotation_mode="anchor",
        ha="right" if narrow else "center",
        va="top" if not narrow else "center",
    )
    axes.set_xlabel(along)
