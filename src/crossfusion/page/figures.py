"""Pictures as SVG."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crossfusion.hierarchy import Hierarchy
from crossfusion.page.answers import Answers, value
from crossfusion.page.markup import attributes, element, escaped, number, percent, shortened

COLOURS = 6  # of the style sheet, chosen to be told apart by colour-blind readers
WIDTH, HEIGHT = 460, 340
LEFT, RIGHT, TOP, BOTTOM = 46, 16, 34, 44
LINE = 19  # height of a line of text
LETTER = 8  # width of a letter, at most
TICKS = 5
LEAST = 0.01  # that an axis reaches
Spot = tuple[float, float]


def swatch(colour: int) -> str:
    """A spot of the colour of a factor."""
    return element("i", class_=f"swatch c{colour % COLOURS}", aria_hidden="true")


def bar(found: Hierarchy, colours: Mapping[str, int]) -> str:
    """Levels as one stacked bar."""
    if not 0 < found.distance < math.inf:
        return ""
    start, shapes = 0.0, []
    for entry in found.levels:
        width = 100 * entry.distance / found.distance
        colour = f"c{colours[entry.level] % COLOURS}"
        shapes.append(_shape("rect", x=_px(start), y=0, width=_px(width), height=10, class_=colour))
        start += width
    said = ", ".join(
        f"{shortened(entry.level)} {number(entry.distance)} ({percent(entry.share)})" for entry in found.levels
    )
    return _figure("Levels of the hierarchy", said, shapes, "0 0 100 10", class_="bar", preserveAspectRatio="none")


@dataclass(frozen=True)
class _Scale:
    """Distances to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, distance: float) -> float:
        return self.start + (distance - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        step = _step(self.high - self.low)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [k * step for k in range(first, last + 1)]


def _step(span: float) -> float:
    """A round step that divides a span into about TICKS."""
    power = 10.0 ** math.floor(math.log10(span / TICKS))
    return next((k * power for k in (1, 2, 5) if span / (k * power) <= TICKS), 10 * power)


def _scale(values: Sequence[float], start: float, end: float) -> _Scale:
    """From 0, or below where a value is, to the next step above the largest."""
    low, high = min([0.0, *values]), max([LEAST, *values])
    step = _step(1.04 * (high - low))
    return _Scale(step * math.floor(low / step), step * math.ceil(1.04 * high / step), start, end)


def plane(answers: Answers) -> str:
    """CFD(batch | label) to the right, CFD(label | batch) upwards, and rings for both before adjusting."""
    drawn = _drawn(answers)
    if not drawn:
        return element("p", "There is nothing to draw: no batch has finite distances.", class_="note")
    x, y = (
        _scale([spot[axis] for *_, ring, point in drawn for spot in (ring, point)], *ends)
        for axis, ends in enumerate([(LEFT, WIDTH - RIGHT), (HEIGHT - BOTTOM, TOP)])
    )
    shapes, names = _axes(x, y, shortened(answers.given, 14)), []
    heights = _apart([y(point[1]) for *_, point in drawn])
    for (name, ring, point), height in zip(drawn, heights, strict=True):
        ends = (x(ring[0]), y(ring[1])), (x(point[0]), y(point[1]))
        shapes += _spot(f"c{answers.colours[name] % COLOURS}", *ends)
        names.append(_name(name, *ends, height))
    said = "; ".join(f"{shortened(name)} at {number(point[0])}, {number(point[1])}" for name, _, point in drawn)
    return _figure("Batch versus biology", said, [*shapes, *names], f"0 0 {WIDTH} {HEIGHT}", class_="plane")


def _drawn(answers: Answers) -> list[tuple[str, Spot, Spot]]:
    """Name, ring and point of each batch whose distances are finite."""
    spots = [
        (batch.name, (value(batch.plain), value(answers.labels)), (value(batch.adjusted), value(batch.biology)))
        for batch in answers.batches
    ]
    return [entry for entry in spots if all(map(math.isfinite, (*entry[1], *entry[2])))]


def _axes(x: _Scale, y: _Scale, given: str) -> list[str]:
    shapes = []
    for tick in x.ticks():
        shapes.append(_shape("line", x1=_px(x(tick)), x2=_px(x(tick)), y1=TOP, y2=HEIGHT - BOTTOM, class_="grid"))
        shapes.append(_text(_tick(tick), x(tick), HEIGHT - BOTTOM + LINE, "middle"))
    for tick in y.ticks():
        shapes.append(_shape("line", x1=LEFT, x2=WIDTH - RIGHT, y1=_px(y(tick)), y2=_px(y(tick)), class_="grid"))
        shapes.append(_text(_tick(tick), LEFT - 7, y(tick) + 4, "end"))
    shapes.append(_text(f"CFD(batch | {given}) →", WIDTH - RIGHT, HEIGHT - 6, "end", class_="axis"))
    shapes.append(_text(f"↑ CFD({given} | batch)", 4, 14, "start", class_="axis"))
    return shapes


def _spot(colour: str, ring: Spot, point: Spot) -> list[str]:
    """A point, its ring and the line between them."""
    ends = {"x1": _px(ring[0]), "y1": _px(ring[1]), "x2": _px(point[0]), "y2": _px(point[1])}
    return [
        _shape("line", **ends, class_=f"link {colour}"),
        _shape("circle", cx=_px(ring[0]), cy=_px(ring[1]), r=6.5, class_=f"ring {colour}"),
        _shape("circle", cx=_px(point[0]), cy=_px(point[1]), r=5, class_=f"point {colour}"),
    ]


def _name(name: str, ring: Spot, point: Spot, height: float) -> str:
    """A point's name, on the side without the line where there is room, and clear of the ring."""
    text = shortened(name, 16)
    room = 12 + LETTER * len(text)
    right = max(x for x in (point[0], ring[0]) if x - point[0] < room)
    if (ring[0] > point[0] and point[0] - room > LEFT) or right + room > WIDTH:
        return _text(text, point[0] - 12, height + 4, "end", class_="spot")
    return _text(text, right + 12, height + 4, "start", class_="spot")


def _apart(heights: Sequence[float]) -> list[float]:
    """Heights of labels moved down until no two are closer than a line."""
    moved = list(heights)
    last = -math.inf
    for position in sorted(range(len(moved)), key=lambda k: heights[k]):
        moved[position] = last = max(moved[position], last + LINE)
    return moved


def _figure(title: str, description: str, shapes: Sequence[str], view: str, **values: str) -> str:
    about = element("title", escaped(title)) + element("desc", escaped(description))
    return element("svg", about + "".join(shapes), viewBox=view, role="img", **values)


def _shape(tag: str, **values: object) -> str:
    return f"<{tag}{attributes(**values)}/>"


def _text(text: str, x: float, y: float, anchor: str, class_: str = "tick") -> str:
    return element("text", escaped(text), x=_px(x), y=_px(y), text_anchor=anchor, class_=class_)


def _tick(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")


def _px(length: float) -> str:
    return f"{length:.1f}"
