"""One database file, without a store and without releases: replaces it, or makes sure that a cache fits the app."""

from __future__ import annotations

import os
import tempfile
from typing import Iterable, Optional, Union

from .command import Command, option, repeated
from .results import CacheState, Replacement

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


def cache(
    path: Path, schema: str, *, timeout: Optional[float] = None, command: Optional[Path] = None
) -> CacheState:
    """Ensures that a cache, a database that the app can recreate, exists at this path with this schema.

    Schemas are compared by structure. A database that does not match, is damaged or cannot be checked is replaced by an empty one in a
    single step. Call this before you open the database.
    """
    # The script is a file, next to which the command would look for the files that it reads.
    with tempfile.TemporaryDirectory() as directory:
        script = os.path.join(directory, "schema.sql")
        with open(script, "w", encoding="utf-8") as file:
            file.write(schema)
        words = [f"--schema={script}", os.path.abspath(path)]
        return CacheState.read(Command(command).run(["cache", "--json", *words], timeout)[-1])
