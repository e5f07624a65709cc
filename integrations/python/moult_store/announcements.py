"""The release that a store announced last: an update writes it when the content of all its databases is there.

`.moult/current` switches earlier, before the update commits to databases that the app writes to. docs/in-an-app.md describes the
protocol.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import stat
from typing import NamedTuple, Optional

from .errors import MoultError

#: The name of a generation: a version and a digest.
GENERATION = r"(?!\.)(?!.*\.\.)[0-9A-Za-z.-]+\+[0-9A-Za-z+.-]*"
_LINE = re.compile(rf"({GENERATION}) ([0-9A-Za-z.-]+)\n")
_MOST_BYTES = 1024

#: Errors that mean that something else is in place of the file.
_NO_FILE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO}


class Announcement(NamedTuple):
    """A release that was put into service."""

    generation: str
    #: The update. Another update to the same generation changes only this.
    transaction: str


def announced(directory: str) -> Optional[Announcement]:
    """Returns the last announcement; None before the first one, and for an invalid line."""
    path = f"{directory}/.moult/announced"
    try:
        # O_NONBLOCK, because opening a FIFO would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        now = f"Let the user read it: chmod a+r {shlex.quote(path)}"
        raise MoultError(f"cannot read {path}", "this user may not read the file", now, code="E401") from None
    except OSError as error:
        if error.errno not in _NO_FILE:
            raise
        return None
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        line = os.read(descriptor, _MOST_BYTES).decode("ascii", "replace") if is_file else ""
    finally:
        os.close(descriptor)
    found = _LINE.fullmatch(line)
    return Announcement(found[1], found[2]) if found else None
