"""Finds a second copy of SQLite in this process.

SQLite's locks belong to the process: when one copy closes a file, the kernel drops the locks of the other copy, and another process
writes in the middle of its transaction. Rows are lost, and files damaged.
"""

from __future__ import annotations

import mmap
import os
import re
import sys
import warnings
from typing import Dict, List, Set, Tuple


class SecondSQLiteWarning(UserWarning):
    """Two copies of SQLite are loaded in a process that uses writable databases of a store.

    A program in which only one of them opens these databases may ignore it.
    """


#: Files that may contain SQLite: the library itself, extension modules, and libraries that are built with a copy.
_NAMES = re.compile(r"sqlite|sqlcipher|apsw|sqlean", re.IGNORECASE)

#: A part of SQLite that no program changes. A file that only calls SQLite does not have it.
_MARK = b"(type text,name text,tbl_name text,rootpage int,sql text)"

_known: Dict[str, bool] = {}
_warned: Set[Tuple[str, ...]] = set()


def warn_of_second(level: int) -> None:
    """Warns once if this process has loaded another copy of SQLite than that of the module sqlite3."""
    found = copies()
    if len(found) > 1 and tuple(found) not in _warned:
        _warned.add(tuple(found))
        warnings.warn(
            f"this process has {len(found)} copies of SQLite: {', '.join(found)}. If two of them open the same writable database, each "
            "drops the locks of the other, and rows are lost. Open the databases of the store with one of them only.",
            SecondSQLiteWarning,
            stacklevel=level + 1,
        )


def copies() -> List[str]:
    """Returns the loaded files that contain SQLite."""
    found = {sys.executable} if "_sqlite3" in sys.builtin_module_names else set()
    for path in _mapped():
        # The name of the file, or of the package in which it is.
        if _NAMES.search("/".join(path.split("/")[-2:])) and _contains_sqlite(path):
            found.add(path)
    return sorted(found)


def _mapped() -> Set[str]:
    try:
        with open("/proc/self/maps", "rb") as maps:
            # The address, the rights, the offset, the device, the inode, and the path.
            fields = [line.rstrip(b"\n").split(None, 5) for line in maps]
    except OSError:
        # Without /proc, nothing can be found.
        return set()
    return {os.fsdecode(each[5]) for each in fields if len(each) == 6 and each[5].startswith(b"/") and b"x" in each[1]}


def _contains_sqlite(path: str) -> bool:
    if path not in _known:
        try:
            with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                _known[path] = content.find(_MARK) >= 0
        except (OSError, ValueError):
            # The file was removed or replaced since it was loaded.
            _known[path] = False
    return _known[path]
