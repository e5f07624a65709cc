"""Threads that use the databases while the package opens and closes them."""

import os
import pathlib
import shutil
import sqlite3
import subprocess

import pytest


@pytest.fixture(scope="session")
def slow_close(tmp_path_factory):
    """A library that delays close(), which happens to any thread on a busy machine."""
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    # Other users must be able to load it.
    directory = tmp_path_factory.mktemp("slow-close")
    source, library = directory / "slow.c", directory / "slow.so"
    source.write_text(
        "#define _GNU_SOURCE\n#include <stdatomic.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n"
        "int close(int fd) { static atomic_ulong n; if (++n % 4 == 0) usleep(2000); return (int)syscall(SYS_close, fd); }\n"
    )
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library


def test_closing_a_connection_drops_no_lock_of_another_thread(store, releases, program, slow_close, capsys):
    notes = pathlib.Path(store.path) / "notes.db"
    updates = int(os.environ.get("MOULT_THREAD_UPDATES", "20"))
    others = [program("spinner", notes, f"process {number}").ready() for number in range(2)]
    threads = program("threads", store.path, updates, releases[2], releases[1], LD_PRELOAD=str(slow_close)).ready()
    result = threads.finish(timeout=600)
    rows = {**result["rows"], **{other["name"]: other["rows"] for other in (other.finish() for other in others)}}
    with capsys.disabled():
        print(f"\n{updates} updates: {result['results']}, {rows}")
    assert not result["failures"]
    connection = sqlite3.connect(notes)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    found = connection.execute("SELECT writer, count(DISTINCT number), max(number) FROM note GROUP BY 1").fetchall()
    assert found == [(name, count, count) for name, count in sorted(rows.items())]
    assert all(rows.values()), rows
