"""Runs the command `moult` and reads its JSON output, which docs/json.md describes."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import threading
import time
from typing import Any, Iterable, List, Optional, Union

from .errors import CommandNotFound, MoultError, MoultTimeout

Words = List[str]

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

    def run(self, words: Words, timeout: Optional[float] = None) -> List[Any]:
        """Returns all objects that the command prints. If it prints an error, raises that error."""
        path = self.find()
        child = _Child([path, *words])
        in_time = child.wait(timeout)
        if isinstance(child.error, OSError):
            now = "Install moult there, or correct the path in MOULT or in Store(path, command=...)."
            raise CommandNotFound(f"cannot run {path}", child.error.strerror, now) from child.error
        said = " ".join([os.path.basename(path), words[0]])
        return _answer(child.output, child.errors, child.status, said, None if in_time else timeout)


class _Child:
    """A command that runs as long as its caller waits for it.

    A thread starts it and reads its output. Otherwise, a signal handler, which runs only in the main thread, could raise an
    exception after the process has started and before its process ID is known.
    """

    def __init__(self, words: Words) -> None:
        self.output, self.errors, self.status = b"", b"", 0
        self.error: Optional[BaseException] = None
        self._words = words
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._starting, self._is_cancelled, self._ended = threading.Lock(), False, threading.Event()

    def wait(self, timeout: Optional[float]) -> bool:
        """Runs the command, and returns whether it ended in time. Even if this method is interrupted, the command has ended."""
        try:
            threading.Thread(target=self._run, name="moult", daemon=True).start()
            deadline = math.inf if timeout is None else time.monotonic() + timeout
            # A signal that arrives just before the wait does not end the wait: Python handles it at the end of a slice.
            while not self._ended.wait(max(0, min(_SLICE, deadline - time.monotonic()))):
                if time.monotonic() >= deadline:
                    self._stop()
                    return False
            return True
        except BaseException:
            self._stop()
            raise

    def _run(self) -> None:
        pipe = subprocess.PIPE
        try:
            with self._starting:
                if self._is_cancelled:
                    return
                self._process = subprocess.Popen(self._words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
            self.output, self.errors = self._process.communicate()
            self.status = self._process.returncode
        except BaseException as error:
            self.error = error
        finally:
            self._ended.set()

    def _stop(self) -> None:
        """Asks the command to stop and undo its work, and waits for it. A second interruption kills the command."""
        with self._starting:
            self._is_cancelled = True
        if self._process is None:
            return
        try:
            self._process.terminate()
            self._ended.wait(_GRACE)
        finally:
            if not self._ended.is_set():
                self._process.kill()
                self._ended.wait()


def _answer(output: bytes, errors: bytes, status: int, said: str, timeout: Optional[float]) -> List[Any]:
    try:
        answers = [json.loads(line) for line in output.splitlines()]
    except ValueError:
        answers = []
    last = answers[-1] if answers else {}
    error = last.get("error")
    # A command that can no longer undo its work completes despite the request to stop. Then its result is returned.
    if timeout is not None and (error or status < 0 or not answers):
        why = error["what"] if error else "it was killed"
        now = error.get("now") if error else "Finish or undo the update: moult recover"
        raise MoultTimeout(
            f"{said} took longer than {timeout:g} s and was stopped",
            why,
            now,
            code=error["code"] if error else None,
            exit_status=status,
        )
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
