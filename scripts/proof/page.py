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

TAIL = """
## A stricter file system

ext4 and XFS keep more in order than they must. `Tests/ModelTests` therefore records every change that the command makes (by
strace, over all its processes), and has a model of a file system in memory that promises only this:

- A file's content is there after its own sync; a name that was made, given or removed, after that of its directory; a rename
  after that of the directory of the new name, an exchange after either.
- Until then each change is there or not, whatever became of the others, except that changes of one name keep their order, and
  changes of one page of a file. A rename and an exchange are one step; a link has its target.
- Of each page that was written there is all, nothing, the first half, or zeros.
- Owners, modes and times are not looked at; what SQLite shares between processes (`-shm`) is never there.

The recording is cut after each of its calls. Where no more than 64 combinations are possible all are tried, else: nothing, all,
each change alone lost, torn or hollow and each alone there, and 16 by chance. Each state that differs from the others is made
in memory, settled by the real code, and held against the promises above. The model must agree with the kernel about the end of
each recording, byte by byte, or the test fails. Flows: first install, update, rollback, shared by exchange and live in both
journal modes, user migration, reset, an update with a consumer, and settling itself. `make test` tries 40 states a flow,
`make model` all of them. That the model can find something is a test, too: for each of fourteen syncs it is shown what is lost
without it.

## What was found

| defect | held by |
|---|---|
| SQLite played back a journal that a crash had left beside a staged copy | `whatACrashLeftBesideTheStagedCopyIsNotPlayedBack` |
| After a failed exchange an app's WAL mode was gone | `theAppsJournalModeComesBack`, `everySystemCallMayFail` |
| An error hid that SQLite had committed; an error of a commit was never seen | `nothingIsLost`, `aScalarThatCannotBeCommittedIsAnError` |
| A journal went on inside of a line that a crash tore | `aTornLineSpoilsNothing` |
| A name that a file was given without the record of its new time was no sound file | `aDatabaseThatDidNotChangeIsNeverCopied` |
| The decision could be on the disk before the names of what it decides about (model) | `everyPowerCutIsSettled` |
| A page of the journal's first line that was lost made a store that could not be settled (model) | `aPageThatWasLostIsNoUpdate` |
| WAL mode was taken away, or a migration begun, before the transaction that puts it right was on the disk (model) | `everyPowerCutIsSettled` |
| SQLite does not sync that its journal is gone: a migration or a live replacement that was done came undone (model) | `everyPowerCutIsSettled`, `withoutASyncItFindsALoss` |
| In a reset a sidecar's name could go before its name in quarantine was on the disk, and the fresh file come before the old sidecar went (model) | `everyPowerCutIsSettled` |
| An update that was over could not be settled when its end was forgotten and a migration's script was cleaned away (model) | `everyPowerCutIsSettled` |
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
        out.write(HEAD + "\n".join(lines) + "\n" + TAIL)
