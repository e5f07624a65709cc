"""Writes the table of all results to the page that explains it."""
import collections, json, os, re

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
    """Writes the results into the table of the page; entries that were not run now keep their old results."""
    known = json.load(open(results))
    with open(path) as page:
        before, table, after = re.split(f"{BEGIN}|{END}", page.read())
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")]
    earlier = {row[0]: dict(zip(rows[0][1:], row[1:])) for row in rows[2:]}
    lines = ["Each cell shows the number of failure points, then how many left the old content + how many the new (for a chain: old + intermediate + new):", "", "| flow | " + " | ".join(faults) + " | lost |",
             "|---|" + "---|" * (len(faults) + 1)]
    total = collections.Counter()
    for flow in flows:
        cells = {fault: earlier.get(flow, {}).get(fault, "not run" if (flow, fault) in applies else "–") for fault in faults}
        was = earlier.get(flow, {}).get("lost", "–")
        lost = 0 if flow in known or was == "–" else int(was)
        for fault, counts in known.get(flow, {}).items():
            ended = [counts[name] for name in OUTCOMES[:-1] if name != "between" or counts.get(name)]
            cells[fault] = f"{sum(counts.values())}: " + " + ".join(map(str, ended))
            lost += counts["lost"]
        for cell in cells.values():
            numbers = [int(number) for number in re.findall(r"\d+", cell)]
            if numbers:
                total.update(points=numbers[0], old=numbers[1], new=numbers[-1], between=numbers[2] if len(numbers) == 4 else 0)
        total["lost"] += lost
        is_run = any(":" in cell for cell in cells.values())
        lines.append(f"| {flow} | " + " | ".join(cells[fault] for fault in faults) + f" | {lost if is_run else '–'} |")
    lines += ["", f"Total: {total['points']} points: {total['old']} old, {total['between']} between two releases of a chain, "
              f"{total['new']} new, lost: {total['lost']}."]
    with open(path, "w") as page:
        page.write(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after)
