"""Replaces one database file, without a store and without releases."""

from __future__ import annotations

import os
from typing import Iterable, Optional, Union

from .command import Command, option, repeated
from .results import Replacement

Path = Union[str, "os.PathLike[str]"]


def replace(
    old: Path,
    new: Path,
    *,
    preserve: Iterable[str] = (),
    checks: Iterable[str] = (),
    yes: bool = False,
    wait: int = 0,
    timeout: Optional[float] = None,
    command: Optional[Path] = None,
) -> Replacement:
    """Replaces the content of the database file `old` with that of `new`, and keeps a copy for `undo_replace`.

    `preserve` names tables whose rows are carried over, as TABLE or TABLE:WHERE; `checks` are queries on `new` with
    their expected answers, as SQL=VALUE or SQL>=VALUE. If the two files seem to be swapped, this raises an error
    unless `yes` is true.
    """
    words = [
        *repeated("--preserve", preserve),
        *repeated("--check", checks),
        *(["--yes"] if yes else []),
        *option("--wait", wait),
        os.path.abspath(old),
        os.path.abspath(new),
    ]
    return Replacement.read(Command(command).run(["replace", "--json", *words], timeout)[-1])


def undo_replace(
    old: Path, *, wait: int = 0, timeout: Optional[float] = None, command: Optional[Path] = None
) -> Replacement:
    """Restores the content from before the last replacement."""
    words = [*option("--wait", wait), os.path.abspath(old)]
    return Replacement.read(Command(command).run(["replace", "--json", "--undo", *words], timeout)[-1])
