"""Apps that write to a store while moult works on it: companion.c and companion.py. Each row whose commit returned is a row
that may not be lost."""
import collections, functools, os, shlex, sqlite3, subprocess, sys, time
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
# Another user may write to the files of a store only if he owns them or has this right.
USER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
# An app in a PID namespace inside that of the command would be visible, so the command gets the new one.
NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
# An app may wait for a lock for this time, in seconds: the default of Python, and a usual setting of apps.
LIMIT = 5

Ack = collections.namedtuple("Ack", "number statements begun ended")


class Insert:
    """A statement that inserts one row; the values are SQL in which ?1 is the number of the transaction."""

    def __init__(self, table, **values):
        self.table, self.values = table, values
        self.sql = f"INSERT INTO {table}({', '.join(values)}) VALUES({', '.join(values.values())})"

    @functools.lru_cache(None)
    def row(self, number):
        connection = sqlite3.connect(":memory:")
        found = connection.execute(f"SELECT {', '.join(self.values.values())} WHERE ?1", (number,)).fetchone()
        connection.close()
        return dict(zip(self.values, found))


@dataclass(frozen=True)
class Kind:
    """How an app behaves: a mode of companion.c, its language, and where it runs."""
    mode: str
    language: str = "c"
    runs: str = ""

    @property
    def name(self):
        return f"{self.mode}, {self.language}" + (f", {self.runs}" if self.runs else "")


def is_possible(runs):
    words = {"other user": USER, "other namespace": NAMESPACE}.get(runs)
    return not words or os.geteuid() == 0 and subprocess.run([*words, "true"], stderr=subprocess.DEVNULL).returncode == 0


@functools.cache
def kinds():
    """Returns the kinds of apps that this machine can run."""
    every = [Kind("connects"), Kind("stays"), Kind("wal"), Kind("connects", "python"), Kind("rollback"), Kind("connects", "c", "other namespace"),
             Kind("stays", "python"), Kind("wal", "python"), Kind("connects", "c", "slow close"), Kind("connects", "c", "other user"),
             Kind("stays", "c", "other namespace"), Kind("wal", "c", "slow close"), Kind("reads")]
    return [kind for kind in every if is_possible(kind.runs)]


class Companion:
    """A running app. Its rows have the numbers from `first`."""

    def __init__(self, tools, kind, path, inserts, acks, first, seed=1, create=None, count=100_000, seconds=60, pause=(5, 20), hold=0):
        self.kind, self.path, self.inserts, self.acks = kind, path, inserts, acks
        # A reader keeps its transaction for a second.
        seconds = 1 if kind.mode == "reads" else seconds
        program = [tools.companion] if kind.language == "c" else [sys.executable, os.path.join(HERE, "companion.py")]
        around = {"other user": USER, "slow close": ["env", f"LD_PRELOAD={tools.slowclose}"]}.get(kind.runs, [])
        # The mask of an acknowledgment counts the statement that creates the table, too.
        self.skipped = 1 if create else 0
        self.words = [*around, *program, "-n", first, "-c", count, "-s", seed, "-t", seconds, "-p", "{},{}".format(*pause), "-k", hold,
                      kind.mode, path, acks, *([create] if create else []), *(insert.sql for insert in inserts)]
        self.words = list(map(str, self.words))
        self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    @property
    def around_command(self):
        """Returns the words before a command that runs beside this app."""
        return NAMESPACE if self.kind.runs == "other namespace" else []

    @property
    def shell(self):
        return shlex.join(self.words)

    def ready(self, timeout=20):
        """Waits until the app has committed or failed once."""
        end = time.monotonic() + timeout
        while self.process.poll() is None and time.monotonic() < end and not (os.path.exists(self.acks) and os.path.getsize(self.acks)):
            time.sleep(0.001)
        return self

    def end(self):
        """Ends the app after its transaction; returns itself with everything that it said."""
        open(self.acks + ".stop", "w").close()
        status = self.process.wait(timeout=60)
        self.done, self.errors = [], [] if status == 0 else [f"exit {status}"]
        if os.path.exists(self.acks):
            with open(self.acks) as file:
                for line in file:
                    word, rest = line.rstrip("\n").split(" ", 1)
                    if word == "ack":
                        self.done.append(Ack(*map(int, rest.split())))
                    else:
                        self.errors.append(rest.split(" ", 1)[1])
        self.longest = max((ack.ended - ack.begun for ack in self.done), default=0) / 1e9
        return self

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def rows(self, until=None):
        """Returns the rows that were acknowledged before this time: pairs of a table and the values by column."""
        return [(insert.table, insert.row(ack.number)) for ack in self.done if not until or ack.ended < until for i, insert in enumerate(self.inserts)
                if ack.statements >> (i + self.skipped) & 1]

    def committed_between(self, begun, ended):
        return any(begun < ack.ended < ended for ack in self.done)


class Crowd:
    """Several companions of one store."""

    def __init__(self, companions):
        self.companions = [companion for companion in companions if companion]

    def ready(self):
        for companion in self.companions:
            companion.ready()
        return self

    @property
    def watched(self):
        """The file that shows that an app has committed."""
        return self.companions[0].acks if self.companions else "/dev/null"

    @property
    def around_command(self):
        return next((companion.around_command for companion in self.companions if companion.around_command), [])

    def end(self):
        for companion in self.companions:
            open(companion.acks + ".stop", "w").close()
        for companion in self.companions:
            companion.end()
        return self

    def kill(self):
        for companion in self.companions:
            companion.kill()

    def rows(self, until=None):
        return [row for companion in self.companions for row in companion.rows(until)]

    @property
    def errors(self):
        found = [f"an app ({companion.kind.name}) could not write to {os.path.basename(companion.path)}: {error}"
                 for companion in self.companions for error in companion.errors]
        return found + [f"an app ({companion.kind.name}) waited {companion.longest:.1f} s" for companion in self.companions
                        if companion.longest > LIMIT]
