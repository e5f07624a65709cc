"""Writes the table of all results to the page that explains it."""
import collections, json, os, re

from harness import summary

# `between`: only some releases of a chain were installed.
OUTCOMES = ("old", "between", "new", "lost")

BEGIN, END = "<!-- `make proof` writes this table -->", "<!-- the end of the table -->"


def collect(path, results, skipped):
    """Adds results to those of earlier runs, and replaces the results of flows and faults that were run again."""
    known = json.load(open(path)) if os.path.exists(path) else {}
    for (flow, fault), counts in results.items():
        known.setdefault(flow, {})[fault] = {name: counts[name] for name in OUTCOMES}
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w") as out:
        json.dump(known, out, indent=1)


def write(path, results, flows, faults, applies):
    """Writes the results into the table of the page; flows that were not run now keep their old results."""
    known = json.load(open(results)) if os.path.exists(results) else {}
    with open(path) as page:
        before, table, after = re.split(f"{BEGIN}|{END}", page.read())
    earlier = {line.split(" | ")[0].removeprefix("| "): line for line in table.splitlines() if line.startswith("| ")}
    lines = ["| flow | kinds of failure | points | lost |", "|---|---|--:|--:|"]
    for flow in flows:
        kinds = sum((flow, fault) in applies for fault in faults)
        if flow not in known:
            lines.append(earlier.get(flow, f"| {flow} | 0/{kinds} | 0 | 0 |"))
            continue
        total = collections.Counter()
        for counts in known[flow].values():
            total.update(counts)
        lines.append(f"| {flow} | {len(known[flow])}/{kinds} | {sum(total.values())} | {total['lost']} |")
    points, lost = (sum(int(line.split(" | ")[column].rstrip(" |")) for line in lines[2:]) for column in (2, 3))
    with open(path, "w") as page:
        page.write(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after)
    summary.write(path, "make proof", f"{points:,} points in {len(flows)} flows", lost)
