"""Writes the counts of a run as a text table and as JSON."""
import json, subprocess

APP = ("app insert", "app update", "app delete")
ROWS = {
    "acknowledged": "rows acknowledged: inserted or changed by the app", "rows kept in their databases": "rows found in their database after a command, added up",
    "rows rejected": "rows of the app in moult_rejected", "shipped rows rejected": "shipped rows in moult_rejected",
    "sets in quarantine": "sets in quarantine", "rows in quarantine": "rows counted in quarantine", "foreign sets": "of these from before moult",
    "restored": "restores from quarantine", "exports": "exports from quarantine",
    "rows written meanwhile": "rows committed by the app while a command ran", "rows written beside commands": "rows committed by companions of commands", "rows written before recovery": "rows committed by the app after a kill, before recovery",
    "strikes": "commands killed or failed at a system call", "refused": "commands that were refused", "busy": "commands that ended with 75",
    "deep plans compared": "deep plans that were compared with the update that followed",
    "loose": "operations after which the place of some rows was left open",
}


def operations(totals):
    found = {}
    for name, count in totals.items():
        if name.startswith("op "):
            found[name[3:]] = count
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def share(totals):
    """Returns the share of the commands of new stories during which another process committed. The releases of kept stories have no
    table for a companion."""
    return totals["commands beside a commit"] / max(1, totals["commands"] - totals["commands of kept stories"])


def table(totals, seconds):
    lines = [f"{count:9} {name}" for name, count in operations(totals).items()]
    lines.append("")
    lines += [f"{totals[name]:9} {name[4:]}s by the app" for name in APP]
    lines += [f"{totals[name]:9} {text}" for name, text in ROWS.items()]
    lines += [f"{count:9}   {name[7:]}" for name, count in sorted(totals.items()) if name.startswith("loose: ")]
    lines.append(f"{totals['commands beside a commit']:9} commands during which another process committed: {share(totals):.0%}")
    total = totals["operations"]
    lines.append(f"{total:9} operations, {totals['commands']} commands, in {seconds:.0f} s: {total / max(seconds, 0.1):.0f} operations a second")
    return "\n".join(lines)


def write(path, totals, seconds, passed, failed, seed, kept, moult):
    version = subprocess.run([moult, "--version"], capture_output=True, text=True).stdout.strip()
    with open(path, "w") as out:
        json.dump({"passed": passed, "failed": failed, "seed": seed, "kept": kept, "seconds": round(seconds), "moult": version,
                   "counts": dict(sorted(totals.items()))}, out, indent=1)
