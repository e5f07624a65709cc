"""Draws charts as SVG that are readable on light and on dark pages."""

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 330, 76, 132, 44, 40
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #33383f }
  .title { font-weight: 600; font-size: 15px; fill: #1c2026 } .grid { stroke: #d6dae0 } .axis { stroke: #7a828c }
  .band { fill: #e9ecf0 } .s0 { --c: #1f66b0 } .s1 { --c: #b4510b } .s2 { --c: #1d7a4a } .s3 { --c: #8a3fa0 }
  path { fill: none; stroke: var(--c); stroke-width: 2 } .name { fill: var(--c); font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    text { fill: #c3cad3 } .title { fill: #eef1f5 } .grid { stroke: #3a414b } .axis { stroke: #8b949e } .band { fill: #2a3038 }
    .s0 { --c: #6db3f2 } .s1 { --c: #f0a060 } .s2 { --c: #63c68f } .s3 { --c: #cf94e0 }
  }
"""


def short(number):
    for size, unit in [(1e9, "G"), (1e6, "M"), (1e3, "k")]:
        if number >= size:
            return f"{number / size:g} {unit}"
    return f"{number:g}"


def step(most):
    """Returns a round distance between grid lines, for about five lines."""
    size = 10 ** (len(str(int(most / 5 or 1))) - 1)
    return next(size * factor for factor in (1, 2, 5, 10, 20) if most / (size * factor) <= 5.5)


class Chart:
    """A chart of lines over the hours `0..<hours`."""

    def __init__(self, title, description, hours, most, marks, ticks, unit=""):
        self.hours = hours
        self.distance = step(most)
        self.most = self.distance * -(-most // self.distance)
        self.parts, self.ends = [], []
        self.title, self.description = title, description
        for number in range(int(self.most / self.distance) + 1):
            y = self.y(number * self.distance)
            self.parts += [f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>',
                           f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{short(number * self.distance)}{unit}</text>']
        for hour, label in ticks:
            self.parts.append(f'<text x="{self.x(hour):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{label}</text>')
        for begin, end, label in marks:
            self.parts.insert(0, f'<rect class="band" x="{self.x(begin):.1f}" y="{TOP}" width="{max(2, self.x(end) - self.x(begin)):.1f}" '
                                 f'height="{HEIGHT - TOP - BOTTOM}"/>')
            self.parts.append(f'<text x="{self.x(begin) + 4:.1f}" y="{TOP + 14}">{label}</text>')

    def x(self, hour):
        return LEFT + (WIDTH - LEFT - RIGHT) * hour / self.hours

    def y(self, value):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / self.most

    def line(self, color, name, points):
        points = list(points)
        d = "M" + "L".join(f"{self.x(hour):.1f},{self.y(value):.1f}" for hour, value in points)
        self.parts.append(f'<path class="s{color}" d="{d}"/>')
        self.ends.append([self.y(points[-1][1]), color, name])

    def __str__(self):
        # Labels at the ends of lines, with some distance between them.
        previous = -100
        for end in sorted(self.ends):
            end[0] = max(end[0], previous + 18)
            previous = end[0]
            self.parts.append(f'<text class="name s{end[1]}" x="{WIDTH - RIGHT + 8}" y="{end[0] + 4:.1f}">{end[2]}</text>')
        bottom = HEIGHT - BOTTOM
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
            f"<title>{self.title}</title><desc>{self.description}</desc><style>{STYLE}</style>",
            f'<text class="title" x="{LEFT}" y="24">{self.title}</text>', *self.parts,
            f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>', "</svg>", ""])


DAYS = [(24 * day + 12, name) for day, name in enumerate(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])]


def requests(result):
    halves = [[total / 1800 for _, total in spans] for spans in [*result["requests"], result["failed"]]]
    down = [second / 3600 for second in result["outage"]]
    chart = Chart("Requests per second, means of half an hour",
                  "Two mirrors share the machines. While mirror a is down, mirror b answers for both.", 168,
                  max(map(max, halves)), [(*down, "a is down")], DAYS)
    for color, (name, values) in enumerate(zip(["mirror a", "mirror b", "unanswered by a"], halves)):
        chart.line(color, name, ((number / 2 + 0.25, value) for number, value in enumerate(values)))
    return chart


def releases(result):
    withdrawn = result["withdrawal"] / 3600
    chart = Chart("Machines on each release", "2.0.0 goes to a tenth of the machines and is withdrawn; 2.0.1 replaces it.",
                  168, result["machines"], [(withdrawn, withdrawn, "2.0.0 is withdrawn")], DAYS)
    for index, name in enumerate(["1.0.0", "2.0.0", "2.0.1"]):
        chart.line(index, name, ((hour + 1, counts[index]) for hour, counts in enumerate(result["releases"])))
    return chart


def leaving(staged, at_once):
    """Returns a chart of the machines that still have the withdrawn release, over three days."""
    chart = Chart("Machines on the withdrawn release, by hours since it was withdrawn",
                  "The fix is published 17 hours after the withdrawal, in stages or to all machines at once.", 72,
                  staged["withdrawn"], [], [(hour, f"{hour} h") for hour in range(0, 72, 12)])
    for color, (name, result) in enumerate([("fix in stages", staged), ("fix to all", at_once)]):
        there, points = result["withdrawn"], [(0, result["withdrawn"])]
        for minute, count in enumerate(result["left"][:72 * 60]):
            there -= count
            if minute % 10 == 9:
                points.append(((minute + 1) / 60, there))
        chart.line(color, name, points)
    return chart


def all(staged, at_once):
    return {"requests": str(requests(staged)), "releases": str(releases(staged)), "leaving": str(leaving(staged, at_once))}
