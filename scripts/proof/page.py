"""Writes the table of all results, by kind of failure, to the page that explains it; .build/proof.json has them by flow, too."""
import collections, json, os, re, time

from harness import summary

# `between`: only some releases of a chain were installed.
OUTCOMES = ("old", "between", "new", "lost")

BEGIN, END = "<!-- `make proof` writes this table -->", "<!-- the end of the table -->"


def collect(path, commit, flow, calls, counts):
    """Adds the results of a flow to a file, and replaces those of faults that were tried again, and those of another commit."""
    known = json.load(open(path)) if os.path.exists(path) else {}
    if known.get("commit") != commit:
        known = {"commit": commit, "flows": {}}
    known["flows"].setdefault(flow, {"faults": {}})["calls"] = calls
    known["flows"][flow]["faults"] |= counts
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w") as out:
        json.dump(known, out, indent=1)


def cells(sums):
    return " | ".join(f"{sums[name]:,}" for name in ("points", "tried", "checked", "old", "between", "new", "lost"))


def write(path, results, flows, faults, commit, jobs, seconds):
    """Writes the results into the block of the page; a run that is not complete says so there."""
    known = json.load(open(results))["flows"]
    by_fault = collections.defaultdict(collections.Counter)
    for entry in known.values():
        for fault, counts in entry["faults"].items():
            counts = {name: counts.get(name, 0) for name in (*OUTCOMES, "tried", "checked")}
            counts["points"] = sum(counts[name] for name in OUTCOMES)
            by_fault[fault].update(counts)
    total = sum(by_fault.values(), collections.Counter())
    missing = [flow for flow in flows if flow not in known] + [fault for fault in faults if fault not in by_fault]
    head = "points | tried | tried, too | old | between | new | lost |"
    line = "|---|" + "---:|" * 7
    lines = [f"Commit {commit[:12]}, {time.strftime('%Y-%m-%d', time.gmtime())}, {seconds / 60:.0f} minutes, {jobs} points at a time: "
             f"{total['points']:,} points at {sum(known[flow]['calls'] for flow in known):,} calls, **{total['lost']} lost**. {total['tried']:,} points were tried and "
             f"stand for the others; {total['checked']:,} of the others were tried, too, with the same result."]
    if missing:
        lines.append(f"Not run: {'; '.join(missing)}.")
    lines += ["", f"| fault | {head}", line, *(f"| {fault} | {cells(by_fault[fault])} |" for fault in faults if fault in by_fault)]
    with open(path) as page:
        before, _, after = re.split(f"{BEGIN}|{END}", page.read())
    with open(path, "w") as page:
        page.write(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after)
    summary.write(path, "make proof", f"{total['points']:,} points in {len(known)} flows", total["lost"])
