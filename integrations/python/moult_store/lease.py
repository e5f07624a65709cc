"""Leases keep an installed release in place; docs/following.md describes the protocol."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
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
        # Also runs, but only once, if the lease is garbage-collected without close().
        self._release = weakref.finalize(self, os.close, descriptor)
        self.directory = directory
        self._path = f"{directory}/.moult/generations/{self.generation}"
        with open(f"{self._path}/manifest.json", encoding="utf-8") as file:
            self._manifest = json.load(file)
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
        kind, member = described["kind"], described["member"]
        if kind == "reference":
            path = f"{self._path}/{member}"
        else:
            root = (_cache_root(self.directory) if kind == "cache" else None) or self.directory
            path = f"{root}/{described.get('path', member)}"
        schema = "main" if is_main else described.get("attach", {}).get("as", name)
        return Database(name, schema, kind, path, _group(described))

    def close(self) -> None:
        self._release()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


def _group(described: Any) -> Optional[str]:
    group: Optional[str] = described.get("attach", {}).get("group")
    return group


def installed(directory: str) -> str:
    """Returns the name of the installed generation."""
    try:
        return os.path.basename(os.readlink(f"{directory}/.moult/current"))
    except (FileNotFoundError, NotADirectoryError):
        exists = os.path.isdir(directory)
        raise MoultError(
            f"nothing is installed in {directory}",
            "no release has been installed yet" if exists else "no such directory",
            f"Install a release: moult apply {'' if exists else '--create '}--store {shlex.quote(directory)} MANIFEST",
            code="E800",
        ) from None


def _take(directory: str) -> Tuple[int, str]:
    while True:
        name = installed(directory)
        try:
            descriptor = _lock(directory, name)
        except FileNotFoundError as missing:
            if installed(directory) != name:
                # An update removed the generation after its name was read.
                continue
            raise MoultError(
                f"generation {name} of {directory} cannot be read",
                f"{missing.filename} is missing",
                f"Check the store: moult verify --store {shlex.quote(directory)}",
                code="E803",
            ) from None
        # A lease is valid only if its generation is still installed after locking.
        if installed(directory) == name:
            return descriptor, name
        os.close(descriptor)


def _lock(directory: str, name: str) -> int:
    hidden = f"{directory}/.moult"
    try:
        descriptor = os.open(f"{hidden}/leases/{name}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        has_lease_file = True
    except FileNotFoundError:
        # An older moult created the store, and no update has run since.
        descriptor = os.open(f"{hidden}/generations/{name}", os.O_RDONLY | os.O_DIRECTORY)
        has_lease_file = False
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
    with open(f"{directory}/moult.json", encoding="utf-8-sig") as file:
        settings = json.loads(_NOT_JSON.sub(lambda found: found[1] or " ", file.read()))
    root: Optional[str] = settings.get("cacheRoot")
    return root
