"""Measures how times grow with databases, releases, and the contents of stores and feeds; draws and checks the curves."""
import fcntl, json, os, signal, statistics

from harness import releases

import chart
from data import database, larger, shared_releases
from measure import is_wanted, measure, memory, moult, options, shell, work

# The number of the packed release; earlier releases are copies of its manifest.
NEWEST = 1_000_000


class Curve:
    """The times of jobs at growing sizes. Each job is a tuple (name, command, "flat" or "linear")."""

    def __init__(self, name, unit, sizes, jobs, runs=5):
        self.name, self.unit, self.sizes, self.runs = name, unit, sizes, runs
        self.shape = {name: shape for name, _, shape in jobs}
        self.lines = {name: line for name, line, _ in jobs}
        self.points = {name: [] for name, _, _ in jobs}
        self.memory = {name: [] for name, _, _ in jobs}

    def measure(self, before=":"):
        """Measures the next point of each job; `before` restores the starting state."""
        for name, line in self.lines.items():
            times = []
            for number in range(self.runs + 1):
                shell(before)
                if number:
                    times.append(measure(line)[0])
                else:
                    self.memory[name].append(memory(line))
            self.points[name].append(statistics.median(times))
            print(f"{self.name}: {self.sizes[len(self.points[name]) - 1]:>9,} {self.unit:<12} {name:<28} "
                  f"{self.points[name][-1] * 1000:9.1f} ms {self.memory[name][-1]:5.0f} MiB", flush=True)

    def verdict(self, name):
        """Returns the growth of the curve in words, and whether the curve has the expected shape."""
        points = self.points[name]
        if self.shape[name] == "flat":
            return f"{points[-1] / points[0]:.1f} times the first", points[-1] <= 2 * points[0]
        # The first point is subtracted, because it is mostly the time to start a process.
        if len(points) < 3:
            return f"{points[-1] / points[0]:.1f} times the first", points[-1] / points[0] <= 2 * self.sizes[-1] / self.sizes[0]
        growth = (points[-1] - points[0]) / max(points[-2] - points[0], 1e-3)
        steps = (self.sizes[-1] - self.sizes[0]) / (self.sizes[-2] - self.sizes[0])
        return f"{growth:.1f} times for {steps:.1f} times as many", growth <= 2 * steps


def draw(page):
    """Measures all curves and returns their Markdown; if a page is given, writes the charts to a directory next to it."""
    makers = (databases_size, databases_count, plans, feeds, generations, histories, leases)
    curves = [make() for make in makers if is_wanted(make.__name__)]
    lines = ["## How times grow", "", "Measured by `make bench CURVES=1` and `make bench-report`. Times are medians. *flat* means at most "
             "twice the first point, *linear* means in proportion to the size.", ""]
    for curve in curves:
        if page:
            directory = os.path.join(os.path.dirname(os.path.abspath(page)), "growth")
            os.makedirs(directory, exist_ok=True)
            file = f"{curve.name.replace(' ', '-')}.svg"
            with open(os.path.join(directory, file), "w") as out:
                out.write(chart.svg(f"{curve.name}: {curve.unit}", curve.sizes, curve.points))
            lines += [f"![{curve.name}](growth/{file})", ""]
        lines += [f"| {curve.name}: {curve.unit} | " + " | ".join(f"{size:,}" for size in curve.sizes) + " | memory | should be | is |",
                  "|---|" + "--:|" * (len(curve.sizes) + 1) + "---|---|"]
        for name in curve.points:
            text, is_right = curve.verdict(name)
            used = f"{min(curve.memory[name]):.0f} to {max(curve.memory[name]):.0f} MiB"
            lines.append(f"| {name} | " + " | ".join(duration(value) for value in curve.points[name])
                         + f" | {used} | {curve.shape[name]} | {text if is_right else f'**{text}**'} |")
            print(f"{curve.name}, {name}: {curve.shape[name]}: {text}{'' if is_right else ': MISSED'}", flush=True)
        lines.append("")
    return "\n".join(lines)


