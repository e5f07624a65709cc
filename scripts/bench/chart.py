"""Draws a chart of curves. Both axes are logarithmic: constant times give horizontal lines, and linear times give lines that
rise by one decade per decade."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 300, 60, 170, 34, 40
COLOURS = ["#1f6feb", "#c2410c", "#15803d", "#7e22ce"]


def svg(title, sizes, series):
    """Returns the chart as SVG. `series` maps the name of each curve to its seconds at each size."""
    values = [value * 1000 for points in series.values() for value in points]
    x0, x1 = math.log10(sizes[0]), math.log10(sizes[-1])
    y0, y1 = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    y1 = max(y1, y0 + 1)

    def x(size):
        return LEFT + (math.log10(size) - x0) / max(x1 - x0, 1e-9) * (WIDTH - LEFT - RIGHT)

    def y(milliseconds):
        return HEIGHT - BOTTOM - (math.log10(milliseconds) - y0) / (y1 - y0) * (HEIGHT - TOP - BOTTOM)

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<title>{escape(title)}</title>', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
             f'<text x="{LEFT}" y="20" font-weight="bold">{escape(title)}</text>']
    for power in range(y0, y1 + 1):
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(10 ** power):.1f}" y2="{y(10 ** power):.1f}" stroke="#d4d4d4"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y(10 ** power) + 4:.1f}" text-anchor="end">{label(10 ** power)}</text>')
    for size in sizes:
        lines.append(f'<text x="{x(size):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{size:,}</text>')
    places = spread([y(points[-1] * 1000) for points in series.values()])
    for (name, points), colour, place in zip(series.items(), COLOURS, places):
        path = " ".join(f"{x(size):.1f},{y(value * 1000):.1f}" for size, value in zip(sizes, points))
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        lines += [f'<circle cx="{x(size):.1f}" cy="{y(value * 1000):.1f}" r="3" fill="{colour}"/>' for size, value in zip(sizes, points)]
        lines.append(f'<text x="{WIDTH - RIGHT + 10}" y="{place + 4:.1f}" fill="{colour}">{escape(name)}</text>')
    return "\n".join(lines + ["</svg>", ""])


def spread(places, least=14):
    """Moves overlapping labels apart."""
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = list(places)
    for before, after in zip(order, order[1:]):
        moved[after] = max(moved[after], moved[before] + least)
    return moved


def label(milliseconds):
    return f"{milliseconds / 1000:g} s" if milliseconds >= 1000 else f"{milliseconds:g} ms"
