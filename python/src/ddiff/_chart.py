"""Charts for a paper, from the data of a report's figures."""

from __future__ import annotations

import os
from typing import Any

# The colours of Okabe and Ito without yellow, and the markers of the report's own figures.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_MARKERS = ("o", "s", "^", "D")
_LINES = ("-", "--", ":", "-.")
_LABELS = {
    "data_norm": "‖y − A(z)‖", "primal_norm": "‖x − z‖", "dual_norm": "‖u‖", "psnr": "PSNR (dB)", "residual_ratio": "residual / noise variance",
    "sigma": "noise level σ", "photons": "photons of a white pixel", "steps": "solver steps", "seconds": "solver time per image (s)",
    "evaluations": "network evaluations per image", "sharpness": "sharpness (dB)",
}  # fmt: skip
_MM = 1 / 25.4  # inches


def chart(path: str | os.PathLike[str], width: float = 0) -> Any:
    """Draws a figure of a report from its data, and returns a matplotlib Figure, of which savefig writes PDF, PNG and other formats.

    path: the CSV file of the figure, as in figures/NAME.csv of a report. width: in millimetres; by default 82, or 174 for several panels.

    Needs matplotlib and pandas. Raises ValueError if the file is no data of a figure."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ModuleNotFoundError("draw chart: matplotlib is missing; install it: pip install matplotlib", name="matplotlib") from None
    import pandas

    t = pandas.read_csv(path, keep_default_na=False, na_values={c: [""] for c in ("x", "y", "low", "high", "n")})
    if t.columns.tolist()[:6] != ["panel", "series", "x_name", "x", "y_name", "y"] or t.empty:
        raise ValueError(f"draw chart {os.fspath(path)}: it has no points of a figure; give figures/NAME.csv of a report")
    panels = [p for _, p in t.groupby(["panel", "x_name", "y_name"], sort=False)]
    columns = 2 if len(panels) == 4 else min(3, len(panels))
    rows = -(-len(panels) // columns)
    width = width or (82 if len(panels) == 1 else 174)
    tall = 1 if t.y_name.iloc[0].startswith("psnr ") else 0.75
    figure = Figure((width * _MM, (tall * rows * width / columns + 8) * _MM), layout="constrained")
    looks = {s: i for i, s in enumerate(t.series.unique())}
    shared = len(panels) > 1 and t.panel.ne("").any()
    axes = figure.subplots(rows, columns, squeeze=False, sharey=shared).flat
    for ax, p in zip(axes, panels):
        _panel(ax, p, looks)
    for ax in list(axes)[len(panels) :]:
        ax.remove()
    handles = {h.get_label(): h for ax in figure.axes for h in ax.get_legend_handles_labels()[0]}
    if handles:
        figure.legend(handles=handles.values(), loc="outside upper left", ncols=1 if len(panels) == 1 else min(3, len(handles)), fontsize=7, frameon=False)
    return figure


def _panel(ax: Any, p: Any, looks: dict[str, int]) -> None:
    """Draws the points of a panel: those of items as dots, those of steps as lines with bands, means as lines with bars."""
    x_name, y_name = p.x_name.iloc[0], p.y_name.iloc[0]
    for series, s in p.groupby("series", sort=False):
        n = looks[series]
        look = {"color": _COLOURS[n % 7], "label": series or "_nolegend_"}
        low, high = s.low.fillna(s.y), s.high.fillna(s.y)
        if s.item.ne("").any():
            ax.plot(s.x, s.y, _MARKERS[n % 4], markersize=3 if len(s) <= 50 else 2, alpha=1 if len(s) <= 50 else 0.6, markeredgewidth=0, **look)
        elif x_name == "step":
            ax.plot(s.x, s.y, _LINES[n % 4], linewidth=1, **look)
            ax.fill_between(s.x, low, high, color=look["color"], alpha=0.2, linewidth=0)
        else:
            ax.errorbar(s.x, s.y, [s.y - low, high - s.y], fmt=_MARKERS[n % 4] + _LINES[n % 4], markersize=4, linewidth=1, elinewidth=0.7, capsize=2, **look)
    if x_name.startswith("psnr ") and y_name.startswith("psnr "):
        low, high = ax.viewLim.y0, ax.viewLim.y1
        low, high = min(low, ax.viewLim.x0), max(high, ax.viewLim.x1)
        ax.set(xlim=(low, high), ylim=(low, high), box_aspect=1)
        ax.plot([low, high], [low, high], color="#888888", linestyle="--", linewidth=0.7, zorder=0, label="_nolegend_")
    if y_name == "residual_ratio":
        ax.axhline(1, color="#888888", linestyle="--", linewidth=0.7, zorder=0)
    if x_name not in ("psnr", "sharpness", "step") and p.x.min() > 0 and p.x.max() >= 8 * p.x.min():
        ax.set_xscale("log")
    if not y_name.startswith("psnr") and p.y.min() > 0 and p.y.max() >= 10 * p.y.min():
        ax.set_yscale("log")
    ax.set_title(p.panel.iloc[0], fontsize=8, fontweight="bold")
    ax.set_xlabel(_label(x_name), fontsize=8)
    ax.set_ylabel(_label(y_name), fontsize=8)
    ax.tick_params(labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)


def _label(name: str) -> str:
    """Returns the label of an axis."""
    return f"{name.removeprefix('psnr ')} (dB)" if name.startswith("psnr ") else _LABELS.get(name, name)