def duration(value):
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.1f} ms"


# Setup

def init(store, arguments=""):
    return f"chmod -R u+w {store} 2>/dev/null || :; rm -rf {store}; {moult} init -q {store} --product org.example.bench {arguments}"


def packed(directory, count=1):
    """Packs a release with this many databases, and creates missing ones; returns the path of its manifest."""
    os.makedirs(f"{work}/{directory}", exist_ok=True)
    names = [f"food{number}" for number in range(count)]
    for name in names:
        if not os.path.exists(f"{work}/{directory}/{name}.db"):
            releases.database(f"{work}/{directory}/{name}.db", f"CREATE TABLE {name}(id INTEGER PRIMARY KEY, name TEXT); INSERT INTO {name} VALUES(1, 'bread');")
    draft = releases.draft("org.example.bench", "1.0.0", NEWEST, {name: {"kind": "reference", "source": f"{name}.db"} for name in names})
    return os.path.relpath(releases.pack(moult, f"{work}/{directory}", draft, "."), work)


def renamed(manifest, version, sequence):
    """Makes a release with the content of another release and returns its path. Only the manifest is new, so a thousand
    releases take little time."""
    with open(f"{work}/{manifest}") as file:
        content = json.load(file)
    path = manifest.replace("1.0.0", version)
    with open(f"{work}/{path}", "w") as file:
        json.dump(content | {"version": version, "sequence": sequence}, file)
    return path


# The curves

