"""Quality against cost as an inline SVG picture for the static snapshot: no script, colours from the page around it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leaderboard.data.board import DIFFUSION, Cell
from leaderboard.data.pareto import Strategy
from leaderboard.markup import Markup, el, text
from leaderboard.theme import colour

WIDTH, HEIGHT = 480, 320
LEFT, RIGHT, TOP, BOTTOM = 48, 16, 12, 44
_DASH = ("none", "6 4", "2 3", "8 3 2 3")
_ROUND = 5


class _Scale:
    """Maps cost (logarithmic) and score (percent) to the picture."""

    def __init__(self, costs: Sequence[float], scores: Sequence[float]) -> None:
        low, high = math.log10(min(costs)), math.log10(max(costs))
        pad = 0.05 * (high - low) or 0.3
        self.x0, self.x1 = low - pad, high + pad
        self.y0 = max(0.0, _ROUND * math.floor(min(scores) / _ROUND))
        self.y1 = min(100.0, _ROUND * math.ceil(max(scores) / _ROUND + 1e-9))
        if self.y0 >= self.y1:
            self.y0, self.y1 = max(0.0, self.y1 - 10), min(100.0, self.y0 + 10)

    def x(self, cost: float) -> float:
        return round(LEFT + (math.log10(cost) - self.x0) / (self.x1 - self.x0) * (WIDTH - LEFT - RIGHT), 1)

    def y(self, score: float) -> float:
        return round(HEIGHT - BOTTOM - (score - self.y0) / (self.y1 - self.y0) * (HEIGHT - TOP - BOTTOM), 1)


def pareto_svg(found: Sequence[Strategy], field: str, axis: str) -> Markup | None:
    """Return the picture with its legend; None when no point's cost (``field`` of the cells) is known."""
    curves = [(one, [cell for cell in one.cells if getattr(cell, field)]) for one in found]
    curves = [(one, sorted(cells, key=lambda cell: float(getattr(cell, field)))) for one, cells in curves if cells]
    every = [cell for _, cells in curves for cell in cells]
    if not every:
        return None
    bounds = [bound for cell in every for bound in (cell.low, cell.value, cell.high) if bound is not None]
    scale = _Scale([float(getattr(cell, field)) for cell in every], bounds)
    drawn = [_curve(number, one, cells, field, scale) for number, (one, cells) in enumerate(curves)]
    title = el("title", f"Score in percent against {axis}")
    picture = el(
        "svg", title, *_axes(scale, axis), *drawn, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", class_="dare-svg"
    )
    return el("figure", picture, el("figcaption", *[_key(n, one) for n, (one, _) in enumerate(curves)]))


def _curve(number: int, strategy: Strategy, cells: Sequence[Cell], field: str, scale: _Scale) -> Markup:
    shade = colour(number)
    spots = [(scale.x(float(getattr(cell, field))), cell) for cell in cells]
    parts: list[Markup] = []
    if len(cells) > 1 and strategy.kind == DIFFUSION:
        line = " ".join(f"{x},{scale.y(cell.value or 0.0)}" for x, cell in spots)
        parts.append(
            el("polyline", points=line, fill="none", stroke=shade, stroke_width="2", stroke_dasharray=_dash(number))
        )
    for x, cell in spots:
        if cell.low is not None and cell.high is not None:
            y1, y2 = scale.y(cell.low), scale.y(cell.high)
            parts.append(el("line", x1=x, x2=x, y1=y1, y2=y2, stroke=shade, stroke_width="1.5"))
        note = el("title", f"{cell.model}: {cell.value:.1f} %, n {cell.n}")
        parts.append(_spot(x, scale.y(cell.value or 0.0), shade, strategy.kind != DIFFUSION, note))
    return el("g", *parts)


def _spot(x: float, y: float, shade: str, square: bool, note: Markup) -> Markup:
    if square:
        return el("rect", note, x=x - 5, y=y - 5, width=10, height=10, fill=shade)
    return el("circle", note, cx=x, cy=y, r=5, fill=shade)


def _axes(scale: _Scale, axis: str) -> list[Markup]:
    parts = []
    step = _step(scale.y1 - scale.y0)
    for level in range(int(scale.y0), int(scale.y1) + 1, step):
        y = scale.y(level)
        parts.append(el("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, stroke="currentColor", stroke_opacity="0.2"))
        parts.append(_label(LEFT - 6, y + 4, f"{level}", "end"))
    for cost in _ticks(scale.x0, scale.x1):
        parts.append(_label(scale.x(cost), HEIGHT - BOTTOM + 18, f"{cost:g}", "middle"))
    parts.append(_label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, axis, "middle"))
    return parts


def _ticks(low: float, high: float) -> list[float]:
    """Return round costs within the axis: 1, 2, 5 of each decade."""
    decades = range(math.floor(low), math.ceil(high) + 1)
    return [base * 10.0**decade for decade in decades for base in (1, 2, 5) if low <= math.log10(base) + decade <= high]


def _step(span: float) -> int:
    return next((step for step in (1, 2, 5, 10, 20) if span / step <= 8), 25)


def _label(x: float, y: float, words: str, anchor: str) -> Markup:
    return el("text", text(words), x=x, y=y, text_anchor=anchor, fill="currentColor", font_size="14")


def _key(number: int, strategy: Strategy) -> Markup:
    line = el("line", x1=0, x2=26, y1=6, y2=6, stroke=colour(number), stroke_width="3", stroke_dasharray=_dash(number))
    return el("div", el("svg", line, width="26", height="12", aria_hidden="true"), f" {strategy.name}")


def _dash(number: int) -> str:
    return _DASH[(number // 6) % len(_DASH)]
