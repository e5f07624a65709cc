"""The calls of a command, with the state of its directory before each of them: which points are equal.

Two points are equal if the command leaves the same names, modes, links and contents on the disk, and if its processes hold the same
locks. A file is *unfinished* if the command creates and removes (or renames) it, will write to it again, and has not synced it: then
only its name counts.
"""
import collections, hashlib, re
from dataclasses import dataclass

# What differs between two runs: the IDs of transactions, and the names of temporary directories.
ID = re.compile(r"\d{14}-[0-9a-f]{8}|(?<=moult-)\w{6}\b|(?<=/)\d+(?=,|$)|(?<=attempts/)[0-9a-f]{64}")
# SQLite reads these files after a crash, so each of their states counts.
READ_AFTER_CRASH = re.compile(r"-(wal|shm|journal)$")
SYNCS = {"fsync", "fdatasync", "syncfs", "sync_file_range", "msync"}
MARKS = {"calls": "", "data": "data", "room": "room"}


@dataclass(frozen=True)
class Call:
    name: str
    marks: tuple
    paths: str


@dataclass(frozen=True)
class Name:
    mode: str
    inode: str
    links: str
    size: str
    digest: str


class Trace:
    def __init__(self, lines, root):
        self.root, self.calls, self.names, self.locks = root, [], [], []
        for line in lines:
            kind, _, rest = line.partition(" ")
            if kind == ":":
                *facts, path = rest.split(" ", 5)
                self.names[-1][path] = Name(*facts)
            elif kind == "@":
                self.locks[-1].append(rest)
            else:
                self.names.append({})
                self.locks.append([])
                if kind != "end":
                    name, *marks, paths = rest.split(" ")
                    self.calls.append(Call(name, tuple(marks), paths))
        self.last = self.last_writes()
        self.disks = [self.disk_before(at) for at in range(len(self.calls))]

    def last_writes(self):
        """Returns for each unfinished file the last call before which it has not got its final content yet, or was not synced."""
        content, last = {}, {}
        for at, names in enumerate(self.names):
            for path, name in names.items():
                if content.get(path) not in (None, name):
                    last[path] = at
                content[path] = name
        passing = {path for path in last if path not in self.names[0] and path not in self.names[-1]
                   and (not READ_AFTER_CRASH.search(path) or "/transactions/" in path)}
        synced = {}
        for at, call in enumerate(self.calls):
            if call.name in SYNCS:
                synced.setdefault(call.paths.removeprefix(self.root), at)
        return {path: min(last[path], synced.get(path, last[path]) + 1) for path in passing}

    def disk_before(self, at):
        found = hashlib.sha256()
        for path, name in sorted(self.names[at].items()):
            found.update(repr((path, None if at < self.last.get(path, 0) else name)).encode())
        return found.hexdigest()

    def at(self, counts, number):
        """Returns the index of the n-th call of a class."""
        mark = MARKS[counts]
        if not mark:
            return number - 1
        return [at for at, call in enumerate(self.calls) if mark in call.marks][number - 1]

    def disk(self, at):
        return self.disks[at]

    def torn(self, at):
        """Returns a digest of the disk after half of a write: of an unfinished file, only the name counts."""
        path = self.calls[at].paths.removeprefix(self.root)
        return self.disks[at] if at < self.last.get(path, 0) else ("torn", at)

    def locked(self, at):
        """Returns the locks that are held before a call, and how often the command has locked or unlocked a file that apps may open."""
        return tuple(sorted(self.locks[at]))

    def synced(self, at):
        """Returns how many calls before this one wrote data to the disk."""
        return sum(call.name in SYNCS for call in self.calls[:at])

    def summary(self, is_exact):
        """Returns the calls, to compare the traces of two runs: those with varying pieces are counted once."""
        found = [(call.name, ID.sub("ID", call.paths.replace(self.root, ""))) for call in self.calls]
        return collections.Counter(found) if is_exact else set(found)
