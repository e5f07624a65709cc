"""One trial: a flow on a new store is struck at one of its calls, and then all conditions for the result are
checked."""
import collections, contextlib, hashlib, os, subprocess, tempfile
from dataclasses import dataclass

import beside, flows, look
from states import Trace
from harness import files, rows
from harness.tools import Runner, Wrong

KILLED = -9
# The exit statuses after which the store has the new content, or the old content. After 6 or a kill, it has one of them.
NEW, OLD = {0}, {1, 3, 5, 75}
# A command that failed has undone its update by itself.
UNDONE = 5


class Missed(Exception):
    """The command made fewer calls than this number."""


@dataclass(frozen=True)
class Result:
    """What a point has shown: the outcome, and whether all checks were made, or the outcome of an equal state was used; `key` says in
    which state a command ended after an error."""
    outcome: str
    is_full: bool = True
    key: tuple = None


@dataclass(frozen=True)
class Fault:
    name: str
    # The action of `strike`, and the class of calls that it counts.
    action: str
    counts: str = "calls"
    goes_on: bool = False
    # The file system whose power fails.
    cuts: str = None
    # The recovery is killed, too.
    twice: bool = False
    # An app writes to the databases before the recovery.
    writes: bool = False
    # The operator tries to undo the update, which is completed if it is too late to undo it.
    undoes: bool = False
    # Apps write to the databases during the command, and during the recovery or the undo.
    beside: bool = False
    # The recovery or the undo is delayed before one of its calls, until an app has committed.
    delays: bool = False


FAULTS = [
    Fault("kill", "kill"),
    Fault("kill in a write", "torn", "data"),
    Fault("kill, kill again", "kill", twice=True),
    Fault("kill, an app writes", "kill", writes=True),
    Fault("kill, then undo", "kill", undoes=True),
    Fault("kill, an app writes, then undo", "kill", writes=True, undoes=True),
    Fault("EIO once", "EIO"),
    Fault("EIO from then on", "EIO", goes_on=True),
    Fault("ENOSPC once", "ENOSPC", "room"),
    Fault("ENOSPC from then on", "ENOSPC", "room", goes_on=True),
    Fault("delay, beside apps", "delay", beside=True),
    Fault("kill, beside apps", "kill", beside=True),
    Fault("EIO once, beside apps", "EIO", beside=True),
    Fault("ENOSPC once, beside apps", "ENOSPC", "room", beside=True),
    Fault("kill, then undo, beside apps", "kill", beside=True, undoes=True),
    Fault("kill, delayed recovery, beside apps", "kill", beside=True, delays=True),
    Fault("kill, delayed undo, beside apps", "kill", beside=True, undoes=True, delays=True),
    Fault("power cut, ext4", "kill", cuts="ext4"),
    Fault("power cut, XFS", "kill", cuts="xfs"),
    Fault("power cut, ext4, beside apps", "kill", cuts="ext4", beside=True),
]


class World(Runner):
    """An empty store, and the commands that are run on it."""

    def __init__(self, tools, place):
        self.place = place
        directory = tempfile.mkdtemp(dir=place.path)
        self.store = os.path.join(directory, "store")
        super().__init__(tools, directory, MOULT_STORE=self.store)
        self.must("init", self.store, "--product", tools.releases.product, "-q")

    def manifest(self, name):
        return self.tools.releases.manifest(name)

    def words(self, command):
        return [self.named(word[1:-1]) if word.startswith("{") else word for word in command]

    def named(self, name):
        return self.tools.releases.feeds[name[5:]] if name.startswith("feed ") else self.manifest(name)

    def remove(self):
        super().remove()
        with contextlib.suppress(FileNotFoundError):
            os.remove(f"/var/lib/moult/attempts/{hashlib.sha256(self.store.encode()).hexdigest()}.json")


class Copy:
    """A copy of the directory of a world, from which the directory can be restored."""

    def __init__(self, world):
        self.world, self.path = world, tempfile.mkdtemp(dir=world.tools.scratch, prefix="copy-")
        subprocess.run(["cp", "-a", world.directory + "/.", self.path], check=True)

    def restore(self, log=()):
        world = self.world
        world.remove()
        subprocess.run(["cp", "-a", self.path, world.directory], check=True)
        world.apps, world.log = None, list(log)
        return world

    def remove(self):
        files.remove(self.path)


