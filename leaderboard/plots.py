"""Figures of the board, from plain data: quality against cost, training curves, denoising pictures."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from leaderboard.data.board import DIFFUSION, Cell
from leaderboard.data.pareto import Strategy
from leaderboard.markup import text
from leaderboard.theme import STATES, clear, colour, dash, symbol

CONFIG = {"displayModeBar": False, "responsive": True}
_MARGIN = {"l": 8, "r": 8, "t": 8, "b": 8}


def pareto_figure(
    found: Sequence[Strategy], cost: tuple[str, str], undominated: set[int], describe: Callable[[Cell], str]
) -> Any:
    """Return quality with bands against ``cost`` (name of the axis, field of the cell).

    ``describe`` gives the hover text of a point. Undominated points are larger. Models without a counted cost are
    levels over the whole width.
    """
    figure = go.Figure()
    name, field = cost
    for number, strategy in enumerate(found):
        known = [cell for cell in strategy.cells if getattr(cell, field)]
        known.sort(key=lambda cell: float(getattr(cell, field)))
        if known:
            _curve(figure, number, strategy, known, field, undominated, describe)
        else:
            _level(figure, number, strategy)
    figure.update_layout(_layout(name, "score, %", len(found)))
    costs = sorted({float(getattr(cell, field)) for one in found for cell in one.cells if getattr(cell, field)})
    figure.update_xaxes(type="log", **_ticks(costs))
    return figure


def curves_figure(series: Sequence[tuple[str, Sequence[tuple[float, float]]]], x: str, y: str) -> Any:
    """Return named series of points as lines."""
    figure = go.Figure()
    for number, (name, points) in enumerate(series):
        xs, ys = [point[0] for point in points], [point[1] for point in points]
        line = {"color": colour(number), "dash": dash(number), "width": 2}
        figure.add_trace(go.Scatter(x=xs, y=ys, mode="lines", name=plain(name), line=line))
    figure.update_layout(_layout(plain(x), plain(y), len(series)))
    return figure


def trajectory_figure(state_SG: NDArray[np.int8], scale: tuple[int, int], forward: int) -> Any:
    """Return the state of each position (across) after each forward (down); ``scale`` is forwards, positions a pixel.

    A line marks ``forward``.
    """
    rows, columns = scale
    stops = [stop for i, shade in enumerate(STATES) for stop in ((i / 4, shade), ((i + 1) / 4, shade))]
    figure = go.Figure(
        go.Heatmap(
            z=state_SG,
            x=np.arange(state_SG.shape[1]) * columns,
            y=np.arange(state_SG.shape[0]) * rows,
            zmin=0,
            zmax=4,
            colorscale=stops,
            showscale=False,
            xgap=1 if state_SG.shape[1] <= 80 else 0,
            ygap=1 if state_SG.shape[0] <= 80 else 0,
            hovertemplate="position %{x}, forward %{y}<extra></extra>",
        )
    )
    figure.add_hline(y=forward, line={"width": 2, "dash": "dot", "color": "#888888"})
    figure.update_layout(_layout("position in the response", "forward", 0), height=300)
    figure.update_xaxes(dtick=_whole_step(state_SG.shape[1] * columns))
    figure.update_yaxes(autorange="reversed", dtick=_whole_step(state_SG.shape[0] * rows))
    return figure


def bars_figure(rows: Sequence[tuple[str, float, float, float]], x: str) -> Any:
    """Return named values with intervals (name, value, low, high) as points on horizontal lines."""
    figure = go.Figure()
    shown = rows[::-1]
    values = [row[1] for row in shown]
    error = {
        "type": "data",
        "symmetric": False,
        "array": [row[3] - row[1] for row in shown],
        "arrayminus": [row[1] - row[2] for row in shown],
        "thickness": 2,
    }
    figure.add_trace(
        go.Scatter(
            x=values,
            y=[plain(row[0]) for row in shown],
            mode="markers",
            marker={"size": 11, "color": colour(0)},
            error_x=error,
            showlegend=False,
        )
    )
    figure.update_layout(_layout(plain(x), "", 0), height=max(140, 60 + 34 * len(rows)))
    figure.update_yaxes(type="category")  # a name such as 2026 or 1e3 is no number
    return figure


def plain(value: object) -> str:
    """Return ``value`` as plotly shows it: its own small markup switched off."""
    return str(text(value))


def _curve(
    figure: Any,
    number: int,
    strategy: Strategy,
    cells: Sequence[Cell],
    field: str,
    undominated: set[int],
    describe: Callable[[Cell], str],
) -> None:
    xs = [float(getattr(cell, field)) for cell in cells]
    values = [cell.value or 0.0 for cell in cells]
    low = [value if cell.low is None else cell.low for value, cell in zip(values, cells, strict=True)]
    high = [value if cell.high is None else cell.high for value, cell in zip(values, cells, strict=True)]
    shade, group = colour(number), f"s{number}"
    if len(cells) > 1 and strategy.kind == DIFFUSION:
        band = go.Scatter(
            x=[*xs, *xs[::-1]],
            y=[*high, *low[::-1]],
            mode="lines",
            fill="toself",
            fillcolor=clear(shade, 0.15),
            line={"width": 0},
            hoverinfo="skip",
            showlegend=False,
            legendgroup=group,
        )
        figure.add_trace(band)
    bars: dict[str, Any] = {"type": "data", "symmetric": False, "thickness": 1.5, "width": 4, "color": shade}
    bars["array"] = [top - value for top, value in zip(high, values, strict=True)]
    bars["arrayminus"] = [value - bottom for bottom, value in zip(low, values, strict=True)]
    marker = {"size": [12 if c.id in undominated else 7 for c in cells], "symbol": symbol(number), "color": shade}
    points = go.Scatter(
        x=xs,
        y=values,
        mode="lines+markers" if strategy.kind == DIFFUSION else "markers",
        name=plain(strategy.name),
        legendgroup=group,
        line={"color": shade, "dash": dash(number)},
        marker=marker,
        error_y=bars,
        text=[plain(describe(cell)) for cell in cells],
        hovertemplate="%{text}<extra></extra>",
    )
    figure.add_trace(points)


def _level(figure: Any, number: int, strategy: Strategy) -> None:
    best = max(strategy.cells, key=lambda cell: cell.value or 0.0)
    note = f"{plain(strategy.name)} (cost not recorded)"
    line = {"color": colour(number), "dash": "dash", "width": 2}
    figure.add_hline(y=best.value, line=line)
    if best.low is not None and best.high is not None:
        figure.add_hrect(y0=best.low, y1=best.high, line_width=0, fillcolor=clear(colour(number), 0.1))
    figure.add_trace(go.Scatter(x=[None], y=[None], mode="lines", name=note, line=line))  # for the legend


def _ticks(costs: Sequence[float]) -> dict[str, Any]:
    """Return labels at the settings themselves while they are few, else at 1, 2 and 5 of each decade."""
    far_apart = all(b / a > 1.15 for a, b in itertools.pairwise(costs))
    if len(costs) <= 12 and far_apart:
        return {"tickvals": list(costs), "ticktext": [f"{cost:.3g}" for cost in costs]}
    return {"dtick": "D2"}


def _whole_step(size: int) -> int:
    """Return a distance between whole numbers that gives at most about ten labels."""
    return next((step for step in (1, 2, 5, 10, 20, 50, 100, 200) if size / step <= 10), 500)


def _layout(x: str, y: str, series: int) -> dict[str, Any]:
    return {
        "margin": _MARGIN,
        "height": 420 + 22 * max(0, series - 2),
        "xaxis": {"title": {"text": x}, "automargin": True},
        "yaxis": {"title": {"text": y}, "automargin": True},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "xanchor": "left", "x": 0},
        "hoverlabel": {"align": "left"},
    }
