"""The errors of this package."""

from __future__ import annotations

from typing import Optional


class MoultError(Exception):
    """What failed, why, and what to do next. `code` is listed in docs/troubleshooting.md and does not change between versions."""

    def __init__(
        self,
        what: str,
        why: Optional[str] = None,
        now: Optional[str] = None,
        code: Optional[str] = None,
        exit_status: Optional[int] = None,
    ) -> None:
        # All arguments go to Exception, so that the error can be pickled and sent to another process.
        super().__init__(what, why, now, code, exit_status)
        self.what = what
        self.why = why
        self.now = now
        self.code = code
        #: The exit status of the command (`moult help exit-codes`): 75 means try later. None if no command ran.
        self.exit_status = exit_status

    def __str__(self) -> str:
        first = f"{self.what}: {self.why}" if self.why else self.what
        return f"{first}\n{self.now}" if self.now else first


class CommandNotFound(MoultError):
    """The command `moult` is not installed, or cannot be run."""


class MoultTimeout(MoultError):
    """The command was stopped because it took longer than `timeout`."""
