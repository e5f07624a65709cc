"""The errors of this package: one class for each kind of error that apps handle, by its code."""

from __future__ import annotations

from typing import Any, Dict, Optional, Type


class MoultError(Exception):
    """What failed, why, and what to do next. `code` is listed in docs/troubleshooting.md and does not change between versions.

    `MoultError(..., code="E504")` is a `HeldError`, so a program can catch the errors that it handles by their class.
    """

    #: The classes by code.
    _by_code: Dict[str, Type[MoultError]] = {}

    def __init_subclass__(cls, code: Optional[str] = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if code is not None:
            MoultError._by_code[code] = cls

    def __new__(cls, *arguments: Any, **options: Any) -> MoultError:
        code: Any = options.get("code", arguments[3] if len(arguments) > 3 else None)
        return super().__new__(MoultError._by_code.get(code, cls) if cls is MoultError else cls)

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
        #: The exit status of the command (`moult help exit-codes`). None if no command ran.
        self.exit_status = exit_status

    @property
    def outcome(self) -> str:
        """The consequence for the store: `failed`, `refused`, `stale`, `undone`, `stuck`, `usage` or `busy` (try again later)."""
        return _OUTCOMES.get(self.exit_status or 1, "failed")

    def __str__(self) -> str:
        first = f"{self.what}: {self.why}" if self.why else self.what
        return f"{first}\n{self.now}" if self.now else first


_OUTCOMES = {3: "refused", 4: "stale", 5: "undone", 6: "stuck", 64: "usage", 75: "busy"}


class CommandNotFound(MoultError):
    """The command `moult` is not installed, or cannot be run."""


class MoultTimeout(MoultError):
    """The command was stopped because it took longer than `timeout`."""


class SystemCallError(MoultError, code="E100"):
    """A system call failed."""


class InvalidJSONError(MoultError, code="E110"):
    """Invalid JSON, or JSON with an unexpected structure."""


class ManifestError(MoultError, code="E200"):
    """An invalid or contradictory manifest."""


class UnknownKeyError(MoultError, code="E255"):
    """The signature is not by a trusted key."""


class BadSignatureError(MoultError, code="E256"):
    """The signature does not match the file, or its trusted comment was changed."""


class UnsignedError(MoultError, code="E258"):
    """The signature is missing, or there are too few signatures."""


class DistrustedError(MoultError, code="E261"):
    """A feed that must not be trusted, or key lists that are missing."""


class NoFeedError(MoultError, code="E262"):
    """The store has no feed."""


class UnreachableError(MoultError, code="E271"):
    """The server did not respond, or the transfer was incomplete."""


class NotThereError(MoultError, code="E272"):
    """The file does not exist, or the server refuses access to it."""


class DatabaseBusyError(MoultError, code="E402"):
    """Another process holds a lock on the database."""


class DatabaseCorruptError(MoultError, code="E403"):
    """The file is damaged or not a database."""


class RefusedError(MoultError, code="E500"):
    """The planned release is refused."""


class SpaceError(MoultError, code="E503"):
    """Not enough disk space."""


class HeldError(MoultError, code="E504"):
    """The operator has put the release on hold."""


class VersionError(MoultError, code="E510"):
    """The release must not replace the installed one, for example because it is older."""


class UserDatabaseError(MoultError, code="E520"):
    """A user database does not fit the release, or a writable database cannot be used at its path."""


class MissingDataError(MoultError, code="E521"):
    """A database with app data or user data is missing."""


class OperationCancelled(MoultError, code="E600"):
    """The operation was interrupted or cancelled before anything had changed."""


class DigestError(MoultError, code="E601"):
    """A file's digest does not match the manifest."""


class OccupiedError(MoultError, code="E610"):
    """The release must not replace the file or link at the path of a database."""


class StraySidecarError(MoultError, code="E611"):
    """A read-only database has a stray sidecar."""


class WrongContentError(MoultError, code="E620"):
    """A staged file does not match the manifest, or fails verification."""


class PreserveError(MoultError, code="E630"):
    """Preserved rows do not fit the release, or the release no longer preserves them."""


class InUseError(MoultError, code="E631"):
    """A writable database is in use."""


class UndoneError(MoultError, code="E700"):
    """The update failed after the decision to install and was undone."""


class StuckError(MoultError, code="E701"):
    """The update could be neither completed nor undone."""


class ConsumerError(MoultError, code="E702"):
    """A consumer failed to reload."""


class StoreError(MoultError, code="E800"):
    """The path has no store, or its store cannot be used."""


class LockedError(MoultError, code="E802"):
    """Another process has the store's lock."""


class TooOldError(MoultError, code="E805"):
    """The installed data is older than the settings of the store allow."""


class WillNotLoadError(MoultError, code="E820"):
    """A writable database cannot be opened, and was not recreated."""
