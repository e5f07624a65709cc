"""Writes the tables of all results to the page that explains them."""
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
    by_flow, by_fault = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    for flow, entry in known.items():
        for fault, counts in entry["faults"].items():
            counts = {name: counts.get(name, 0) for name in (*OUTCOMES, "tried", "checked")}
            counts["points"] = sum(counts[name] for name in OUTCOMES)
            by_flow[flow].update(counts)
            by_fault[fault].update(counts)
    total = sum(by_flow.values(), collections.Counter())
    missing = [flow for flow in flows if flow not in known] + [fault for fault in faults if fault not in by_fault]
    head = "points | tried | tried, too | old | between | new | lost |"
    line = "|---|" + "---:|" * 7
    lines = [f"Commit {commit[:12]}, {time.strftime('%Y-%m-%d', time.gmtime())}, {seconds / 60:.0f} minutes, {jobs} points at a time: "
             f"{total['points']:,} points at {sum(known[flow]['calls'] for flow in known):,} calls, **{total['lost']} lost**. {total['tried']:,} points were tried and "
             f"stand for the others; {total['checked']:,} of the others were tried, too, with the same result."]
    if missing:
        lines.append(f"Not run: {'; '.join(missing)}.")
    lines += ["", f"| fault | {head}", line, *(f"| {fault} | {cells(by_fault[fault])} |" for fault in faults if fault in by_fault)]
    lines += ["", f"| flow (calls) | {head}", line, *(f"| {flow} ({known[flow]['calls']}) | {cells(by_flow[flow])} |" for flow in flows if flow in known)]
    with open(path) as page:
        before, _, after = re.split(f"{BEGIN}|{END}", page.read())
    with open(path, "w") as page:
        page.write(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after)
    summary.write(path, "make proof", f"{total['points']:,} points in {len(known)} flows", total["lost"])
