"""The matrix of all results, as a page to read."""
import json, os

# `between`: of a chain of releases, some were brought in.
OUTCOMES = ("old", "between", "new", "lost")

HEAD = """# Proof

The proof runs the built command and makes it fail at each system call that changes a disk, in all its threads and processes.
Each point is one run on a new store. After each run:

- An app that opens the databases at that moment finds the complete old release or the complete new one.
- The exit status, if the command reached its end, says which of the two is installed.
- The next command that writes completes the recovery: every database is exactly old or exactly new, all of them together (in a
  chain of releases, one complete release of the chain); pointer, history and settings agree; no file is left over.
- **No row of an app or user is lost.** Each row that no release shipped is in a database, in its `moult_rejected`, in a complete
  set in quarantine (with a valid `set.json` and a database that loads) or in a generation `0+adopted`. No row is in a database
  and `moult_rejected` more often than before. At the moment of the failure each row is in some file of the store.
- A second recovery changes nothing, not even a time stamp; `verify --deep` finds no fault.
- Running the command again leads to the new state.

A point that breaks one of these promises counts as lost. `make proof` runs all points and writes this page (Linux on x86_64;
power cuts need root, loop devices and mkfs.xfs). `make test-all` runs a sample of some dozen points for each flow. The tracer is
`scripts/proof/strike.c`, the flows are a table in `scripts/proof/flows.py`, the checks are in `scripts/proof/trial.py`, and
`scripts/proof/rows.py` finds the rows.

- **kill**: every process of the command is killed before the call; **in a write**: after half of the bytes were written;
  **again**: the recovery is killed, too; **an app writes**: before the recovery an app writes rows to every writable database,
  and those rows must not be lost either.
- **EIO**, **ENOSPC**: the call fails, once, or this call and every later one; ENOSPC only where a call needs space.
- **power cut**: a loop-mounted file system is shut down without writing anything more, unmounted and mounted again.

The flows with rows of apps and users, most of them in rollback mode and in WAL mode with rows that only the WAL has:

- **adoption**: first install of a shared database over an app's own file.
- **take-over**: a release changes the kind of the user's database, with `--take-over`.
- **rows left behind**: an update that does not carry all rows of the app, with `--accept-unpreserved`.
- **migration that changes values**: the old database is kept.
- **restore**: `moult quarantine --restore`, of a user database, a shared database and a single table.
- **moved**: a release gives a database another path.
- **rollback to 0+adopted**: the app's own file comes back.

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
journal modes, user migration, reset, an update with a consumer, and settling itself. `make test-all` tries 40 states a flow,
`make model` all of them, 13,845 by the last count. That the model can find something is a test, too: for each of fourteen
syncs it is shown what is lost without it.

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
| Where living files could not be brought to rest after a failure before the decision, what the next command needs for that was removed | the proof: `shared by exchange, WAL` |
| A history that said "stuck" counted as the end of an update that the next command finished | the proof: `shared by exchange, WAL` |
| What could not be recorded of an update that was done lost its journal, so that no later command recorded it | the proof: `shared by exchange, WAL` |
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