def databases_size():
    sizes = [4, 24] if options.quick else [4, 40, 400, 4000]
    release = "size/bench-1.0.0.json"
    curve = Curve("database", "MB", sizes, [
        ("apply", f"{moult} apply -q {release} --store grow", "linear"), ("plan", f"{moult} plan {release} --store fresh", "flat"),
        ("apply with nothing to do", f"{moult} apply -q {release} --store kept", "flat"), ("status", f"{moult} status --store kept", "flat")], 3)
    for size in sizes:
        shell("rm -rf size; mkdir size")
        if size > 400:
            larger(f"{work}/size/food0.db", f"{work}/size400.db", size // 400)
        else:
            database(f"{work}/size/food0.db", size)
        if size == 400:
            shell("cp size/food0.db size400.db")
        packed("size")
        shell(f"{init('fresh')}; {init('kept')}; {moult} apply -q {release} --store kept")
        curve.measure(init("grow"))
    shell("chmod -R u+w grow kept; rm -rf size size400.db grow kept")
    return curve


def databases_count():
    sizes = [1, 2, 5, 10]
    release = "count/bench-1.0.0.json"
    curve = Curve("databases in a release", "databases", sizes, [
        ("apply", f"{moult} apply -q {release} --store grow", "linear"), ("plan", f"{moult} plan {release} --store fresh", "flat"),
        ("apply with nothing to do", f"{moult} apply -q {release} --store kept", "flat"), ("status", f"{moult} status --store kept", "flat")])
    for size in sizes:
        shell("rm -rf count")
        packed("count", size)
        shell(f"{init('fresh')}; {init('kept')}; {moult} apply -q {release} --store kept")
        curve.measure(init("grow"))
    return curve


def plans():
    sizes = [4, 16] if options.quick else [4, 16, 48]
    curve = Curve("plans of an update", "shared databases", sizes, [
        (verb, "", "linear") for verb in ("apply", "plan", "plan --deep")])
    for size in sizes:
        directory = f"plans{size}"
        first, second = shared_releases(directory, size)
        for verb in curve.lines:
            curve.lines[verb] = f"{moult} {verb} {second} --store {directory}/store"
        shell(f"{moult} init -q {directory}/store --product org.example.bench")
        curve.measure(f"{moult} apply -q --follow match {first} --store {directory}/store")
    return curve


def feeds():
    sizes = [10, 1000] if options.quick else [10, 1000, 10_000, 100_000]
    curve = Curve("feed", "releases", sizes, [
        ("check", f"{moult} check --store follows", "linear"), ("apply with nothing to do", f"{moult} apply -q --store newest", "linear"),
        ("status", f"{moult} status --store newest", "flat")])
    manifest = packed("feed")
    shell(f"test -e bench.key || {moult} keygen -q --no-password bench; {moult} publish -q public {manifest} -k bench.key")
    path = f"{work}/public/feed.json"
    with open(path) as file:
        feed = json.load(file)
    first = feed["releases"][0]
    for size in sizes:
        feed["releases"] = [{**first, "version": f"0.{number}.0", "sequence": number + 1} for number in range(size - 1)] + [first]
        with open(path, "w") as file:
            json.dump(feed, file)
        shell(f"""rm -f public/feed.json*.minisig; {moult} sign -q -k bench.key public/feed.json
                  {init('follows', '--key bench.pub --feed public/feed.json')}
                  {init('newest', '--key bench.pub --feed public/feed.json')}; {moult} apply -q --store newest""")
        curve.measure()
    return curve


def generations():
    sizes = [2, 20] if options.quick else [2, 50, 1000]
    curve = Curve("kept generations", "generations", sizes, [
        ("status", f"{moult} status --store kept", "flat"), ("plan", f"{moult} plan generations/bench-1.0.0.json --store kept", "flat"),
        ("apply with nothing to do", f"{moult} apply -q newest.json --store kept", "flat")])
    manifest = packed("generations")
    shell(init("kept"))
    releases.set_settings(f"{work}/kept", keep=1000)
    made = [renamed(manifest, f"0.{number}.0", number + 1) for number in range(sizes[-1])]
    done = 0
    for size in sizes:
        shell("\n".join(f"{moult} apply -q {path} --store kept" for path in made[done:size]))
        done = size
        curve.lines["apply with nothing to do"] = f"{moult} apply -q {made[size - 1]} --store kept"
        curve.measure()
    return curve


def histories():
    sizes = [10, 1000] if options.quick else [10, 1000, 100_000, 1_000_000]
    curve = Curve("history", "lines", sizes, [
        ("status", f"{moult} status --store kept", "flat"), ("history -n 10", f"{moult} history -n 10 --store kept", "flat"),
        ("apply with nothing to do", f"{moult} apply -q history/bench-1.0.0.json --store kept", "flat")])
    manifest = packed("history")
    shell(f"chmod -R u+w kept || :; {init('kept')}; {moult} apply -q {manifest} --store kept")
    path = f"{work}/kept/.moult/history.jsonl"
    with open(path) as file:
        line = file.read().strip().split("\n")[-1]
    for size in sizes:
        with open(path, "w") as file:
            file.write((line + "\n") * size)
        curve.measure()
    return curve


def leases():
    """Measures stores with many leases. A separate process holds each lease, as apps do."""
    sizes = [1, 50] if options.quick else [1, 100, 1000]
    curve = Curve("leases", "processes", sizes, [
        ("status", f"{moult} status --store kept", "flat"),
        ("apply with nothing to do", f"{moult} apply -q leases/bench-1.0.0.json --store kept", "flat"),
        ("status --processes", f"{moult} status --processes --store kept", "linear")])
    manifest = packed("leases")
    shell(f"{init('kept')}; {moult} apply -q {manifest} --store kept")
    # The file that readers of the installed release lock.
    path = f"{work}/kept/.moult/leases/{os.path.basename(os.readlink(f'{work}/kept/.moult/current'))}"
    holders = []
    try:
        for size in sizes:
            while len(holders) < size:
                holders.append(hold(path))
            curve.measure()
    finally:
        for holder in holders:
            os.kill(holder, signal.SIGKILL)
            os.waitpid(holder, 0)
    return curve


def hold(path):
    ready, told = os.pipe()
    child = os.fork()
    if child == 0:
        file = open(path, "a+b")
        fcntl.lockf(file, fcntl.LOCK_SH, 0, 0)
        os.write(told, b"x")
        signal.pause()
        os._exit(0)
    os.close(told)
    os.read(ready, 1)
    os.close(ready)
    return child
