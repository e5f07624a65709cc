"""Reads the records of a store, which other programs may have damaged or replaced."""

from __future__ import annotations

import json
import os
import re
import stat
from typing import Any, Dict, List, Optional, Tuple

#: The same limit as in the command.
_MOST_BYTES = 1 << 20


def read_text(path: str, follow: bool) -> str:
    """Returns the text of a regular file; raises OSError or ValueError. `follow` allows a symbolic link."""
    # O_NONBLOCK, because opening a FIFO would wait for a writer.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    with open(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a regular file")
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError(f"it is larger than {_MOST_BYTES} bytes")
    return data.decode("utf-8-sig")


def parse(text: str) -> Dict[str, Any]:
    """Returns the object in a JSON document; raises ValueError."""
    try:
        value = json.loads(text, object_pairs_hook=_distinct, parse_int=_integer, parse_constant=_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    return value


def _distinct(members: List[Tuple[str, Any]]) -> Dict[str, Any]:
    found = dict(members)
    if len(found) < len(members):
        # JSON parsers differ in which of the members they use.
        raise ValueError("an object has two members of the same name")
    return found


def _integer(text: str) -> int:
    # Python takes quadratic time for long numbers.
    if len(text) > 20:
        raise ValueError("a number is too long")
    return int(text)


def _constant(text: str) -> float:
    raise ValueError(f"{text} is not allowed in JSON")


# Every alternative matches at the first attempt, however the text goes on, so that the time is proportional to the length of the
# text.
_TOKEN = re.compile(r'"|//[^\n]*|/\*.*?(?:\*/|\Z)|[^"/,]+|.', re.DOTALL)
_MARK = re.compile(r'["\\]')


def _end_of_string(text: str, start: int) -> int:
    """Returns the position after a string that starts at this position, or the end of the text."""
    position = start + 1
    while True:
        mark = _MARK.search(text, position)
        if mark is None:
            return len(text)
        if mark[0] == '"':
            return mark.end()
        position = mark.end() + 1


def without_comments(text: str) -> str:
    """Removes comments and trailing commas, which moult.json may contain; raises ValueError."""
    parts: List[str] = []
    comma: Optional[int] = None
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        assert found is not None  # The last alternative matches any character.
        token, position = found[0], found.end()
        if token == '"':
            position = _end_of_string(text, found.start())
            token = text[found.start() : position]
        if token.startswith("/*") and not (len(token) >= 4 and token.endswith("*/")):
            raise ValueError("a comment has no end")
        if token.startswith(("//", "/*")):
            token = " "
        first = token.lstrip()[:1]
        if first:
            if first in "}]" and comma is not None:
                parts[comma] = " "
            comma = len(parts) if token == "," else None
        parts.append(token)
    return "".join(parts)


_RESERVED = {"moult.json", "manifest.json", "seal.json"}


def is_file_name(name: Any) -> bool:
    """Returns whether a database file may have this name. It has no slash, so it cannot lead out of its directory."""
    return (
        isinstance(name, str)
        and re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", name) is not None
        and not name.lower().endswith(("-wal", "-shm", "-journal"))
        and name.lower() not in _RESERVED
    )


def is_name(name: Any) -> bool:
    """Returns whether a database or a group may have this name."""
    return isinstance(name, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", name) is not None