class Start(Copy):
    """The state in which a flow starts, at the same path for each trial, and what has been found out about this flow."""

    def __init__(self, flow, tools, place, is_copied=True):
        world = World(tools, place)
        flow.begin(world)
        super().__init__(world)
        self.flow, self.is_copied, world.start = flow, is_copied, self
        # The outcome of each state in which a command ended after an error, and the states after a recovery that were sound.
        self.ends, self.sound = {}, set()

    def restore(self, log=()):
        if self.is_copied:
            return super().restore(log)
        self.world.remove()
        self.world.apps, self.world.log = None, []
        os.mkdir(self.world.directory)
        self.world.must("init", self.world.store, "--product", self.world.tools.releases.product, "-q")
        self.flow.begin(self.world)
        return self.world


def how(fault, number, place):
    """Returns the options of `strike` for a fault."""
    return ["-a", fault.action, "-n", number] + ["-g"] * fault.goes_on + (["-m", place.path] if fault.cuts else [])


class Baseline:
    """A flow without a fault: its possible results, from old to new, and the number of calls to strike at."""

    def __init__(self, flow, tools, place):
        world = World(tools, place)
        flow.begin(world)
        before = look.State(world.store)
        self.expect(flow, world, 0)
        # Rows written by apps, none of which may be lost.
        self.ledger = rows.Ledger(world.store, tools.releases.shipped, flow.caches)
        if flow.rows and sum(self.ledger.most.values()) != flow.rows:
            raise Wrong(f"{flow.name}: expected {flow.rows} rows of the app, found {rows.text(self.ledger.most)}")
        self.counts = {None: world.strike(flow.command, "-l", "-s", world.directory)}
        trace = Trace(self.counts[None]["list"], world.directory)
        if self.counts[None]["ending"] != 0:
            raise Wrong(f"{flow.name} exits with {self.counts[None]['ending']} without any fault: {world.log}")
        self.ends = {"old": before, **self.between(flow, tools, place), "new": look.State(world.store)}
        check_rows(self.ledger, world)
        self.expect(flow, world, 1)
        world.remove()
        self.traces, self.is_copied, counts = {}, True, self.counts[None]
        # Trials start from a copy, if the command makes the same calls there as in the original.
        self.is_copied = trace.summary(not flow.varies) == self.trace(flow, None, tools, place).summary(not flow.varies)
        if not self.is_copied:
            self.traces[None], self.counts[None] = trace, counts

    def trace(self, flow, kind, tools, place):
        """Returns the calls of the flow on a kind of file system. They differ, because XFS copies files by sharing blocks."""
        if kind not in self.traces:
            start = Start(flow, tools, place, self.is_copied)
            world = start.restore()
            place.sync()
            self.counts[kind] = world.strike(flow.command, "-l", "-s", world.directory)
            self.traces[kind] = Trace(self.counts[kind]["list"], world.directory)
            start.remove()
            world.remove()
        return self.traces[kind]

    def between(self, flow, tools, place):
        found = {}
        for command in flow.between:
            world = World(tools, place)
            flow.begin(world)
            world.must(*command)
            found["between"] = look.State(world.store)
            world.remove()
        return found

    def points(self, fault, counts):
        """Returns the numbers of the calls to strike at: all of them."""
        return range(1, counts[fault.counts] + 1)

    def possible(self, ending):
        """Returns the results that are possible after an exit status; all results if the command could not report a status."""
        return {name: end for name, end in self.ends.items() if ending not in NEW | OLD or (name == "new") == (ending in NEW)}

    def count(self, flow, kind, tools, place):
        self.trace(flow, kind, tools, place)
        return self.counts[kind]

    def expect(self, flow, world, end):
        for name, ends in flow.looks.items():
            if name == "version":
                found = look.version(world.store)
            elif ends[end] is None:
                continue
            elif name == "kept":
                found = look.reasons(world.store)
                if len(found) == len(ends[end]):
                    found = [known[:3] + (wanted[3] if wanted[3] is ... else known[3],) for known, wanted in zip(found, ends[end])]
            else:
                file, sql = name.split(": ", 1)
                found = look.query(os.path.join(world.store, file), sql)
            if found != ends[end]:
                raise Wrong(f"{flow.name}, end {end}: {name} is {found}, expected {ends[end]}")


