"""Writes the page with the results."""
import os, platform, subprocess

from measure import load, missed, misses, moult, options, table, work

# Text below this heading is written by hand, and stays.
BY_HAND = "## Where the time goes"
GROWTH = "## How times grow"


def write(path, growth):
    """Writes the tables and the curves, or the curves of an earlier run if this run measured none; keeps hand-written
    text."""
    with open(path) as file:
        before, mark, by_hand = file.read().partition(BY_HAND)
    if growth is None:
        _, heading, kept = before.partition(GROWTH)
        growth = heading + kept
    lines = ["# Benchmarks", "", *machine(), ""]
    if table:
        for make in (times, absolutes, bytes_made, all_missed):
            lines += [*make(), ""]
    else:
        lines = before.partition(GROWTH)[0].rstrip().split("\n") + [""]
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n" + (f"{growth.strip()}\n\n" if growth else "") + mark + by_hand)


def machine():
    def first(command):
        return subprocess.check_output(command, text=True).split("\n")[0].strip()

    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())
    megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    versions = [first([moult, "--version"]), "SQLite " + first(["sqlite3", "--version"]).split()[0], first(["bsdtar", "--version"]),
                first(["zstd", "--version"]).strip("* ").replace(", by Yann Collet", "")]
    command = "make bench-report" + (" QUICK=1" if options.quick else "")
    return [f"{os.cpu_count()} cores ({model}), {megabytes} GiB of memory, {first(['findmnt', '-n', '-o', 'FSTYPE', '-T', work])}, Linux "
            f"{platform.release()}, {first(['date', '-u', '+%F'])}, load before {load}. {'; '.join(versions)}.", "",
            f"Measured by `{command}`. Times are medians; the programs run in turn, on the same bytes, with a warm cache. *ratio* is our "
            "time divided by that of the program in the column *against*, the aim is the upper limit, and a number in bold misses it. Unless a level is given, bundles and archives are compressed with "
            "zstd at level 12."]


def times():
    lines = ["| job | against | ours | theirs | ratio (aim) | memory |", "|---|---|--:|--:|--:|--:|"]
    for row in (row for row in table if "wall" in row):
        (wall, wall2), (ours, _) = row["wall"], row["memory"]
        ratio = strong(f"{row['ratio']:.2f}", "time" in misses(row)) + (f" ({aim(row)})" if aim(row) else "")
        used = strong(f"{ours:.0f} MiB", "memory" in misses(row)) if ours else ""
        lines.append(f"| {row['job']} | {against(row)} | {seconds(wall)} | {seconds(wall2)} | {ratio} | {used} |")
    return lines


def absolutes():
    rows = [row for row in table if "ms" in row]
    if not rows:
        return []
    lines = ["| job | time | aim | memory |", "|---|--:|--:|--:|"]
    for row in rows:
        taken = f"{row['ms']:.1f} ms"
        lines.append(f"| {row['job']} | {strong(taken, 'time' in misses(row))} | {row['at most']} ms | {row['memory'][0]:.0f} MiB |")
    return lines


def bytes_made():
    rows = [row for row in table if "bytes" in row]
    if not rows:
        return []
    lines = ["| job | against | our bytes | their bytes | ratio (aim) |", "|---|---|--:|--:|--:|"]
    for row in rows:
        (ours, theirs), ratio = row["bytes"], f"{row['ratio']:.2f}"
        ratio = strong(ratio, "size" in misses(row)) + (f" ({aim(row)})" if aim(row) else "")
        lines.append(f"| {row['job']} | {against(row)} | {ours:,} | {theirs:,} | {ratio} |")
    return lines


def all_missed():
    """Returns the rows that miss their aim. The page explains each of them below, in the text about the times."""
    rows, aims = [row for row in table if misses(row)], [row for row in table if row["at most"] is not None]
    if not rows:
        return [f"All {len(aims)} aims are met."]
    return [f"{len(rows)} of the {len(aims)} rows with an aim miss it:", ""] + [
        f"- {row['job']}" + (f" against {against(row)}" if "against" in row else "") + missed(row).replace(": MISSED", "") for row in rows]


def against(row):
    return "`" + row["against"].replace("|", "\\|") + "`"


def seconds(value):
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.1f} ms"


def strong(text, is_missed):
    return f"**{text}**" if is_missed else text


def aim(row):
    return "" if row["at most"] is None else f"{row['at most']:g}"
