"""Leases keep an installed release in place; docs/in-an-app.md describes the protocol."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shlex
import stat
import struct
import time
import weakref
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Type
from urllib.parse import quote

from .announcements import GENERATION, Announcement, announced
from .copies import warn_of_second
from .errors import MoultError
from .records import is_file_name, is_name, parse, read_text, without_comments


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
        """Returns the URI with which SQLite opens the database.

        The URI of a writable database leaves it to the connection whether it writes: open it without SQLITE_OPEN_CREATE, or
        SQLite creates a file that is missing. No other copy of SQLite in this process may open the same writable database: two
        copies drop each other's locks, and rows are lost.
        """
        if self.kind == "reference":
            # Releases never change an installed file, so SQLite needs neither locks nor a -wal.
            return self._uri("?mode=ro&immutable=1")
        return self._uri("?mode=ro" if read_only else "")

    def existing_uri(self, read_only: bool) -> str:
        """Returns a URI for connections of this package, which must not create a file that is missing."""
        return self.uri(read_only) if read_only or self.kind == "reference" else self._uri("?mode=rw")

    def _uri(self, options: str) -> str:
        return f"file://{quote(os.fsencode(self.path))}{options}"


class Seen(NamedTuple):
    """What a reader knows of: its generation, and the last announcement."""

    generation: Optional[str]
    announced: Optional[Announcement]


def news(directory: str, seen: Seen) -> Optional[Announcement]:
    """Returns the announcement that the reader does not know of; None without one, or while an update is not complete."""
    last = announced(directory)
    if last is None:
        return None
    # If the line is the same, an update may have been undone since, or have ended while the lease was taken.
    is_undone = seen.generation != last.generation and installed(directory) == last.generation
    return last if last != seen.announced or is_undone else None


class Lease:
    """Keeps the files of the installed release until `close()`, or until the object is garbage-collected."""

    def __init__(self, directory: str) -> None:
        descriptor, self.generation = _take(directory)
        # Runs once: by close(), or if the lease is garbage-collected without close().
        self._release = weakref.finalize(self, os.close, descriptor)
        # Read after the lock, so that no announcement is missed.
        self._announced = announced(directory)
        self.directory = directory
        self._path = f"{directory}/.moult/generations/{self.generation}"
        try:
            self.contents = Contents(directory, self.generation)
        except BaseException:
            self.close()
            raise
        #: The version of the release.
        self.version: str = self.contents.version
        self._described = self.contents.databases

    @property
    def is_outdated(self) -> bool:
        """Whether a release was announced since the lease was taken: the content of all its databases is there.

        A lease that is taken during an update may be on its release before its `shared` and `user` databases have their new
        content. It is outdated when they have.
        """
        return news(self.directory, self.seen) is not None

    @property
    def seen(self) -> Seen:
        """What the owner of this lease knows of."""
        return Seen(self.generation, self._announced)

    @property
    def names(self) -> Tuple[str, ...]:
        """The names of all databases of the release."""
        return tuple(one.name for one in self._described)

    @property
    def groups(self) -> Tuple[str, ...]:
        """The groups of databases in the release. Databases without a group are in none of them."""
        return tuple(sorted({one.group for one in self._described if one.group is not None}))

    def path_of(self, name: str) -> str:
        """Returns the path of a database in this release; for a writable database, its stable path."""
        return self.database(name).path

    def database(self, name: str) -> Database:
        """Returns a database by its name."""
        found = next((database for database in self._databases() if database.name == name), None)
        if found is None:
            raise MoultError(f'release {self.version} has no database "{name}"', f"it has {', '.join(self.names)}", code="E500")
        return found

    @property
    def databases(self) -> Tuple[Database, ...]:
        """All databases of the release. The first database of kind `user` in each group has the schema name `main`.

        Open a writable database with one copy of SQLite only: two copies in a process drop each other's locks, and rows are lost.
        """
        found = self._databases()
        if any(database.kind != "reference" for database in found):
            warn_of_second(level=2)
        return found

    def _databases(self) -> Tuple[Database, ...]:
        mains: Dict[Optional[str], str] = {}
        for one in self._described:
            if one.kind == "user":
                mains.setdefault(one.group, one.name)
        has_cache = any(one.kind == "cache" for one in self._described)
        root = cache_root(self.directory) if has_cache else None
        return tuple(self._database(one, mains.get(one.group) == one.name, root) for one in self._described)

    def group(self, name: Optional[str] = None) -> Tuple[Database, ...]:
        """Returns the databases that share a connection: those of a group, or those without a group."""
        databases = self._databases()
        found = tuple(database for database in databases if database.group == name)
        if not found and name is not None:
            raise MoultError(
                f'release {self.version} has no group "{name}" of databases',
                f"it has {', '.join(self.groups)}" if self.groups else "all its databases share one connection",
            )
        return found

    def _database(self, one: _Described, is_main: bool, cache_root: Optional[str]) -> Database:
        if one.kind == "reference":
            path = f"{self._path}/{one.file}"
        else:
            path = self._writable(one.file, cache_root if one.kind == "cache" else None)
        return Database(one.name, "main" if is_main else one.alias, one.kind, path, one.group)

    def _writable(self, file: str, root: Optional[str]) -> str:
        return f"{root or self.directory}/{file}"

    def close(self) -> None:
        self._release()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


_KINDS = ("reference", "shared", "user", "cache")


class _Described(NamedTuple):
    """A database in the manifest."""

    name: str
    kind: str
    file: str
    alias: str
    group: Optional[str]
    #: Identifies the shipped content.
    content: Tuple[Any, ...]


class Contents:
    """The databases of a generation. Without a lease, the generation may be removed at any moment."""

    def __init__(self, directory: str, generation: str) -> None:
        self.generation = generation
        try:
            text = read_text(f"{directory}/.moult/generations/{generation}/manifest.json", follow=False)
            manifest, self._text = parse(text), text
            self.version, self.databases = _version(manifest), _described(manifest)
            #: When the publisher made the release, such as `2026-11-20T10:00:00Z`; None if the manifest does not say.
            self.created: Any = manifest.get("created")
            notes = manifest.get("notes")
            #: What the publisher says about the release; None if the manifest has no notes.
            self.notes: Optional[str] = notes if isinstance(notes, str) else None
        except (OSError, ValueError) as error:
            raise _unreadable(directory, generation, str(error)) from error

    def is_of(self, manifest: bytes) -> bool:
        """Returns whether the generation was installed from this manifest."""
        return manifest.decode("utf-8-sig", "replace") == self._text

    def changed_since(self, other: Optional[Contents]) -> Tuple[str, ...]:
        """Returns the names of the databases with content that a reader of `other` may not have seen.

        In the same generation, these are the databases that apps can write to.
        """
        if other is not None and other.generation == self.generation:
            return tuple(one.name for one in self.databases if one.kind != "reference")
        before = {one.name: one.content for one in other.databases} if other is not None else {}
        return tuple(one.name for one in self.databases if before.get(one.name) != one.content)


def _version(manifest: Dict[str, Any]) -> str:
    version = manifest.get("version")
    if not isinstance(version, str) or not re.fullmatch(r"[0-9A-Za-z.+-]{1,128}", version):
        raise ValueError("its version is missing or invalid")
    return version


def _described(manifest: Dict[str, Any]) -> List[_Described]:
    """Returns the databases of a manifest; raises ValueError. No name may lead out of the store."""
    databases = manifest.get("databases")
    if not isinstance(databases, dict):
        raise ValueError("databases is not an object")
    return [_read(name, one) for name, one in databases.items()]


def _read(name: str, one: Any) -> _Described:
    attach = one.get("attach", {}) if isinstance(one, dict) else None
    if not is_name(name) or not isinstance(attach, dict) or one.get("kind") not in _KINDS:
        raise ValueError("a database has an invalid name, or a kind that this version of moult_store does not know")
    alias, group, kind = attach.get("as", name), attach.get("group"), one["kind"]
    if not is_name(alias) or not (group is None or is_name(group)):
        raise ValueError(f"databases.{name}.attach has an invalid name")
    field = "path" if kind != "reference" and "path" in one else "member"
    file = one.get(field)
    if field == "member" and isinstance(file, str):
        # In an archive that another tool packed, a member may be in a directory; the store has only the file name.
        file = os.path.basename(file)
    if not is_file_name(file):
        raise ValueError(f"databases.{name}.{field} is not the name of a database file")
    return _Described(name, kind, file, alias, group, (one.get("sha256"), kind, file))


#: The target of `.moult/current`.
_CURRENT = re.compile(rf"generations/({GENERATION})")


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
            f"List the processes: moult status --processes --store {shlex.quote(directory)}",
            code="E402",
            exit_status=75,
        ) from None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def cache_root(directory: str) -> Optional[str]:
    """Returns the directory for caches, if it is not the store."""
    root = _setting(directory, "cacheRoot")
    if root is not None and not (isinstance(root, str) and root.startswith("/") and "\0" not in root):
        raise unusable(directory, "cacheRoot is not an absolute path")
    return root


def require_recent(lease: Lease) -> None:
    """Raises TooOldError if the data of the leased release is older than `maxAge` in the settings."""
    limit = _setting(lease.directory, "maxAge")
    if limit is None:
        return
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise unusable(lease.directory, "maxAge is not a number of seconds")
    made = lease.contents.created
    try:
        since = datetime.strptime(made, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp()
    except (TypeError, ValueError):
        # Without that time, when it was installed.
        since = os.lstat(f"{lease.directory}/.moult/current").st_ctime
    if time.time() - since > limit:
        at = datetime.fromtimestamp(since, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        now = f"Install a newer release: moult apply --store {shlex.quote(lease.directory)}"
        raise MoultError(f"the installed data is from {at}", f'"maxAge" in moult.json is {limit} s', now, "E805", 3)


def _setting(directory: str, name: str) -> Any:
    path = f"{directory}/moult.json"
    try:
        return parse(without_comments(read_text(path, follow=True))).get(name)
    except PermissionError:
        raise MoultError(
            f"cannot read the settings {path}",
            "this user may not read the file",
            f"Let the user read it with a group: chmod g+r {shlex.quote(path)}",
            code="E401",
        ) from None
    except (OSError, ValueError) as error:
        raise unusable(directory, str(error)) from error


def unusable(directory: str, why: str) -> MoultError:
    now = f"Correct the file, then run: moult status --deep --store {shlex.quote(directory)}"
    return MoultError(f"cannot read the settings {directory}/moult.json", why, now, code="E803")