@contextlib.contextmanager
def trying(world):
    """Adds the commands of the trial to an error, and removes its files."""
    try:
        yield
    except Missed:
        raise
    except Exception as error:
        raise world.wrong(error) from error
    finally:
        if world.apps:
            world.apps.kill()
        if not world.tools.keep and not world.start:
            world.remove()


def strike(flow, baseline, fault, number, tools, place, attempt=0, start=None):
    """Tries one point; says whether the store is `old` or `new` afterwards. With a start, states that are known are not checked again."""
    world = start.restore() if start else World(tools, place)
    with trying(world):
        if not start:
            flow.begin(world)
        place.sync()
        apps = world.apps = beside.apps(world, flow, number) if fault.beside else None
        struck = world.strike(flow.command, *how(fault, number, place), *(beside.watching(apps) if apps else ()))
        if not struck["struck"]:
            raise Missed(f"{flow.name} has no call {number}")
        if fault.cuts:
            if apps:
                apps.kill()
            place.restart()
        if apps:
            return Result(beside.check(flow, baseline, world, fault, number, apps, struck))
        ending = struck["ending"]
        key = (look.fingerprint(world.directory), ending) if start and fault.action in ("EIO", "ENOSPC") else None
        if key and key in start.ends:
            return Result(start.ends[key], False, key)
        check_before_recovery(flow, baseline, world, ending)
        if fault.twice:
            kill_recovery(world, max(1, (number * 7 % 41 + 1) >> 2 * attempt))
        outcome = check_after(flow, baseline, world, fault, number, ending)
        if key:
            start.ends[key] = outcome
        return Result(outcome, key=key)


def strike_state(flow, baseline, wanted, start):
    """Kills the command before a call, which leaves a state, and tries in a copy of this state each fault that is `wanted`, with the
    numbers of its points. Returns the result of each fault and number."""
    world = start.restore()
    number = next(iter(wanted.values()))[0]
    with trying(world):
        if not world.strike(flow.command, "-a", "kill", "-n", number)["struck"]:
            raise Missed(f"{flow.name} has no call {number}")
        killed, log, results = Copy(world), world.log, {}
        try:
            check_before_recovery(flow, baseline, world, KILLED)
            first = look.fingerprint(world.directory)
            for fault, numbers in wanted.items():
                groups = second_kills(killed, log, numbers) if fault.twice else {None: numbers}
                for at, equal in groups.items():
                    outcome = check_copy(flow, baseline, killed.restore(log), fault, number, at)
                    is_known = isinstance(outcome, Result)
                    if fault.name == "kill" and isinstance(outcome, str):
                        start.ends[first, KILLED] = outcome
                    results |= {(fault.name, each): outcome if is_known or isinstance(outcome, Wrong) else Result(outcome, each == equal[0]) for each in equal}
        finally:
            killed.remove()
    return results


def check_copy(flow, baseline, world, fault, number, at):
    """Checks a copy of a state that a kill has left, and returns the outcome; if `at` is a number, its recovery is killed first, at this
    call. A state that is known after that has a result that is not full."""
    if at == 0:
        return "nothing to strike"
    try:
        if at:
            kill_recovery(world, at)
            key = look.fingerprint(world.directory), KILLED
            if key in world.start.ends:
                return Result(world.start.ends[key], False)
            world.start.ends[key] = check_after(flow, baseline, world, fault, number, KILLED)
            return world.start.ends[key]
        return check_after(flow, baseline, world, fault, number, KILLED)
    except Missed:
        # Two threads of the recovery may run in a different order.
        return "nothing to strike"
    except Exception as error:
        return world.wrong(error)


