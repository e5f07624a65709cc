"""Writes figures as tables into a Markdown page."""


def put(page, name, text):
    """Replaces the text between the marks with this name in a page."""
    begin, end = f"<!-- figures: {name} -->\n", f"<!-- end of {name} -->"
    if begin not in page.read_text():
        raise SystemExit(f"{page} does not have the mark for these figures: {begin}")
    before, rest = page.read_text().split(begin)
    page.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}")


def table(head, rows):
    return "\n".join(["| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]]) + "\n"


def at(shares, counts):
    """Returns the minutes after which these shares of all machines have the release."""
    total, sum_, result, shares = sum(counts), 0, [], list(shares)
    for minute, count in enumerate(counts):
        sum_ += count
        while shares and sum_ >= shares[0] * total:
            result.append(minute + 1)
            shares.pop(0)
    return result


def duration(minutes):
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.0f} h"


def figures(staged, at_once, measured, install, seed):
    (idle, idle_bytes), (feed, feed_bytes), (release, release_bytes) = measured
    week = 7 * 86_400
    outage = [second // 1800 for second in staged["outage"]]
    rows = []
    for mirror, spans in zip("ab", staged["requests"]):
        quiet = spans[:outage[0]] + spans[outage[1] + 2:]
        during = spans[outage[0]:outage[1]]
        total = sum(total for _, total in spans)
        minutes = staged["bytes"]["ab".index(mirror)]
        rows.append([
            mirror, f"{total:,}", f"{total / week:,.0f}", f"{max(peak for peak, _ in quiet):,}",
            f"{max(peak for peak, _ in during):,}", f"{sum(minutes) / 1e12:.2f} TB", f"{max(minutes) * 8 / 60 / 1e9:.2f} Gbit/s"])
    failed = sum(total for _, total in staged["failed"])
    text = table(["mirror", "requests", "requests per second, mean", "requests per second, peak", "peak while mirror a is down", "data sent",
                  "data rate in the peak minute"], rows)
    text += f"""
{staged["machines"]:,} machines, seed {seed}, {staged["decisions"]:,} decisions. While mirror a was down, stores tried it {failed:,} times.
According to the nginx log of one real store, an unchanged feed takes {idle} request and {idle_bytes:,} bytes, a changed feed {feed} requests
and {feed_bytes:,} bytes, and a release of {release_bytes / 1e6:.1f} MB another {release} requests. A first install takes {install[0]}.

"""
    rows = []
    for name, result in [("2.0.1 to 1, 10, 50 and 100 %", staged), ("2.0.1 to all machines at once", at_once)]:
        counts = result["left"]
        rows.append([name, f"{result['withdrawn']:,}", *map(duration, at([0.5, 0.9, 0.99, 1], counts)), f"{result['withdrawn'] - sum(counts):,}"])
    text += table(["rollout of the fix", "machines that installed 2.0.0", "half have the fix after", "90 % have it after",
                   "99 % have it after", "all have it after", "machines left on 2.0.0"], rows)
    return text
