"""Runs the programs of a job in turn, and records a row for each comparison."""
import argparse, os, statistics, subprocess, sys, tempfile, time

parser = argparse.ArgumentParser(prog="scripts/bench/run")
parser.add_argument("moult")
parser.add_argument("--quick", action="store_true", help="use small data and few runs")
parser.add_argument("--report", metavar="FILE", help="write the tables as Markdown, with charts in a directory next to it")
parser.add_argument("--only", default="", metavar="WORD", help="run only jobs whose name contains this word")
parser.add_argument("--curves", action="store_true", help="only measure how times grow")
parser.add_argument("--before", metavar="OTHER", help="compare updates of shared databases with those of this earlier moult")
options = parser.parse_args()

moult = os.path.abspath(options.moult)
work = tempfile.mkdtemp(prefix="moult-bench-", dir=os.environ.get("TMPDIR", "/var/tmp"))
sizes = [4, 24] if options.quick else [4, 100, 200, 1200]
small, middle, large = sizes[0], 24 if options.quick else 200, sizes[-1]
rounds = 3 if options.quick else 5
load = f"{os.getloadavg()[0]:.1f}"
table = []
# The accepted exit statuses: 2 means that `plan` lists changes, or that `diff` found differences.
FINE = (0, 2)


def shell(line, arguments=()):
    subprocess.run(["bash", "-euc", line, "bash", *arguments], cwd=work, check=True, stdout=subprocess.DEVNULL)


def is_wanted(job):
    return options.only in job


def runs_for(megabytes):
    return rounds if megabytes < 500 else 3


def measure(line):
    """Returns the wall time and the CPU time in seconds."""
    # With `exec`, a single command is measured without the shell.
    is_one = not any(mark in line for mark in "|&;(")
    line = f"cd {work}; exec {line}" if is_one else f"cd {work}; {line}"
    start = time.perf_counter()
    pid = os.posix_spawn("/bin/bash", ["bash", "-euc", line], os.environ,
                         file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) not in FINE:
        sys.exit(f"failed: {line}")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime


def memory(line):
    """Returns the peak memory of a process in MiB. This run is not timed, because GNU time takes some time to start."""
    argv = ["/usr/bin/time", "-f", "%M", "-o", f"{work}/memory", "bash", "-euc", line]
    if subprocess.run(argv, cwd=work, stdout=subprocess.DEVNULL).returncode not in FINE:
        sys.exit(f"failed: {line}")
    with open(f"{work}/memory") as file:
        return int(file.read().split()[-1]) / 1024


class Side:
    """One way to do a job. `before` restores the starting state, and is not timed."""

    def __init__(self, name, line, before=":"):
        self.name, self.line, self.before = name, line, before


class Race:
    """Measures all sides of one job, and keeps their medians."""

    def __init__(self, job, sides, runs=rounds):
        self.job = job
        taken, self.memory = {side.name: [] for side in sides}, {}
        for number in range(runs + 1):
            for side in sides:
                shell(side.before)
                os.sync()
                # The first round warms up the caches.
                if number:
                    taken[side.name].append(measure(side.line))
                else:
                    self.memory[side.name] = memory(side.line)
        self.median = {name: [statistics.median(column) for column in zip(*times)] for name, times in taken.items()}

    def row(self, ours, theirs, most=None, cpu_most=None, memory_most=None, job=None):
        (wall, cpu), (wall2, cpu2) = self.median[ours], self.median[theirs]
        keep({"job": job or self.job, "against": theirs, "wall": (wall, wall2), "cpu": (cpu, cpu2), "ratio": wall / wall2,
              "memory": (self.memory[ours], self.memory[theirs]), "at most": most, "cpu at most": cpu_most,
              "memory at most": memory_most})

    def alone(self, ours, most_ms):
        """Records a row whose aim is a time in milliseconds."""
        wall, cpu = self.median[ours]
        keep({"job": self.job, "ms": wall * 1000, "cpu": (cpu, 0), "memory": (self.memory[ours], 0), "at most": most_ms})


def compare(job, most, ours, theirs, before=":", runs=rounds, **aims):
    """Compares two sides, each (name, command), from the same starting state."""
    if is_wanted(job):
        Race(job, [Side(*ours, before), Side(*theirs, before)], runs).row(ours[0], theirs[0], most, **aims)


def figure(job, against, ours, theirs, most):
    """Records a row that compares sizes in bytes."""
    keep({"job": job, "against": against, "bytes": (ours, theirs), "ratio": ours / theirs, "at most": most})


def keep(row):
    table.append(row)
    if "ms" in row:
        print(f"{row['job']:<44} {row['ms']:8.1f} ms   at most {row['at most']} ms{missed(row)}", flush=True)
    elif "bytes" in row:
        ours, theirs = row["bytes"]
        print(f"{row['job']:<44} {row['against']:<34} {ours:12,} {theirs:12,} {row['ratio']:6.3f}x bytes{aim_text(row)}", flush=True)
    else:
        (wall, wall2), (cpu, cpu2), (ours, theirs) = row["wall"], row["cpu"], row["memory"]
        print(f"{row['job']:<44} {row['against']:<34} {wall:8.4f} s {wall2:8.4f} s {row['ratio']:6.2f}x wall "
              f"{cpu / max(cpu2, 1e-4):6.2f}x cpu {ours:5.0f} {theirs:5.0f} MiB{aim_text(row)}", flush=True)


def aim_text(row):
    return "" if row["at most"] is None else f" at most {row['at most']}x{missed(row)}"


def misses(row):
    """Returns the aims that a row misses: "time" or "size", "processor", "memory"."""
    found = []
    value = row["ms"] if "ms" in row else row["ratio"]
    if row["at most"] is not None and value > row["at most"]:
        found.append("size" if "bytes" in row else "time")
    if row.get("cpu at most") and row["cpu"][0] > row["cpu at most"] * row["cpu"][1]:
        found.append("processor")
    if row.get("memory at most") and row["memory"][0] > row["memory at most"]:
        found.append("memory")
    return found


def missed(row):
    found = misses(row)
    return f": MISSED ({', '.join(found)})" if found else ""


def size(path):
    return os.path.getsize(os.path.join(work, path))
