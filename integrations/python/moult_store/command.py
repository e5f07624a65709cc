"""Runs the command `moult` and reads its JSON output, which docs/json.md describes."""

from __future__ import annotations

import contextvars
import json
import logging
import math
import os
import queue
import shutil
import subprocess
import threading
import time
from types import TracebackType
from typing import Any, Callable, Iterable, List, Optional, Tuple, Type, Union

from .errors import CommandNotFound, MoultError, MoultTimeout, OperationCancelled

Words = List[str]
log = logging.getLogger("moult_store")

#: The command in a wheel for one platform.
BUNDLED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "moult")

#: How long a command may take to undo its work after it was asked to stop. After that, it is killed, and the next command
#: recovers the store.
_GRACE = 30.0

#: The longest time until an interruption is noticed.
_SLICE = 0.5


def option(name: str, value: Union[None, bool, int, str]) -> Words:
    """Returns the argument for an option; none if its value is None or False."""
    if value is None or value is False:
        return []
    # A value in an argument of its own could be mistaken for an option.
    return [name] if value is True else [f"{name}={value}"]


def repeated(name: str, values: Iterable[str]) -> Words:
    if isinstance(values, str):
        values = [values]
    return [word for value in values for word in option(name, value)]


class Cancellation:
    """Lets another thread stop the commands that this thread runs in a `with` block.

        with Cancellation() as cancellation:
            button.on_click = cancellation.cancel
            store.apply(manifest)

    A command that has not changed anything undoes its work, and the call raises `OperationCancelled` when the command has ended. A
    command that can no longer be undone completes, and the call returns its result.
    """

    def __init__(self) -> None:
        self._lock, self._is_cancelled = threading.Lock(), False
        self._stops: List[Callable[[], None]] = []
        self._tokens: List[contextvars.Token[Tuple[Cancellation, ...]]] = []

    @property
    def is_cancelled(self) -> bool:
        return self._is_cancelled

    def cancel(self) -> None:
        """Asks the running command to stop, and prevents later ones. Does not wait."""
        with self._lock:
            self._is_cancelled = True
            stops = list(self._stops)
        for stop in stops:
            stop()

    def __enter__(self) -> Cancellation:
        self._tokens.append(_cancellations.set((*_cancellations.get(), self)))
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        _cancellations.reset(self._tokens.pop())

    def add(self, stop: Callable[[], None]) -> None:
        with self._lock:
            self._stops.append(stop)
        if self._is_cancelled:
            stop()

    def remove(self, stop: Callable[[], None]) -> None:
        with self._lock:
            self._stops.remove(stop)


#: Those whose `with` blocks the current thread or task is in.
_cancellations: contextvars.ContextVar[Tuple[Cancellation, ...]] = contextvars.ContextVar("moult_cancellations", default=())


def pause(seconds: float) -> None:
    """Waits; raises `OperationCancelled` if a cancellation of this thread ends the wait."""
    woken, active = threading.Event(), _cancellations.get()
    added: List[Cancellation] = []
    try:
        for each in active:
            added.append(each)
            each.add(woken.set)
        woken.wait(seconds)
    finally:
        for each in added:
            each.remove(woken.set)
    if any(each.is_cancelled for each in active):
        raise OperationCancelled("the wait was cancelled", code="E600")


class Command:
    """Finds the command `moult`: at the given path, or else named by the variable MOULT, bundled with this package, or in PATH."""

    def __init__(self, path: Union[None, str, os.PathLike[str]] = None) -> None:
        self._path = None if path is None else os.fspath(path)

    def find(self) -> str:
        named = self._path or os.environ.get("MOULT")
        if named:
            return named
        if os.path.exists(BUNDLED):
            return BUNDLED
        found = shutil.which("moult")
        if found:
            return found
        raise CommandNotFound(
            "cannot run moult",
            "it is not in PATH, the variable MOULT is not set, and this package does not contain it",
            "Install moult, or name it: MOULT=/path/of/moult, or Store(path, command=...).",
        )

    def run(
        self,
        words: Words,
        timeout: Optional[float] = None,
        each: Optional[Callable[[Any], object]] = None,
        is_pointless: Callable[[], bool] = lambda: False,
    ) -> List[Any]:
        """Returns all objects that the command prints. If it prints an error, raises that error.

        `each` is called with each object, in the thread of the caller, while the command runs. When `is_pointless` returns true,
        the command is asked to stop, and what it has not printed by then is missing.
        """
        path = self.find()
        said = " ".join([os.path.basename(path), words[0]])
        child, begin = Child([path, *words]), time.monotonic()
        log.debug("%s begins", said)
        answers: List[Any] = []
        stopped = child.wait(timeout, lambda line: _add(answers, line, each), is_pointless)
        log.debug("%s ended with status %d after %.3f s", said, child.status, time.monotonic() - begin)
        child.require_started(path)
        if stopped == "pointless":
            return [answer for answer in answers if isinstance(answer, dict) and "error" not in answer]
        return _answer(answers, child.errors, child.status, said, stopped, timeout)


