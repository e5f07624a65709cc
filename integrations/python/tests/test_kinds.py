"""Stores with databases that are outside the store, or not in UTF-8."""

import contextlib
import hashlib
import json
import sqlite3
import subprocess
import tarfile

import pytest
from conftest import pack, printed_attachments

from moult_store import MoultError, Store


def test_databases_in_another_encoding_without_a_user_database(place, moult):
    scripts = {"a.sql": "PRAGMA encoding = 'UTF-16le'; CREATE TABLE word (text); INSERT INTO word VALUES ('smørrebrød');"}
    draft = {"manifest": 1, "product": "org.example.words", "version": "1.0.0", "sequence": 1}
    draft["databases"] = {"a": {"kind": "reference", "build": {"script": "a.sql"}}}
    manifest = pack(moult, place / "draft", {**scripts, "draft.json": draft}, place / "out")
    store = Store(place / "store")
    store.apply(manifest, create=True)
    assert store.connection.execute("SELECT text FROM a.word").fetchone() == ("smørrebrød",)


def test_databases_in_place_and_a_cache_elsewhere(place, moult):
    """The settings have comments and trailing commas, and strings that look like them."""
    scripts = {name: "CREATE TABLE t (x); INSERT INTO t VALUES (1);" for name in ["maps.sql", "thumbs.sql"]}
    draft = {"manifest": 1, "product": "org.example.maps", "version": "1.0.0", "sequence": 1}
    draft["databases"] = {
        "main": {"kind": "reference", "place": "in-place", "build": {"script": "maps.sql"}, "attach": {"as": "maps"}},
        "thumbs": {"kind": "cache", "build": {"script": "thumbs.sql"}, "path": "small.db"},
    }
    manifest = pack(moult, place / "draft", {**scripts, "draft.json": draft}, place / "out")
    store = Store(place / "store")
    subprocess.run([moult, "init", "-q", store.path, "--product", "org.example.maps"], check=True)
    caches = place / "caches, /* here */ and,]"
    caches.mkdir(parents=True)
    with open(f"{store.path}/moult.json", "w") as file:
        file.write('{ // settings\n "moult": 1, /* of ] */ "product": "org.example.maps",\n "keep": 3,\n')
        file.write(f' "cacheRoot": {json.dumps(str(caches))}, // last,\n}}\n')
    store.apply(manifest)
    assert store.connection.execute("SELECT count(*) FROM maps.t, thumbs.t").fetchone() == (1,)
    assert [database.path for database in store.lease().databases][1] == str(caches / "small.db")
    assert (caches / "small.db").exists()
    store.close()

    # An in-place database is the app's own file, which the app may have moved.
    (place / "out" / "main.db").rename(place / "out" / "moved.db")
    with pytest.raises(MoultError, match="the file is missing"):
        store.connection


def test_members_in_a_directory_of_the_archive(place, moult):
    databases = {}
    (place / "data").mkdir()
    for name, kind in [("maps", "reference"), ("notes", "user")]:
        with contextlib.closing(sqlite3.connect(place / "data" / f"{name}.db")) as database:
            database.execute("CREATE TABLE t (x)")
        content = (place / "data" / f"{name}.db").read_bytes()
        databases[name] = {"kind": kind, "member": f"data/{name}.db", **described(content)}
    with tarfile.open(place / "bundle.tar", "w") as archive:
        archive.add(place / "data", "data")
    manifest = {"manifest": 1, "product": "org.example.maps", "version": "1.0.0", "sequence": 1, "databases": databases}
    manifest["bundle"] = {"file": "bundle.tar", **described((place / "bundle.tar").read_bytes())}
    (place / "release.json").write_text(json.dumps(manifest))
    store = Store(place / "store")
    store.apply(place / "release.json", create=True)
    assert store.connection.execute("SELECT count(*) FROM maps.t, main.t").fetchone() == (0,)


def described(content):
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def test_databases_in_wal_mode(store, releases):
    for name in ["notes.db", "prices.db"]:
        sqlite3.connect(f"{store.path}/{name}").execute("PRAGMA journal_mode = WAL")
    with store.connection as connection:
        connection.execute("INSERT INTO note (writer, number) VALUES ('a', 1)")
    store.apply(releases[2], follow="match")
    assert store.connection.execute("SELECT count(*) FROM note").fetchone() == (1,)
    assert store.connection.execute("SELECT DISTINCT cents FROM price WHERE own = 0").fetchall() == [(2,)]


def test_more_databases_than_sqlite_attaches_open_in_groups(place, moult):
    scripts, databases = {}, {}
    for number in range(22):
        scripts[f"d{number}.sql"] = f"CREATE TABLE t (n); INSERT INTO t VALUES ({number});"
        group = {"group": "maps"} if number > 10 else {}
        is_main = number % 11 == 0
        attach = group if is_main else {**group, "as": f"x{number % 11}"}
        kind = "user" if is_main else "reference"
        databases[f"d{number}"] = {"kind": kind, "build": {"script": f"d{number}.sql"}, "attach": attach}
    draft = {"manifest": 1, "product": "org.example.many", "version": "1.0.0", "sequence": 1, "databases": databases}
    manifest = pack(moult, place / "draft", {**scripts, "draft.json": draft}, place / "out")
    store = Store(place / "store")
    store.apply(manifest, create=True)
    query = "SELECT main.t.n, x1.t.n, x10.t.n FROM main.t, x1.t, x10.t"
    assert store.connection.execute(query).fetchone() == (0, 1, 10)
    with store.connect(group="maps") as maps:
        assert maps.execute(query).fetchone() == (11, 12, 21)
    with store.attachments(group="maps") as pairs:
        assert list(pairs) == printed_attachments(store, "--group", "maps")
    for ask in [store.connect, store.attachments]:
        with pytest.raises(MoultError) as raised:
            ask(group="map")
        assert str(raised.value).startswith('release 1.0.0 has no group "map" of databases: it has maps')
