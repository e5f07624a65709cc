"""A second copy of SQLite in the process, which loses rows."""

import json
import subprocess
import sys

import pytest

WARNED = "this process has 2 copies of SQLite: "


def warned(program, store):
    """Returns the warnings of a program."""
    head = "import json, sys, warnings\nfrom moult_store import SecondSQLiteWarning, Store\nstore = Store(sys.argv[1])\n"
    words = [sys.executable, "-c", f"{head}with warnings.catch_warnings(record=True) as found:\n    warnings.simplefilter('always')\n"]
    words[-1] += "".join(f"    {line}\n" for line in program) + "print(json.dumps([[w.category.__name__, str(w.message)] for w in found]))"
    ended = subprocess.run([*words, store.path], capture_output=True, text=True, check=True)
    return json.loads(ended.stdout)


@pytest.mark.parametrize(
    "use",
    ["store.attachments()", "store.connection", "store.connect()", "store.lease().databases", "store.attachments(read_only=True)"],
)
def test_a_second_copy_is_reported_where_a_writable_database_is_opened_or_handed_out(store, use):
    ((category, text),) = warned(["import apsw", use, use], store)
    assert category == "SecondSQLiteWarning"
    assert text.startswith(WARNED) and "/apsw/" in text
    assert "rows are lost" in text


def test_a_copy_that_is_loaded_later_is_reported(store):
    assert len(warned(["store.connection", "import apsw", "store.attachments()"], store)) == 1


def test_one_copy_is_not_reported(store):
    assert warned(["store.connection", "store.attachments()", "store.lease().databases"], store) == []


def test_a_program_can_ignore_it(store):
    assert warned(["import apsw", "warnings.simplefilter('ignore', SecondSQLiteWarning)", "store.attachments()"], store) == []
