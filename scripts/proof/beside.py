"""The apps that write to a store during a flow, its recovery and its undo, and the conditions for the result."""
import os

import look, trial
from harness import rows
from harness.companions import Companion, Crowd, Insert, Kind, kinds
from harness.tools import Wrong

# One row in each of these tables that exists; no release ships rows with such numbers.
INSERTS = [Insert("note", id="?1", text="'app ' || ?1"), Insert("food", id="?1", name="'app ' || ?1", editable="1"),
           Insert("favorite", food="?1", stars="5")]
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
        started.append(Companion(world.tools, kind, os.path.join(world.store, name), INSERTS, os.path.join(world.directory, f"app-{number}-{at}.acks"),
                                 first=1_000_000 * (at + 1) + 10_000_000 * number, seed=number + at, create=create, count=count, **rhythm))
    world.log.append(f"  beside: {'; '.join(f'{os.path.basename(app.path)}: {app.kind.name}' for app in started)}")
    return Crowd(started).ready()


def watching(apps):
    """Returns the options with which `strike` delays a command until an app has committed."""
    return ["-w", apps.watched, "-t", 100]


def written(apps):
    return [rows.row(table, values, values.values()) for table, values in apps.rows()]


def check(flow, baseline, world, fault, number, apps, ending):
    """Recovers the store, or undoes the update, while the apps write; then they end, and no row may be lost."""
    if ending not in (0, 75, trial.KILLED):
        raise Wrong(f"beside apps, the command exited with {ending}")
    if ending == trial.KILLED:
        command = ["recover", "--undo", "-q"] if fault.undoes else ["recover", "-q"]
        status = world.strike(command, *delay(number), *watching(apps))["ending"] if fault.delays else world.run(*command)
        if status not in ({0, 3, 75} if fault.undoes else {0, 75}):
            raise Wrong(f"beside apps, {' '.join(command)} exited with {status}")
    world.apps = None
    if errors := apps.end().errors:
        raise Wrong("; ".join(errors))
    world.must("recover", "-q")
    outcome = trial.check_release(flow, baseline, world, baseline.ledger.with_rows(written(apps)))
    # A restored database belongs to the same release.
    ends = {(end.version, tuple(end.sealed.items())) for end in baseline.ends.values()}
    if ending in (0, 75) and len(ends) > 1 and (outcome == "new") != (ending == 0):
        raise Wrong(f"beside apps, the command exited with {ending}, but the store is {outcome}")
    check_modes(baseline.ends["new" if flow.repeats else outcome], world, apps)
    return outcome


def check_modes(end, world, apps):
    """Checks that each database has the journal mode that it should have, unless its app sets one."""
    free = {os.path.basename(app.path) for app in apps.companions if app.kind.mode in ("wal", "rollback", "creates")}
    if free:
        # A release may move the database.
        free |= end.modes.keys() - {os.path.basename(app.path) for app in apps.companions}
    for name, mode in look.modes(world.store).items():
        if name not in free and end.modes.get(name) and mode != end.modes[name]:
            raise Wrong(f"the journal mode of {name} is {mode}, expected {end.modes[name]}")


def delay(number):
    """Returns the call before which a recovery waits: every fourth time its first lease, otherwise some call that changes the
    disk."""
    return ["-a", "delay", *(["-c", "lease", "-n", 1 + number // 4 % 2] if number % 4 == 0 else ["-n", number * 7 % 41 + 1])]
