"""The matrix of all results, as a page to read."""
import json, os

# `between`: of a chain of releases, some were brought in.
OUTCOMES = ("old", "between", "new", "lost")

HEAD = """# Proof

The built command, struck from outside at every system call that changes something on a disk, over all its threads and
processes. Each number of points is so many runs, each on a fresh store. After each of them:

- whoever opens the databases at that very moment finds all of the old release or all of the new one;
- the exit status, if the command lived to give one, says which of them is there;
- the next command that writes settles it: every database is exactly old or exactly new, all of them together (of a chain of
  releases each is a whole one); what the user wrote and what a release preserves is there; pointer, history and settings agree; no file is left over;
- settling once more changes nothing, not even a time stamp; `verify --deep` finds everything sound;
- applying the release again succeeds.

A point where one of these is not so counts as lost. `make proof` runs all of it again and writes this page (Linux on x86_64;
the power cuts need root, loop devices and mkfs.xfs). A sample of some dozen points a flow is part of `make test`. The tracer is
`scripts/proof/strike.c`, the flows are a table in `scripts/proof/flows.py`, what is checked is in `scripts/proof/trial.py`.

- **kill**: every process of the command is killed before the call; **in a write**: after half of it was written;
  **again**: the settling afterwards is killed, too.
- **EIO**, **ENOSPC**: the call fails, once, or it and every later one; ENOSPC only where a call takes room.
- **power cut**: the file system, a loop-mounted one, is shut down without writing anything more, unmounted and mounted again.

"""


def collect(path, results, skipped):
    """Adds to what earlier runs found; a flow and fault that was run again is replaced."""
    known = json.load(open(path)) if os.path.exists(path) else {}
    for (flow, fault), counts in results.items():
        known.setdefault(flow, {})[fault] = {name: counts[name] for name in OUTCOMES}
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w") as out:
        json.dump(known, out, indent=1)


def write(path, results, flows, faults):
    known = json.load(open(results))
    lines = ["Points tried, and of them ended old + new (of a chain: old + between + new):", "", "| flow | " + " | ".join(faults) + " | lost |",
             "|---|" + "---|" * (len(faults) + 1)]
    total = dict.fromkeys(OUTCOMES, 0)
    for flow in flows:
        cells, lost = [], 0
        for fault in faults:
            counts = known.get(flow, {}).get(fault)
            if counts is None:
                cells.append("not run")
                continue
            ended = [counts[name] for name in OUTCOMES[:-1] if name != "between" or counts.get(name)]
            cells.append(f"{sum(counts.values())}: " + " + ".join(map(str, ended)))
            lost += counts["lost"]
            for name in counts:
                total[name] += counts[name]
        lines.append(f"| {flow} | " + " | ".join(cells) + f" | {lost} |")
    lines += ["", f"Together {sum(total.values())} points: {total['old']} old, {total['between']} between two releases of a chain, "
              f"{total['new']} new, lost: {total['lost']}."]
    with open(path, "w") as out:
        out.write(HEAD + "\n".join(lines) + "\n")
