"""The apps that write to a store during a flow, its recovery and its undo, and the conditions for the result."""
import contextlib, glob, os

import look, trial
from harness import rows
from harness.companions import Companion, Crowd, Insert, Kind, kinds
from harness.tools import Wrong

# One row in each of these tables that exists; no release ships rows with such numbers.
INSERTS = [Insert("note", id="?1", text="'app ' || ?1"), Insert("food", id="?1", name="'app ' || ?1", editable="1"),
           Insert("favorite", food="?1", stars="5")]
# After these endings of a command, its update may be unfinished.
UNDECIDED = {6, trial.KILLED}
# The lowest number of a row that an app writes to a replaced file.
FIRST_OF_APP = 1_000_000
OWN = "CREATE TABLE IF NOT EXISTS note(id INTEGER PRIMARY KEY, text TEXT NOT NULL)"


def apps(world, flow, number, count=None, **rhythm):
    """Starts an app for each writable database, and one that creates its own file where the flow creates one; each has committed
    when this returns. Different numbers have different kinds of apps. Three apps in four end after a quarter of a second,
    because a command waits several seconds for an app that uses the file all the time."""
    count = count or (20 if number % 4 else 100_000)
    names = [name for name in look.names(world.store) if name not in flow.caches and not os.path.islink(os.path.join(world.store, name))
             and rows.read(os.path.join(world.store, name))]
    every, started = kinds(), []
    for at, name in enumerate([*names, *flow.creates]):
        kind, create = (Kind("creates"), OWN) if name in flow.creates else (every[(number + at) % len(every)], None)
        started.append(Companion(world.tools, kind, permitted(kind, os.path.join(world.store, name)), INSERTS, acks(world, number, at),
                                 first=1_000_000 * (at + 1) + 10_000_000 * number, seed=number + at, create=create, count=count, **rhythm))
    world.log.append(f"  beside: {'; '.join(f'{os.path.basename(app.path)}: {app.kind.name}' for app in started)}")
    return Crowd(started).ready()


def permitted(kind, path):
    """Returns the path, after giving another user the right to write: moult refuses the sidecars that a user without it leaves."""
    if kind.runs == "other user":
        os.chmod(path, 0o666)
    return path


def acks(world, number, at):
    """Returns the file of acknowledgments of an app: beside the directory of the trial, whose file system may lose its power."""
    path = os.path.join(world.tools.scratch, f"{os.path.basename(world.directory)}-{number}-{at}.acks")
    remove_acks(path)
    return path


def remove_acks(path):
    for name in (path, path + ".stop"):
        with contextlib.suppress(FileNotFoundError):
            os.remove(name)


def ended(apps):
    """Ends the apps, and returns their errors."""
    apps.end()
    for app in apps.companions:
        remove_acks(app.acks)
    return apps.errors


def watching(apps):
    """Returns the options with which `strike` delays a command until an app has committed."""
    return ["-w", apps.watched, "-t", 100]


def written(apps, cut=None):
    """Returns the rows that must not be lost. While the power is being cut, a sync may succeed without having written anything, so
    what is acknowledged after that does not count."""
    return [rows.row(table, values, values.values()) for table, values in apps.rows(cut)]


def require_ending(fault, ending):
    if ending not in {0, 75, trial.KILLED} | (trial.OLD | UNDECIDED if fault.action in ("EIO", "ENOSPC") else set()):
        raise Wrong(f"beside apps, the command exited with {ending}")


def recover(world, fault, number, apps, ending):
    """Recovers the store, or undoes the update, while the apps write; then they end."""
    require_ending(fault, ending)
    if ending in UNDECIDED:
        command = ["recover", *(["--undo"] if fault.undoes else []), "-q"]
        status = world.strike(command, *delay(number), *watching(apps))["ending"] if fault.delays else world.run(*command)
        if status not in ({0, 3, 75} if fault.undoes else {0, 75}):
            raise Wrong(f"beside apps, {' '.join(command)} exited with {status}")
    end(world, fault, apps)


def end(world, fault, apps):
    world.apps, errors = None, ended(apps)
    # A power cut kills the apps, too.
    if errors and not fault.cuts:
        raise Wrong("; ".join(errors))


def check(flow, baseline, world, fault, number, apps, struck):
    """Recovers the store, or undoes the update, while the apps write; then they end, and no row may be lost."""
    ending = struck["ending"]
    recover(world, fault, number, apps, ending)
    world.must("recover", "-q")
    outcome = trial.check_release(flow, baseline, world, baseline.ledger.with_rows(written(apps, struck["cut"] if fault.cuts else None)))
    # A restored database belongs to the same release.
    ends = {(end.version, tuple(end.sealed.items())) for end in baseline.ends.values()}
    if ending not in UNDECIDED and len(ends) > 1 and (outcome == "new") != (ending == 0):
        raise Wrong(f"beside apps, the command exited with {ending}, but the store is {outcome}")
    check_modes(baseline.ends["new" if flow.repeats else outcome], world, apps)
    return outcome


def check_modes(end, world, apps):
    """Checks that each database has the journal mode that it should have, unless its app sets one."""
    free = {os.path.basename(app.path) for app in apps.companions if app.kind.mode in ("wal", "rollback", "creates")}
    for name, mode in look.modes(world.store).items():
        if name not in free and end.modes.get(name) and mode != end.modes[name]:
            raise Wrong(f"the journal mode of {name} is {mode}, expected {end.modes[name]}")


def delay(number):
    """Returns the call before which a recovery waits: every fourth time its first lease, otherwise some call that changes the
    disk."""
    return ["-a", "delay", *(["-c", "lease", "-n", 1 + number // 4 % 2] if number % 4 == 0 else ["-n", number * 7 % 41 + 1])]


def on_file(world, number):
    """Starts an app that writes to the file of a flow with `moult replace`; it has committed when this returns."""
    kind = kinds()[number % len(kinds())]
    world.apps = Crowd([Companion(world.tools, kind, permitted(kind, world.path("files/app.db")), INSERTS[:1], acks(world, number, 0),
                                  first=FIRST_OF_APP, seed=number, count=20 if number % 4 else 100_000)]).ready()
    world.log.append(f"  beside: app.db: {world.apps.companions[0].kind.name}")
    return world.apps


def check_file(world, fault, apps, ending):
    """Ends the app that has written to a file beside `moult replace` or its undo: each of its rows must be in the file or in a set."""
    require_ending(fault, ending)
    end(world, fault, apps)
    check_rows_of_file(world, apps)


def check_rows_of_file(world, apps):
    kept = sorted(glob.glob(world.path("files/.app.db.moult/*/app.db")))
    found = [rows.Place("database", "app.db", world.path("files/app.db")), *(rows.Place("quarantine", path, path) for path in kept)]
    missing = [wanted for wanted in written(apps) if not any(place.count(wanted) for place in found)]
    if missing:
        raise Wrong(f"rows are lost: {rows.text(missing)}")
