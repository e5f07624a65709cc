"""Stores in programs with asyncio.

    store = aio.Store("/var/lib/app")
    await store.apply(manifest, create=True)
    async for event in store.events():
        rows = await store.run(lambda connection: connection.execute("SELECT name FROM food.food").fetchall())

Each function is that of `moult_store.Store`, in a thread of its own. If its task is cancelled, the command is asked to stop and undo its
work, and the task ends when the command has ended. A command that can no longer be undone completes first.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import os
import queue
import random
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Coroutine, Iterable, List, Optional, Tuple, Type, TypeVar, Union

from . import files
from .command import Cancellation
from .connection import Connection
from .consumers import ConsumerRegistration, DatabaseChange
from .events import Events as _Events
from .errors import MoultError
from .events import StoreEvent
from .lease import Lease
from .results import Update
from .rows import RowChanges
from .schedule import UpdateSchedule, since_last_attempt
from .store import Recovery
from .store import Store as _Store

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec, Protocol

    P = ParamSpec("P")

    class AsyncConsumer(Protocol):
        """A `DatabaseConsumer` whose methods may be coroutines. These run in the event loop of the caller of `register`."""

        def release(self, change: DatabaseChange) -> object: ...
        def reload(self, change: DatabaseChange) -> object: ...


R = TypeVar("R")


async def _in_thread(work: Callable[[], R]) -> R:
    """Runs blocking work in a thread of its own, which ends before this function does."""
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    done: asyncio.Future[R] = loop.create_future()
    cancellation = Cancellation()

    def end(set_: Callable[[Any], None], value: Any) -> None:
        if not done.done():
            set_(value)

    def run() -> None:
        try:
            with cancellation:
                result = work()
        except BaseException as error:
            report: Tuple[Callable[[Any], None], Any] = (done.set_exception, error)
        else:
            report = (done.set_result, result)
        loop.call_soon_threadsafe(end, *report)

    threading.Thread(target=context.run, args=[run], name="moult aio", daemon=True).start()
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        cancellation.cancel()
        # The caller may cancel again; the command ends all the same.
        while not done.done():
            try:
                await asyncio.wait([done])
            except asyncio.CancelledError:
                pass
        # An error after the cancellation is its consequence.
        done.exception()
        raise


def _threaded(
    method: Callable[Concatenate[_Store, P], R],
) -> Callable[Concatenate[Store, P], Coroutine[Any, Any, R]]:
    @functools.wraps(method)
    async def call(self: Store, /, *arguments: P.args, **options: P.kwargs) -> R:
        return await _in_thread(lambda: method(self.store, *arguments, **options))

    return call


def _function(function: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    @functools.wraps(function)
    async def call(*arguments: P.args, **options: P.kwargs) -> R:
        return await _in_thread(lambda: function(*arguments, **options))

    return call


cache = _function(files.cache)
replace = _function(files.replace)
undo_replace = _function(files.undo_replace)


class Events:
    """Iterates over releases as they are put into service, with `async for`. `close()` or the end of the task ends the iteration."""

    def __init__(self, events: _Events) -> None:
        self._events = events
        self._closed = asyncio.Event()

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> StoreEvent:
        while not self._closed.is_set():
            event = await self._next()
            if event is not None:
                return event
            await self._changed()
        raise StopAsyncIteration

    async def _next(self) -> Optional[StoreEvent]:
        # To compare rows takes time.
        return await _in_thread(lambda: self._events.next(0)) if self._events.has_rows else self._events.next(0)

    async def _changed(self) -> None:
        """Waits until the kernel reports a change of the store, or the iteration is closed."""
        descriptor, loop = self._events.fileno(), asyncio.get_running_loop()
        if descriptor < 0:
            await asyncio.sleep(0.2)
            return
        readable = asyncio.Event()
        loop.add_reader(descriptor, readable.set)
        waits = [asyncio.ensure_future(each.wait()) for each in (readable, self._closed)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            loop.remove_reader(descriptor)
            for each in waits:
                each.cancel()

    def close(self) -> None:
        self._closed.set()
        self._events.close()


class Store:
    """The store at `path`, for tasks of one or several event loops. The arguments are those of `moult_store.Store`."""

    def __init__(
        self,
        path: Union[str, os.PathLike[str]],
        command: Union[None, str, os.PathLike[str]] = None,
        *,
        trusting: Iterable[str] = (),
        timeout: float = 5.0,
        configure: Optional[Callable[[Connection], object]] = None,
        readers: int = 4,
    ) -> None:
        #: The store for synchronous code.
        self.store = _Store(path, command, trusting=trusting, timeout=timeout, configure=configure)
        self.path = self.store.path
        self._readers = _Readers(self.store, readers)

    def __repr__(self) -> str:
        return f"aio.Store({self.path!r})"

    async def __aenter__(self) -> Store:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections of `run`."""
        await _in_thread(self._readers.close)

    async def run(self, work: Callable[[Connection], R]) -> R:
        """Calls a function with a connection to the newest release, in one of `readers` threads. It must not return open cursors.

        A transaction must end in the same call: an open one is rolled back.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[R] = loop.create_future()
        self._readers.submit(work, done, loop)
        return await done

    @property
    def release(self) -> str:
        """The version of the installed release."""
        return self.store.release

    @property
    def generation(self) -> str:
        """The name of the installed generation."""
        return self.store.generation

    def lease(self) -> Lease:
        """Takes a lease on the installed release. Does not block."""
        return self.store.lease()

    def path_of(self, name: str) -> str:
        """Returns the stable path of a database."""
        return self.store.path_of(name)

    @property
    def notes(self) -> Optional[str]:
        """What the publisher says about the installed release; None if it has no notes."""
        return self.store.notes

    def events(
        self,
        since: Union[None, Lease, Connection] = None,
        *,
        rows: bool = False,
        limit: int = RowChanges.STANDARD_LIMIT,
    ) -> Events:
        """Returns the releases that are put into service from now on, or since a lease was taken; with `rows`, with changed rows."""
        return Events(self.store.events(since, rows=rows, limit=limit))

    async def follow_regularly(
        self, schedule: UpdateSchedule = UpdateSchedule(), *, app: Optional[str] = None, timeout: Optional[float] = None
    ) -> AsyncIterator[Union[Update, MoultError]]:
        """Calls `follow` by a schedule, until the task is cancelled. A failure is a result, and does not end the iteration."""
        last = since_last_attempt(await self.status(timeout=timeout))
        while True:
            await asyncio.sleep(schedule.pause(last, random.random()))
            try:
                result: Union[Update, MoultError] = await self.follow(app=app, timeout=timeout)
            except MoultError as error:
                result = error
            yield result
            last = 0

    def register(
        self,
        consumer: AsyncConsumer,
        *,
        name: Optional[str] = None,
        databases: Optional[Iterable[str]] = None,
        timeout: float = 10,
        on_reload_failure: str = "report",
    ) -> ConsumerRegistration:
        """Registers a consumer, whose methods may be coroutines: they run in the event loop of this call."""
        adapted = _Consumer(consumer, asyncio.get_running_loop())
        return self.store.register(
            adapted,
            name=name or type(consumer).__name__,
            databases=databases,
            timeout=timeout,
            on_reload_failure=on_reload_failure,
        )

    async def connect(
        self, *, group: Optional[str] = None, read_only: bool = False, refusing_old_data: bool = False
    ) -> Connection:
        """Opens all databases of the installed release on one connection, for any thread, but only one at a time.

        Its queries block the loop: run long ones in a thread, or with `run`.
        """
        return await _in_thread(
            lambda: self.store.connect(
                group=group, read_only=read_only, refusing_old_data=refusing_old_data, check_same_thread=False
            )
        )

    async def open(
        self, name: str, *, recovering: Recovery = Recovery.NEVER, timeout: Optional[float] = None
    ) -> Connection:
        """Opens one database, as `moult_store.Store.open` does, for any thread, but only one at a time."""
        return await _in_thread(
            lambda: self.store.open(name, recovering=recovering, check_same_thread=False, timeout=timeout)
        )

    plan = _threaded(_Store.plan)
    is_current = _threaded(_Store.is_current)
    apply = _threaded(_Store.apply)
    newest = _threaded(_Store.newest)
    follow = _threaded(_Store.follow)
    rollback = _threaded(_Store.rollback)
    status = _threaded(_Store.status)
    verify = _threaded(_Store.verify)
    hold = _threaded(_Store.hold)
    unhold = _threaded(_Store.unhold)
    history = _threaded(_Store.history)
    clean = _threaded(_Store.clean)
    recover = _threaded(_Store.recover)
    quarantine = _threaded(_Store.quarantine)
    export_quarantined = _threaded(_Store.export_quarantined)
    restore_quarantined = _threaded(_Store.restore_quarantined)
    reset = _threaded(_Store.reset)
    changes = _threaded(_Store.changes)
    set_feed = _threaded(_Store.set_feed)


class _Consumer:
    """Calls a consumer in its event loop, from the thread of an update."""

    def __init__(self, consumer: AsyncConsumer, loop: asyncio.AbstractEventLoop) -> None:
        self._consumer, self._loop = consumer, loop

    def release(self, change: DatabaseChange) -> None:
        self._call(self._consumer.release, change)

    def reload(self, change: DatabaseChange) -> None:
        self._call(self._consumer.reload, change)

    def _call(self, method: Callable[[DatabaseChange], object], change: DatabaseChange) -> None:
        async def run() -> None:
            result = method(change)
            if inspect.isawaitable(result):
                await result

        asyncio.run_coroutine_threadsafe(run(), self._loop).result()


class _Readers:
    """Threads that are kept, because each has its own connection, which follows the releases."""

    def __init__(self, store: _Store, most: int) -> None:
        self._store, self._most = store, max(1, most)
        self._lock = threading.Lock()
        self._work: queue.SimpleQueue[Optional[Callable[[], None]]] = queue.SimpleQueue()
        self._threads: List[threading.Thread] = []
        self._idle = 0

    def submit(self, work: Callable[[Connection], R], done: asyncio.Future[R], loop: asyncio.AbstractEventLoop) -> None:
        def end(set_: Callable[[Any], None], value: Any) -> None:
            if not done.done():
                set_(value)

        def call() -> None:
            if done.cancelled():
                return
            try:
                connection = self._store.connection
                try:
                    report: Tuple[Callable[[Any], None], Any] = (done.set_result, work(connection))
                finally:
                    if connection.has_transaction:
                        connection.rollback()
            except BaseException as error:
                report = (done.set_exception, error)
            loop.call_soon_threadsafe(end, *report)

        self._work.put(call)
        with self._lock:
            self._threads = [each for each in self._threads if each.is_alive()]
            if len(self._threads) < self._most and self._work.qsize() > self._idle:
                thread = threading.Thread(target=self._serve, name="moult reader", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            call = self._work.get()
            with self._lock:
                self._idle -= 1
            if call is None:
                self._store.close()
                return
            call()

    def close(self) -> None:
        with self._lock:
            threads, self._threads = self._threads, []
        for _ in threads:
            self._work.put(None)
        for thread in threads:
            thread.join()
