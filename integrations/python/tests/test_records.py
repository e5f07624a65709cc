"""Records of a store that another program has damaged or replaced on purpose."""

import json
import os
import shutil
import time

import pytest

from moult_store import MoultError, Store
from moult_store.records import parse, without_comments


@pytest.fixture
def manifest(store):
    """The path of the installed manifest, in a directory that may be changed."""
    directory = f"{store.path}/.moult/generations/{store.generation}"
    os.chmod(directory, 0o755)
    return f"{directory}/manifest.json"


def change(path, edit):
    with open(path, encoding="utf-8") as file:
        value = json.load(file)
    edit(value)
    os.unlink(path)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)


@pytest.mark.parametrize("kind", ["fifo", "link", "large", "directory"])
def test_only_a_regular_file_is_read_as_the_manifest(store, manifest, kind):
    shutil.copy(manifest, f"{store.path}/copy.json")
    os.unlink(manifest)
    if kind == "fifo":
        os.mkfifo(manifest)
    elif kind == "link":
        os.symlink(f"{store.path}/copy.json", manifest)
    elif kind == "directory":
        os.mkdir(manifest)
    else:
        with open(manifest, "wb") as file:
            file.truncate(1 << 40)
    with pytest.raises(MoultError, match="generation .* cannot be read"):
        store.lease()


@pytest.mark.parametrize(
    "name",
    ["../../x", "/etc/x", "a/b", "..", ".hidden", "-x", "a\nb", "a\0b", "", "x" * 129, "x.db-wal", "X.DB-JOURNAL", "moult.json", 7, None, []],
)
@pytest.mark.parametrize("database, field", [("notes", "path"), ("thumbs", "path"), ("notes", "member"), ("food", "member")])
def test_no_name_leads_out_of_the_store(store, manifest, name, database, field):
    if field == "member" and isinstance(name, str) and "/" in name:
        # A member may be in a directory of the archive; the store has only the file name.
        change(manifest, lambda value: value["databases"][database].update(member=name))
        paths = [one.path for one in store.lease().databases]
        assert all(path.startswith(f"{store.path}/") and "/../" not in path for path in paths)
        return
    change(manifest, lambda value: value["databases"][database].update({field: name}))
    with pytest.raises(MoultError, match=f"databases.{database}.{field} is not the name of a database file"):
        store.lease()


@pytest.mark.parametrize("edit", ["kind", "as", "group", "name", "version", "databases", "list"])
def test_a_manifest_with_invalid_values_is_refused(store, manifest, edit):
    def apply(value):
        food = value["databases"]["food"]
        if edit == "kind":
            food["kind"] = "other"
        elif edit in ("as", "group"):
            food["attach"] = {edit: 'x"; DROP TABLE t'}
        elif edit == "name":
            value["databases"]["a b"] = food
        elif edit == "version":
            value["version"] = "../1"
        else:
            value["databases"] = [] if edit == "list" else {"food": 1}

    change(manifest, apply)
    with pytest.raises(MoultError, match="cannot be read"):
        store.lease()


@pytest.mark.parametrize("text", ["[" * 500_000, '{"a": ' * 100_000, '{"a": 1, "a": 2}', '{"a": NaN}', f'{{"a": {"9" * 900_000}}}', "[]", "\ufeff"])
def test_text_that_is_not_a_record_is_refused(store, manifest, text):
    os.unlink(manifest)
    with open(manifest, "w", encoding="utf-8") as file:
        file.write(text)
    with pytest.raises(MoultError, match="cannot be read"):
        store.lease()


def test_settings_behind_a_fifo(store):
    os.unlink(f"{store.path}/moult.json")
    os.mkfifo(f"{store.path}/moult.json")
    with store.lease() as lease, pytest.raises(MoultError, match="cannot read the settings"):
        lease.databases


@pytest.mark.parametrize(
    "text, value",
    [
        ('{"a": 1, // x, }\n "b": [1, 2, /* ] */ ], }', {"a": 1, "b": [1, 2]}),
        ('{"a": "// no, /* comment */ ,]", "b": "\\"//",}', {"a": "// no, /* comment */ ,]", "b": '"//'}),
        ('{/**/"a"/***/:/* * / */1,/*,*/}', {"a": 1}),
        ('// first\n{"a": 1}\n// last', {"a": 1}),
    ],
)
def test_comments_and_trailing_commas(text, value):
    assert parse(without_comments(text)) == value


@pytest.mark.parametrize("text", ["{} /* x", "{} /*/", '{"a": 1,, }', "{,}/", '{"a": "x', "{} / /"])
def test_text_that_is_not_settings(text):
    with pytest.raises(ValueError):
        parse(without_comments(text))


#: Shapes of text, each repeated up to the size limit of a record.
SHAPES = {
    "slashes": "/", "comments": "// x\n", "open comments": "/* ", "closed comments": "/**/", "commas": ",", "commas and spaces": ", ",
    "quotes": '"', "escaped quotes": '\\"', "strings": '"a",', "nested": '{"a":', "lists": "[", "closed": "]", "digits": "9", "keys": '"k":1,',
    "backslashes": "\\", "stars": "*", "comment after comma": ",//\n", "comment in comma": ",/*,*/", "spaces": " ", "exponents": "1e1",
}


def seconds(text):
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        try:
            parse(without_comments(text))
        except ValueError:
            pass
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize("begin", ["", '{"a": 1, ', "["])
@pytest.mark.parametrize("name", SHAPES)
def test_the_time_to_read_settings_is_proportional_to_their_size(name, begin):
    part = SHAPES[name]
    small, large = [begin + part * (size // len(part)) for size in (100_000, 1_000_000)]
    # Three milliseconds are for what every text takes. A pause of the machine during one measurement must not fail the test.
    assert any(seconds(large) <= 13 * (seconds(small) + 0.003) for _ in range(4))


def test_a_store_object_reads_settings_once_for_all_caches(place, monkeypatch):
    """A manifest may have thousands of caches, and each reading of the settings takes time."""
    read = []
    monkeypatch.setattr("moult_store.lease.cache_root", lambda directory: read.append(directory))
    generation = place / "store" / ".moult" / "generations" / "1.0.0+0"
    generation.mkdir(parents=True)
    (place / "store" / ".moult" / "current").symlink_to("generations/1.0.0+0")
    databases = {f"c{number}": {"kind": "cache", "member": f"c{number}.db"} for number in range(3)}
    (generation / "manifest.json").write_text(json.dumps({"manifest": 1, "version": "1.0.0", "databases": databases}))
    with Store(place / "store").lease() as lease:
        assert len(lease.databases) == 3
    assert len(read) == 1
