"""Runs the command `moult` and reads its JSON output, which docs/json.md describes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any, Iterable, List, Optional, Tuple, Union

from .errors import CommandNotFound, MoultError, MoultTimeout

Words = List[str]

#: The command that a wheel for one platform carries.
BUNDLED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "moult")

#: How long a command may take to undo its work after it was asked to stop. Then it is killed, and the next one recovers.
_GRACE = 30.0


def option(name: str, value: Union[None, bool, int, str]) -> Words:
    """The words of an option; none if it has no value, or is off."""
    if value is None or value is False or value == 0 and not isinstance(value, str):
        return []
    return [name] if value is True else [name, str(value)]


def repeated(name: str, values: Iterable[str]) -> Words:
    if isinstance(values, str):
        values = [values]
    return [word for value in values for word in (name, value)]


class Command:
    """The command `moult`: a given path, else that of the variable MOULT, else the bundled one, else one in PATH."""

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
            "it is not in PATH, the variable MOULT is not set, and this package has no command of its own",
            "Install moult, or name it: MOULT=/path/of/moult, or Store(path, command=...).",
        )

    def run(self, words: Words, timeout: Optional[float] = None) -> List[Any]:
        """All objects that the command prints. Raises the error if it prints one."""
        path = self.find()
        try:
            process = subprocess.Popen(
                [path, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as error:
            now = "Install moult there, or correct the path in MOULT or in Store(path, command=...)."
            raise CommandNotFound(f"cannot run {path}", error.strerror, now) from error
        stopped = False
        try:
            try:
                output, errors = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                stopped = True
                output, errors = _stop(process)
        except BaseException:
            # Ctrl-C, or an exception of a signal handler: the command must not go on without its caller.
            _stop(process)
            raise
        said = " ".join([os.path.basename(path), words[0]])
        return _answer(output, errors, process.returncode, said, timeout if stopped else None)


def _stop(process: subprocess.Popen[bytes]) -> Tuple[bytes, bytes]:
    """Asks the command to stop, which undoes its work, and waits for it."""
    if process.poll() is None:
        process.terminate()
    try:
        return process.communicate(timeout=_GRACE)
    finally:
        # After an answer it has ended already; after another interruption or the grace period it has not.
        if process.poll() is None:
            process.kill()
            process.wait()


def _answer(output: bytes, errors: bytes, status: int, said: str, timeout: Optional[float]) -> List[Any]:
    try:
        answers = [json.loads(line) for line in output.splitlines()]
    except ValueError:
        answers = []
    last = answers[-1] if answers else {}
    error = last.get("error")
    # A command that had passed the point of no return finishes in spite of the request to stop: its result counts.
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
        now = "Check that this is the command moult, in the version that this package was made for."
        raise MoultError(f"{said} printed no JSON", text or None, now, exit_status=status)
    return answers
