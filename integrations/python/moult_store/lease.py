"""Leases keep an installed release in place; docs/following.md describes the protocol."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shlex
import stat
import struct
import weakref
from types import TracebackType
from typing import Any, Dict, NamedTuple, Optional, Tuple, Type
from urllib.parse import quote

from .errors import MoultError


class Database(NamedTuple):
    """A database of the leased release."""

    name: str
    #: Its name on a connection: `main`, or the name to attach it as.
    schema: str
    #: `reference`, `shared`, `user` or `cache`.
    kind: str
    path: str
    #: The databases of one group share a separate connection; None for databases of the store's connection.
    group: Optional[str] = None

    def uri(self, read_only: bool = False) -> str:
        """Returns the URI with which SQLite opens the database."""
        if self.kind == "reference":
            # Releases never change an installed file, so SQLite needs neither locks nor a -wal.
            options = "mode=ro&immutable=1"
        else:
            options = "mode=ro" if read_only else "mode=rw"
        return f"file://{quote(os.fsencode(self.path))}?{options}"


class Lease:
    """Keeps the files of the installed release until `close()`, or until the object is garbage-collected."""

    def __init__(self, directory: str) -> None:
        descriptor, self.generation = _take(directory)
        # Runs once: by close(), or if the lease is garbage-collected without close().
        self._release = weakref.finalize(self, os.close, descriptor)
        self.directory = directory
        self._path = f"{directory}/.moult/generations/{self.generation}"
        try:
            with open(f"{self._path}/manifest.json", encoding="utf-8") as file:
                self._manifest = json.load(file)
        except (OSError, ValueError) as error:
            self.close()
            raise _unreadable(directory, self.generation, str(error)) from error
        #: The version of the release.
        self.version: str = self._manifest["version"]

    @property
    def databases(self) -> Tuple[Database, ...]:
        """All databases of the release. The first database of kind `user` in each group has the schema name `main`."""
        described = self._manifest["databases"]
        mains: Dict[Optional[str], str] = {}
        for name, database in described.items():
            if database["kind"] == "user":
                mains.setdefault(_group(database), name)
        return tuple(self._database(name, one, mains.get(_group(one)) == name) for name, one in described.items())

    def group(self, name: Optional[str] = None) -> Tuple[Database, ...]:
        """Returns the databases that share a connection: those of a group, or those without a group."""
        found = tuple(database for database in self.databases if database.group == name)
        groups = sorted({database.group for database in self.databases if database.group is not None})
        if not found and name is not None:
            raise MoultError(
                f'release {self.version} has no group "{name}" of databases',
                f"it has {', '.join(groups)}" if groups else "all its databases share one connection",
            )
        return found

    def _database(self, name: str, described: Any, is_main: bool) -> Database:
        # In an archive that another tool packed, a member may be in a directory; the store has only the file name.
        kind, member = described["kind"], os.path.basename(described["member"])
        if kind == "reference":
            path = f"{self._path}/{member}"
        else:
            path = self._writable(kind, described.get("path", member))
        schema = "main" if is_main else described.get("attach", {}).get("as", name)
        return Database(name, schema, kind, path, _group(described))

    def _writable(self, kind: str, file: str) -> str:
        root = _cache_root(self.directory) if kind == "cache" else None
        only = _ONE_FILE.fullmatch(os.path.basename(self.directory))
        if not root and only and re.fullmatch("database(-.*)?", file):
            # The store `.app.db.moult` has one database, the file app.db next to it, which releases call `database`.
            root, file = os.path.dirname(self.directory), only[1] + file[len("database") :]
        return f"{root or self.directory}/{file}"

    def close(self) -> None:
        self._release()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


#: The name of the store of a single file.
_ONE_FILE = re.compile(r"\.(.+)\.moult", re.DOTALL)


def _group(described: Any) -> Optional[str]:
    group: Optional[str] = described.get("attach", {}).get("group")
    return group


#: The target of `.moult/current`: a generation is named after a version and a digest.
_CURRENT = re.compile(r"generations/(?!\.)(?!.*\.\.)([0-9A-Za-z.-]+\+[0-9A-Za-z+.-]*)")


def installed(directory: str) -> str:
    """Returns the name of the installed generation."""
    current, shell = f"{directory}/.moult/current", shlex.quote(directory)
    try:
        found = _CURRENT.fullmatch(os.readlink(current))
    except (FileNotFoundError, NotADirectoryError):
        raise _nothing_installed(directory, shell) from None
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        found, why = None, "it is not a symbolic link"
    else:
        why = "it does not point to a generation of this store"
    if not found:
        raise MoultError(f"{current} cannot be used", why, f"Restore it with: moult recover --store {shell}", code="E800")
    return found[1]


def _nothing_installed(directory: str, shell: str) -> MoultError:
    if os.path.lexists(f"{directory}/moult.json"):
        what, why, create = f"nothing is installed in {directory}", "no release has been installed yet", ""
    elif os.path.isdir(directory):
        what, why, create = f"{directory} is not a store", "it has no moult.json", "--create "
    else:
        what, why, create = f"{directory} is not a store", "no such directory", "--create "
    return MoultError(what, why, f"Install a release: moult apply {create}--store {shell} MANIFEST", code="E800")


def _take(directory: str) -> Tuple[int, str]:
    while True:
        name = installed(directory)
        try:
            descriptor = _lock(directory, name)
        except (FileNotFoundError, NotADirectoryError) as missing:
            if installed(directory) != name:
                # An update removed the generation after its name was read.
                continue
            raise _unreadable(directory, name, f"{missing.filename} is missing") from None
        # A lease is valid only if its generation is still installed after locking.
        if installed(directory) == name:
            return descriptor, name
        os.close(descriptor)


#: Errors that mean that the lease file cannot be used. In that case, the lock on the generation is the lease.
_NO_LEASE_FILE = {errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENXIO}


def _unreadable(directory: str, name: str, why: str) -> MoultError:
    now = f"Check the store: moult verify --store {shlex.quote(directory)}"
    return MoultError(f"generation {name} of {directory} cannot be read", why, now, code="E803")


def _lock(directory: str, name: str) -> int:
    hidden = f"{directory}/.moult"
    has_lease_file = True
    try:
        descriptor = os.open(f"{hidden}/leases/{name}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            has_lease_file = False
    except OSError as error:
        # An older moult created the store, and no update has run since; or something else is in place of the file.
        if error.errno not in _NO_LEASE_FILE:
            raise
        has_lease_file = False
    if not has_lease_file:
        descriptor = os.open(f"{hidden}/generations/{name}", os.O_RDONLY | os.O_DIRECTORY)
    try:
        if has_lease_file:
            # struct flock on 64-bit Linux: a read lock on the whole file.
            lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, lock)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise MoultError(
            f"cannot take a lease on generation {name} of {directory}",
            "another process has an exclusive lock on it",
            f"List the processes: moult who --store {shlex.quote(directory)}",
            code="E402",
            exit_status=75,
        ) from None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


# Keeps strings, and removes comments and trailing commas, which moult.json may contain.
_NOT_JSON = re.compile(
    r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*|/\*.*?\*/)*[}\]])', re.DOTALL
)


def _cache_root(directory: str) -> Optional[str]:
    path = f"{directory}/moult.json"
    try:
        with open(path, encoding="utf-8-sig") as file:
            settings = json.loads(_NOT_JSON.sub(lambda found: found[1] or " ", file.read()))
    except PermissionError:
        raise MoultError(
            f"cannot read the settings {path}",
            "this user may not read the file, which says where cache databases are",
            f"Let the user read it with a group: chmod g+r {shlex.quote(path)}",
            code="E401",
        ) from None
    root: Optional[str] = settings.get("cacheRoot")
    return root
