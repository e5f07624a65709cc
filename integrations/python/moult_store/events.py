"""The releases that are put into service in a store, as they are announced."""

from __future__ import annotations

import contextlib
import os
import select
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Callable, Iterator, List, Optional, Tuple, Type

from .announcements import announced
from .errors import MoultError
from .lease import Contents, Lease, Seen, installed, news
from .rows import RowChanges

try:
    import ctypes
except ImportError:
    ctypes = None  # type: ignore[assignment]

#: How often to look where the kernel does not report changes.
_PAUSE = 0.2


@dataclass(frozen=True)
class StoreEvent:
    """A release that was put into service: the content of all its databases is there."""

    generation: str
    #: The version of that generation.
    version: str
    #: The previously observed generation; None if there was none.
    previous: Optional[str]
    #: The names of the databases whose content may have changed; views must reload these.
    databases: Tuple[str, ...]
    #: The changed rows of each of these databases; None without `rows=True`.
    changes: Optional[Tuple[RowChanges, ...]] = None

    def __str__(self) -> str:
        was = f", was {self.previous}" if self.previous else ""
        return f"{self.generation}{was}: {' '.join(self.databases)}"


#: Returns the changed rows of these databases since a generation; None if another release was announced in the meantime.
Rows = Callable[[Seen, Tuple[str, ...]], Optional[Tuple[RowChanges, ...]]]


class Events:
    """Iterates over releases as they are put into service. Each call waits; `close()` ends the iteration in any thread.

    A program with an event loop of its own waits until `fileno()` is readable, then calls `next(0)` until that returns None.
    """

    def __init__(self, directory: str, since: Optional[Lease] = None, rows: Optional[Rows] = None) -> None:
        self._directory = directory
        if not os.path.lexists(f"{directory}/moult.json"):
            now = f"Create it with: moult init {directory} --product NAME"
            raise MoultError(f"{directory} is not a store", "it has no moult.json", now, code="E800")
        self._rows = rows
        self._before = since.contents if since is not None else None
        # Before the announcement is read, so that none is missed.
        self._watch = _Watch(f"{directory}/.moult")
        self._is_closed = False
        try:
            last = announced(directory)
            self._seen = since.seen if since is not None else Seen(last.generation if last else None, last)
            if self._before is None and last is not None:
                # The generation may be gone; then all databases count as changed.
                with contextlib.suppress(MoultError):
                    self._before = Contents(directory, last.generation)
        except BaseException:
            self._watch.close()
            raise

    @property
    def has_rows(self) -> bool:
        """Whether the events have the changed rows."""
        return self._rows is not None

    def fileno(self) -> int:
        """A descriptor that is readable after a change in the store; -1 if the kernel does not report changes."""
        return self._watch.descriptor

    def next(self, seconds: Optional[float] = None) -> Optional[StoreEvent]:
        """Returns the next event; None if there was none within these seconds, or after `close()`."""
        end = None if seconds is None else time.monotonic() + seconds
        while not self._is_closed:
            self._watch.drain()
            event = self._read()
            if event is not None:
                return event
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                break
            self._watch.wait(left)
        return None

    def _read(self) -> Optional[StoreEvent]:
        while True:
            last = news(self._directory, self._seen)
            if last is None:
                if not os.path.isdir(f"{self._directory}/.moult"):
                    raise MoultError(f"{self._directory} is not a store any longer", ".moult was removed", code="E800")
                return None
            try:
                contents = Contents(self._directory, last.generation)
            except MoultError:
                # If another update is complete by now, that one is reported instead.
                if announced(self._directory) != last:
                    continue
                raise
            previous, before = self._seen.generation, self._before
            databases, changes = contents.changed_since(before), None
            if self._rows is not None:
                changes = self._rows(Seen(previous, last), databases)
                if changes is None:
                    continue
            self._seen, self._before = Seen(last.generation, last), contents
            return StoreEvent(last.generation, contents.version, previous, databases, changes)

    def close(self) -> None:
        self._is_closed = True
        self._watch.wake()

    def __iter__(self) -> Iterator[StoreEvent]:
        return self

    def __next__(self) -> StoreEvent:
        event = self.next()
        if event is None:
            raise StopIteration
        return event

    def __enter__(self) -> Events:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_watch"):
            self._watch.close()


#: From <sys/inotify.h>: created, moved here, or removed itself.
_CREATE, _MOVED_TO, _DELETE_SELF, _ONLYDIR = 0x100, 0x80, 0x400, 0x1000000


class _Watch:
    """Reports changes of names in a directory. Without ctypes, it only waits for a short time."""

    def __init__(self, directory: str) -> None:
        self._descriptors: List[int] = []
        self.descriptor = -1
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._descriptors += [self._reader, self._writer]
        if ctypes is None:
            return
        libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(libc, "inotify_init1"):
            return
        self.descriptor = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self.descriptor < 0:
            # Too many are in use.
            return
        self._descriptors.append(self.descriptor)
        mask = ctypes.c_uint32(_CREATE | _MOVED_TO | _DELETE_SELF | _ONLYDIR)
        if libc.inotify_add_watch(self.descriptor, os.fsencode(directory), mask) < 0:
            number = ctypes.get_errno()
            self.close()
            raise MoultError(f"cannot watch {directory}", os.strerror(number), code="E100")

    def wait(self, seconds: Optional[float]) -> None:
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        if self.descriptor < 0:
            seconds = _PAUSE if seconds is None else min(_PAUSE, seconds)
        else:
            poll.register(self.descriptor, select.POLLIN)
        poll.poll(None if seconds is None else max(0, seconds * 1000))

    def drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self.descriptor >= 0 and os.read(self.descriptor, 1 << 16):
                pass

    def wake(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._writer, b"x")

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())
        self.descriptor = -1
