"""The rows that updates change, as `moult watch --rows` prints them: one JSON object for each release.

The objects are returned as they are printed; docs/json.md describes them.
"""

from __future__ import annotations

from typing import Optional

from .command import Command, Lines, option


def changes(command: Command, path: str, since: Optional[str] = None) -> Lines:
    """Returns an iterator over the objects. `since` is a generation; without it, it begins with the installed one."""
    return command.lines(["watch", "--rows", "--json", "--store", path, *option("--since", since)])