class Child:
    """A command that runs as long as its caller waits for it.

    A thread starts it and reads its output. Otherwise, a signal handler, which runs only in the main thread, could raise an
    exception after the process has started and before its process ID is known.
    """

    def __init__(self, words: Words) -> None:
        self.errors, self.status = b"", 0
        self.error: Optional[BaseException] = None
        self._words = words
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._starting, self._is_stopped, self._ended = threading.Lock(), False, threading.Event()
        #: Lines; an empty one wakes the reader, and None is the end.
        self.output: queue.SimpleQueue[Optional[bytes]] = queue.SimpleQueue()

    def start(self) -> None:
        threading.Thread(target=self._run, name="moult", daemon=True).start()

    def wait(
        self, timeout: Optional[float], line: Callable[[bytes], None], is_pointless: Callable[[], bool] = lambda: False
    ) -> Optional[str]:
        """Runs the command, and returns why it was asked to stop. Even if this method is interrupted, the command has ended."""
        reason: Optional[str] = None
        end = math.inf if timeout is None else time.monotonic() + timeout
        active = _cancellations.get()
        added: List[Cancellation] = []
        try:
            for each in active:
                added.append(each)
                each.add(self._wake)
            if not any(each.is_cancelled for each in active):
                self.start()
            else:
                return "cancelled"
            while True:
                # A signal that arrives just before the wait does not end the wait: Python handles it at the end of a slice.
                data = self._next(min(_SLICE, max(0, end - time.monotonic())))
                if data is None:
                    return reason
                if data:
                    line(data)
                if reason is None and any(each.is_cancelled for each in active):
                    reason = "cancelled"
                elif reason is None and time.monotonic() >= end:
                    reason = "timeout"
                elif reason is None and not data and is_pointless():
                    reason = "pointless"
                elif reason is None or time.monotonic() < end:
                    continue
                else:
                    self.kill()
                    end = time.monotonic() + _SLICE
                    continue
                self.ask_to_stop()
                end = time.monotonic() + _GRACE
        except BaseException:
            self.stop()
            raise
        finally:
            for each in added:
                each.remove(self._wake)

    def _next(self, seconds: float) -> Optional[bytes]:
        try:
            return self.output.get(timeout=seconds)
        except queue.Empty:
            return b""

    def _wake(self) -> None:
        self.output.put(b"")

    def _run(self) -> None:
        try:
            # In memory, because a directory for temporary files may be missing; a pipe would need another thread.
            with open(os.memfd_create("moult"), "w+b") as errors:
                with self._starting:
                    if self._is_stopped:
                        return
                    self._process = subprocess.Popen(
                        self._words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
                    )
                assert self._process.stdout is not None
                with self._process.stdout as lines:
                    for line in lines:
                        self.output.put(line)
                self.status = self._process.wait()
                errors.seek(0)
                self.errors = errors.read()
        except BaseException as error:
            self.error = error
        finally:
            self._ended.set()
            self.output.put(None)

    def require_started(self, path: str) -> None:
        if isinstance(self.error, OSError):
            now = "Install moult there, or correct the path in MOULT or in Store(path, command=...)."
            raise CommandNotFound(f"cannot run {path}", self.error.strerror, now) from self.error
        if self.error is not None:
            raise self.error

    def ask_to_stop(self) -> None:
        with self._starting:
            self._is_stopped = True
        if self._process is not None:
            self._process.terminate()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def stop(self) -> None:
        """Asks the command to stop and undo its work, and waits for it. A second interruption kills the command."""
        self.ask_to_stop()
        if self._process is None:
            return
        try:
            self._ended.wait(_GRACE)
        finally:
            if not self._ended.is_set():
                self._process.kill()
                self._ended.wait()


def _add(answers: List[Any], line: bytes, each: Optional[Callable[[Any], object]]) -> None:
    try:
        answer = json.loads(line)
    except ValueError:
        # It is not the command moult: then no answer counts.
        answer = None
    answers.append(answer)
    if each is not None and isinstance(answer, dict) and "error" not in answer:
        each(answer)


def _answer(
    answers: List[Any], errors: bytes, status: int, said: str, stopped: Optional[str], timeout: Optional[float]
) -> List[Any]:
    if not all(isinstance(answer, dict) for answer in answers):
        answers = []
    error = answers[-1].get("error") if answers else None
    # A command that can no longer undo its work completes despite the request to stop. Then its result is returned.
    if stopped and (error or status < 0 or not answers):
        why = error["what"] if error else "it was killed" if status < 0 else "it had not begun"
        now = error.get("now") if error else "Finish or undo the update: moult recover" if status < 0 else None
        if stopped == "cancelled":
            raise OperationCancelled(f"{said} was cancelled", why, now, "E600", status)
        what = f"{said} took longer than {timeout:g} s and was stopped"
        raise MoultTimeout(what, why, now, code=error["code"] if error else None, exit_status=status)
    if error:
        raise MoultError(error["what"], error.get("why"), error.get("now"), error["code"], error["exit"])
    if status < 0:
        now = "Finish or undo the update if there was one: moult recover"
        raise MoultError(f"{said} did not finish", f"signal {-status} ended it", now, exit_status=status)
    if not answers:
        text = errors.decode(errors="replace").strip()
        now = "Check that this is the command moult, in the version that this package supports."
        raise MoultError(f"{said} printed no JSON", text or None, now, exit_status=status)
    return answers
