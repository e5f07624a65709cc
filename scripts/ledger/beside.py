"""The app that writes to one database of a story while a command runs. Its acknowledged rows are rows of the story."""
import os, stat, time

from harness.companions import Companion, Kind, kinds

from catalogue import BESIDE
from content import exact, Text

# The operations with a companion, and the modes that these have; most are in C, which starts faster.
OPERATIONS = ("apply", "rollback", "reset", "hold", "unhold", "clean", "again", "plan", "status", "kill", "quarantine")
KINDS = [Kind("connects")] * 4 + [Kind("stays")] * 3 + [Kind("wal")] * 3 + [
    Kind("rollback"), Kind("connects", "c", "other namespace"), Kind("stays", "c", "other namespace"), Kind("connects", "c", "other user"),
    Kind("connects", "c", "slow close"), Kind("connects", "python"), Kind("wal", "python"), Kind("reads")]


class Beside:
    """A companion of one operation."""

    def __init__(self, world, op):
        self.world, self.path, self.rows, self.app = world, None, {}, None
        paths = [path for path, file in sorted(world.state.files.items()) if file.content is not None and BESIDE.table in file.content.tables
                 and not os.path.islink(world.full(path))]
        if world.open or not paths or not world.options.tools.companion:
            return
        self.path = paths[op["pick"] % len(paths)]
        kind = KINDS[op["kind"] % len(KINDS)]
        kind = kind if not kind.runs or kind in kinds() else Kind(kind.mode)
        world.companions += 1
        # The app ends soon, because a command waits several seconds for an app that uses the file all the time.
        acks = os.path.join(world.directory, f"acks{world.companions}")
        self.app = Companion(world.options.tools, kind, world.full(self.path), [BESIDE], acks, first=1_000_000 * world.companions,
                             seed=op["kind"], count=8 + op["pick"] % 12)
        if kind.runs == "other user" and self.path in world.owners:
            # The app of another user needs the right to write to the file.
            world.owners[self.path] = world.owners[self.path][0], stat.S_IMODE(os.stat(world.full(self.path)).st_mode)
        shell = self.app.shell.replace(world.options.tools.companion, "$COMPANION").replace(world.store, "$S").replace(world.directory, "$W")
        world.log.append(f"{shell} & while ! [ -s $W/acks{world.companions} ]; do sleep 0.01; done")
        self.app.ready()
        file = world.state.files[self.path]
        # From here on the database has a row of the companion, so that more of them lead to the same places.
        world.state.files[self.path] = file.but(content=world.read(world.full(self.path)).content or file.content,
                                                wal=True if kind.mode == "wal" else file.wal)

    def end(self):
        """Ends the companion; its acknowledged rows must be somewhere from now on."""
        if self.app is None or self.rows:
            return
        self.app.end()
        self.world.log.append(f"touch {self.app.acks.replace(self.world.directory, '$W')}.stop; wait")
        self.rows = {row["n"]: (table, {"n": exact(row["n"]), "t": exact(Text(row["t"].encode()))}) for table, row in self.app.rows()}
        self.world.alive.update(self.rows)
        self.world.counts["acknowledged"] += len(self.rows)
        self.world.counts["rows written beside commands"] += len(self.rows)

    def committed_between(self, begun, ended):
        return self.app is not None and self.app.committed_between(begun, ended)

    def may_have(self, path, wal):
        """Returns whether the companion may have set this journal mode."""
        return self.app is not None and path == self.path and (self.app.kind.mode == "rollback" or self.app.kind.mode == "wal" and wal)

    def faults(self):
        """Returns the errors of the companion. A command that succeeded may have given the database content without its table."""
        if self.app is None:
            return []
        file = self.world.state.files.get(self.path)
        has_table = bool(file and file.content and "beside" in file.content.objects)
        return [("app", f"an app ({self.app.kind.name}) could not write to {self.path}: {error}") for error in self.app.errors
                if has_table or "no such table: beside" not in error]

    def kill(self):
        if self.app:
            self.app.kill()