def second_kills(killed, log, numbers):
    """Returns for each point the call of the recovery that is killed, too: points after which the recovery leaves the same are in one
    list, by the call of the first one; all of them are in the list of call 0 if the recovery changes nothing."""
    world = killed.restore(log)
    trace = Trace(world.strike(["recover", "-q"], "-l", "-s", world.directory)["list"], world.directory)
    if not trace.calls:
        return {0: numbers}
    groups, first = collections.defaultdict(list), {}
    for number in numbers:
        at = number * 7 % len(trace.calls) + 1
        groups[first.setdefault(trace.disk(at - 1), at)].append(number)
    return groups


def check_before_recovery(flow, baseline, world, ending):
    if flow.readable:
        check_readers_before_recovery(world, baseline)
    check_rows_before_recovery(world, baseline)
    if ending != KILLED:
        check_exit_status(flow, world, baseline, ending)


def check_after(flow, baseline, world, fault, number, ending):
    if fault.writes:
        return check_recovery_after_writes(flow, baseline, world, fault, number)
    return check_recovery(flow, baseline, world, fault, number, ending)


def is_known(world, key):
    """Returns whether everything that follows a recovery has been tried in an equal state; if not, it will have been."""
    if not (world.start and key):
        return False
    is_known = key in world.start.sound
    world.start.sound.add(key)
    return is_known


def check_readers_before_recovery(world, baseline):
    """Checks that a reader finds the complete old or the complete new release before the recovery."""
    ends = baseline.ends.values()
    found = look.sealed(world.store)
    for name in set.intersection(*(set(end.sealed) for end in ends)):
        if name not in found:
            raise Wrong(f"before the recovery, {name} is missing")
    if not any(all(end.sealed.get(name) == digest for name, digest in found.items() if name in end.sealed) for end in ends):
        raise Wrong(f"before the recovery, the read-only databases are from different releases: {found}")
    found = look.writable(world.store)
    old = baseline.ends["old"].writable
    for name in old.keys() | found.keys():
        if found.get(name) not in [end.writable.get(name) for end in ends]:
            raise Wrong(f"before the recovery, {name} is {found.get(name)}")
    if not any(end.writable.keys() - end.sealed.keys() <= found.keys() | look.sealed(world.store).keys() for end in ends):
        raise Wrong(f"before the recovery, the writable databases are {', '.join(found)}")


def check_rows_before_recovery(world, baseline):
    """Checks that every row of the app is in some file of the store before the recovery."""
    missing = baseline.ledger.missing(rows.anywhere(world.store))
    if missing:
        raise Wrong(f"before the recovery, rows are in no file: {rows.text(missing)}")


def check_rows(ledger, world, when="after the recovery"):
    """Checks that every row of the app is in a database, in moult_rejected or in a complete set in quarantine."""
    if faults := ledger.faults(world.store):
        raise Wrong(f"{when}, {'; '.join(faults)}")


def check_exit_status(flow, world, baseline, ending):
    """Checks that the exit status agrees with the state of the store, if the command exited by itself."""
    if ending not in NEW | OLD | {6}:
        raise Wrong(f"the command exited with {ending}")
    if ending == 6:
        return
    found = look.version(world.store), look.sealed(world.store), look.writable(world.store)
    if ending == UNDONE and found[0] is None:
        found = *found[:2], {name: content for name, content in found[2].items() if name not in flow.creates}
    if found not in [(end.version, end.sealed, end.writable) for end in baseline.possible(ending).values()]:
        raise Wrong(f"the command exited with {ending}, but the store has {found}")


def kill_recovery(world, number):
    """Kills the recovery as well; if it makes fewer calls than this number, it has completed."""
    if not world.strike(["recover", "-q"], "-a", "kill", "-n", number)["struck"]:
        raise Missed("the recovery makes fewer calls")


