"""Real releases, stores and processes for the tests."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

from moult_store import Store

PROGRAMS = pathlib.Path(__file__).parent / "programs"

# Characters with a special meaning in a URI, in a shell or for moult.
NAMES = ["plain", "with spaces", "100%25", "why? because", "c#", "a&b=c;d", "-q", "dänisch", "it's \"here\""]

#: From this release on, the user's database has another schema.
MIGRATED = 3
FOODS = 200


def scripts(release):
    """Returns the scripts of a release's databases; each shipped row contains the number of its release."""
    notes = "CREATE TABLE note (id INTEGER PRIMARY KEY, writer TEXT NOT NULL, number INTEGER NOT NULL"
    migrated = ", done INTEGER NOT NULL DEFAULT 0); PRAGMA user_version = 1;"
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {FOODS})"
    return {
        "notes.sql": notes + (migrated if release >= MIGRATED else ");"),
        "0001-done.sql": "ALTER TABLE note ADD COLUMN done INTEGER NOT NULL DEFAULT 0; PRAGMA user_version = 1;",
        "food.sql": "CREATE TABLE food (id INTEGER PRIMARY KEY, release INTEGER NOT NULL);"
        f"INSERT INTO food {numbers} SELECT i, {release} FROM n;",
        "price.sql": "CREATE TABLE price (item TEXT PRIMARY KEY, cents INTEGER NOT NULL, own INTEGER NOT NULL);"
        f"INSERT INTO price {numbers} SELECT 'food ' || i, {release}, 0 FROM n;",
        "thumb.sql": "CREATE TABLE thumb (id INTEGER PRIMARY KEY, image BLOB);",
    }


def draft(release):
    notes = {"kind": "user", "build": {"script": "notes.sql"}}
    if release >= MIGRATED:
        notes["migrations"] = ["0001-done.sql"]
    keep = [{"table": "price", "where": "own = 1", "onConflict": "keep-user"}]
    return {
        "manifest": 1,
        "product": "org.example.shop",
        "version": f"{release}.0.0",
        "sequence": release,
        "databases": {
            "food": {"kind": "reference", "build": {"script": "food.sql"}},
            "notes": notes,
            "prices": {"kind": "shared", "build": {"script": "price.sql"}, "preserve": keep},
            "thumbs": {"kind": "cache", "build": {"script": "thumb.sql"}, "attach": {"as": "small-pictures"}},
        },
    }


def pack(moult, directory, drafts, output):
    """Packs a draft with its scripts, and returns the path of the manifest."""
    directory.mkdir()
    for name, text in drafts.items():
        (directory / name).write_text(text if isinstance(text, str) else json.dumps(text))
    command = [moult, "pack", "--json", "--output", str(output), str(directory / "draft.json")]
    packed = subprocess.run(command, check=True, capture_output=True, text=True)
    # Warnings have lines of their own.
    return json.loads(packed.stdout.splitlines()[-1])["manifest"]


@pytest.fixture(scope="session")
def moult():
    """The command to test."""
    return os.environ["MOULT"]


@pytest.fixture
def place():
    """A directory that other users can read, unlike the temporary directories of pytest."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="moult-python-"))
    directory.chmod(0o755)
    yield directory
    remove(directory)


def remove(directory):
    # Generations are read-only directories.
    for path, directories, _ in os.walk(directory):
        for name in directories:
            if not os.path.islink(os.path.join(path, name)):
                os.chmod(os.path.join(path, name), 0o755)
    shutil.rmtree(directory)


@pytest.fixture(scope="session")
def releases(moult):
    """The manifests of releases 1 to 4, by number."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="moult-python-releases-"))
    directory.chmod(0o755)
    yield {
        number: pack(moult, directory / str(number), {**scripts(number), "draft.json": draft(number)}, directory / "out")
        for number in range(1, 5)
    }
    remove(directory)


@pytest.fixture
def store(place, releases):
    """A store with release 1."""
    with Store(place / "my store 100%25?#") as store:
        store.apply(releases[1], create=True)
        yield store


def printed_attachments(store, *words):
    """Returns the schema names and URIs that the command prints. Its URIs of writable databases may have a mode, for the shell."""
    printed = store._command.run(["attach", *words, "--json", "--store", store.path])[0]
    return [(each["schema"], each["uri"].removesuffix("?mode=rw")) for each in printed["databases"]]


class Program:
    """Another process. It prints `ready`, works until its input ends, and then prints its results as JSON."""

    def __init__(self, name, *arguments, user=None, **environment):
        self.name = name
        command = [sys.executable, str(PROGRAMS / f"{name}.py"), *map(str, arguments)]
        if user is not None:
            command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env={**os.environ, **environment}
        )

    def ready(self):
        line = self.process.stdout.readline()
        assert line == "ready\n", self.process.communicate()[1]
        return self

    def finish(self, timeout=60):
        """Ends the program's input, and returns its results."""
        output, errors = self.process.communicate(timeout=timeout)
        assert self.process.returncode == 0, errors
        return json.loads(output)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@pytest.fixture
def program():
    """Starts a program, and ends it after the test."""
    started = []

    def start(*arguments, **options):
        started.append(Program(*arguments, **options))
        return started[-1]

    yield start
    for each in started:
        each.__exit__()
