"""Changes the settings of a store."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
import tempfile
import time
from typing import Any, Iterator, Optional

from .errors import LockedError, MoultError
from .lease import unusable
from .records import is_name, parse, read_text, without_comments

_STANDARD_CHANNEL = "stable"


def write_feed(directory: str, url: Optional[str], channel: Optional[str]) -> None:
    """Writes the feed, and changes nothing else. The whole file must be plain JSON."""
    path = f"{directory}/moult.json"
    if url == "" or channel is not None and not is_name(channel):
        why = "the address is empty" if url == "" else f'"{channel}" is not the name of a channel'
        raise MoultError(f"the feed cannot be written to {path}", why, code="E801", exit_status=3)
    with _locked(directory):
        settings = _read(path)
        before = settings.get("feed", {})
        if url is None:
            feed = {}
        else:
            # Another server gets neither the mirrors nor the secrets of the present one.
            feed = dict(before) if before.get("url") == url else {"url": url}
            if channel is not None:
                feed.pop("channel", None)
                feed.update({"channel": channel} if channel != _STANDARD_CHANNEL else {})
        if feed == before:
            return
        if feed:
            settings["feed"] = feed
        else:
            del settings["feed"]
        mode = stat.S_IMODE(os.stat(path).st_mode)
        _replace(path, settings, mode & 0o600 if url is not None and _SECRET.match(url) else mode)


#: A URL with a user, a password or a query.
_SECRET = re.compile(r"(?!file:)(?:https?:|[^:/?#]+://)/*(?:[^/]*@|.*[?#])", re.IGNORECASE | re.DOTALL)


def _read(path: str) -> Any:
    try:
        text = read_text(path, follow=True)
        try:
            return parse(text)
        except ValueError:
            parse(without_comments(text))
    except (OSError, ValueError) as error:
        raise unusable(os.path.dirname(path), str(error)) from error
    what, why = f"the feed cannot be written to {path}", "the file has comments or trailing commas, which would be lost"
    raise MoultError(what, why, 'Set "feed" in that file by hand.', "E801", 3)


@contextlib.contextmanager
def _locked(directory: str) -> Iterator[None]:
    """Takes the lock of the store, as the command does, and waits for up to ten seconds."""
    end = time.monotonic() + 10
    try:
        descriptor = os.open(f"{directory}/.moult/lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise MoultError(f"this user cannot change the store {directory}", str(error), code="E800") from error
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    what, now = f"the store {directory} is in use", "Try again later."
                    raise LockedError(what, "locked by another moult process", now, "E802", 75) from None
                time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)


def _replace(path: str, settings: Any, mode: int) -> None:
    directory = os.path.dirname(path)
    try:
        descriptor, staged = tempfile.mkstemp(prefix=".moult.json-", dir=directory)
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                os.fchmod(descriptor, mode)
                file.write(json.dumps(settings, indent=2, ensure_ascii=False) + "\n")
                file.flush()
                os.fsync(descriptor)
            os.replace(staged, path)
        except BaseException:
            os.unlink(staged)
            raise
        parent = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)
    except OSError as error:
        raise MoultError(f"cannot write {path}", str(error), code="E100") from error