def check_recovery(flow, baseline, world, fault, number, ending):
    """Runs the next command that writes, which recovers the store, and checks that the store then has exactly one of the
    possible results: nothing is lost or left over."""
    recover(world, fault, number)
    check_rows(baseline.ledger, world)
    state, is_undone = look.State(world.store), fault.undoes or ending == UNDONE
    key, state = (state.key(), "complete"), without_undone(flow, state, is_undone)
    differences = {name: state.differences(end) for name, end in baseline.ends.items()}
    outcome = next((name for name, found in differences.items() if not found), None)
    if not outcome:
        name, found = min(differences.items(), key=lambda pair: len(pair[1]))
        raise Wrong(f"after the recovery, the store is none of {', '.join(differences)}; differences from {name}: {'; '.join(found)}")
    if ending != KILLED and outcome not in baseline.possible(ending):
        raise Wrong(f"the command exited with {ending}, but the store is {outcome} after the recovery")
    check_history(world, baseline.ends[outcome], state, outcome, fault)
    if is_known(world, key):
        return outcome
    recover_again(world)
    if state.version and (flow.readable or outcome == "new") and (flow.sound or outcome == "old"):
        world.must("verify", "--deep", "-q")
    if flow.repeats or outcome != "new":
        for command in flow.again or [flow.command]:
            world.must(*command)
    check_rows(baseline.ledger, world, "after applying again")
    found = without_undone(flow, look.State(world.store), is_undone).differences(baseline.ends["new"])
    if found:
        raise Wrong(f"after applying again: {'; '.join(found)}")
    return outcome


def recover(world, fault, number):
    """Undoes the update, if the fault includes that, and runs a command that recovers the store."""
    if fault.undoes and (status := world.run("recover", "--undo", "-q")) not in (0, 3):
        raise Wrong(f"recover --undo exited with {status}")
    world.must(*(["recover", "-q"] if number % 2 else ["clean", "-q"]))


def recover_again(world):
    before = look.everything(world.store)
    world.must("recover", "-q")
    if look.everything(world.store) != before:
        raise Wrong("a second recovery changes something")


def without_undone(flow, state, is_undone):
    """Returns the state without the sets that an undo may have added to quarantine, because their content may be an app's; without an
    installed release, also without the databases that the flow has created, which stay for the same reason."""
    if is_undone:
        for path in flow.creates if state.version is None else ():
            state.writable.pop(path, None), state.modes.pop(path, None)
            for name in [name for name in state.files if name.split(" ")[0] == path]:
                del state.files[name]
        names = {known[0] for known in state.kept if '"reason": "undone"' in known[1]}
        state.kept = [known for known in state.kept if known[0] not in names]
        for path in [path for path in state.files if path.split(" ")[0].startswith(tuple(f".moult/quarantine/{name}" for name in names))]:
            del state.files[path]
        # Restoring a database by its name uses the newest set.
        state.kept = [(known[0], known[1].replace("ID-2-", "ID-"), *known[2:]) for known in state.kept]
    return state


def check_recovery_after_writes(flow, baseline, world, fault, number):
    """Checks that rows that an app wrote between the crash and the recovery are not lost either, and that the release is old
    or new."""
    ledger = baseline.ledger.with_rows(flows.write_between(world))
    recover(world, fault, number)
    return check_release(flow, baseline, world, ledger)


def check_release(flow, baseline, world, ledger):
    """Checks that no row is lost in a recovered store to which apps have written, that its release is old or new, and that the
    command can run again; returns which release it is."""
    check_rows(ledger, world)
    found = look.version(world.store), look.sealed(world.store)
    outcome = next((name for name, end in baseline.ends.items() if found == (end.version, end.sealed)), None)
    if not outcome:
        raise Wrong(f"after the recovery, the release is {found}")
    # Rows of apps beside the command, which differ each time, have been checked.
    if world.start and is_known(world, (look.State(world.store, beside.FIRST_OF_APP).key(), "release")):
        return outcome
    recover_again(world)
    if found[0] and flow.sound and (flow.readable or outcome == "new"):
        world.must("verify", "--deep", "-q")
    if flow.repeats:
        for command in flow.again or [flow.command]:
            world.must(*command)
        check_rows(ledger, world, "after applying again")
    return outcome


def check_history(world, end, state, outcome, fault):
    """Checks that the history agrees with the installed release; only a power cut may lose one of its lines."""
    if state.installed != end.installed and not (fault.cuts and state.installed < end.installed):
        raise Wrong(f"the store is {outcome}, but its history has {state.installed} updates, expected {end.installed}")
    current = os.path.join(world.store, ".moult/current")
    if state.installed == end.installed and state.last and state.last != os.path.basename(os.readlink(current)):
        raise Wrong(f"the history ends with {state.last}, but current is {os.readlink(current)}")
