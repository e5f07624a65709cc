"""The package as it is installed."""

import ast
import asyncio
import os
import pathlib
import re
import subprocess

import moult_store

PACKAGE = pathlib.Path(moult_store.__file__).parent
README = next(path / "README.md" for path in pathlib.Path(__file__).parents if (path / "README.md").exists())


def test_the_wheel_carries_a_command_that_runs(store):
    assert os.access(moult_store.command.BUNDLED, os.X_OK)
    printed = subprocess.run([moult_store.command.BUNDLED, "--version"], check=True, capture_output=True, text=True)
    assert printed.stdout.startswith("moult ")


def test_the_package_is_typed_and_the_tests_use_the_installed_one():
    assert (PACKAGE / "py.typed").exists()
    assert "site-packages" in PACKAGE.parts


def test_the_syntax_is_that_of_python_3_9():
    for file in PACKAGE.glob("*.py"):
        ast.parse(file.read_text(), feature_version=(3, 9))


def blocks():
    """Returns the programs in README.md."""
    return re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)


def test_the_programs_in_the_readme_are_valid():
    assert len(blocks()) == 12
    for program in blocks():
        ast.parse(program)


def block(words):
    (found,) = [program for program in blocks() if words in program]
    return found


def test_the_consumer_in_the_readme_reloads(store, releases, capsys):
    names = {"store": store, "__name__": "app"}
    exec(block("class Library"), names)
    library = names["registration"].consumer
    library.connection = store.connect(check_same_thread=False)
    store.apply(releases[2])
    names["registration"].cancel()
    assert capsys.readouterr().out == "['prices'] 2.0.0\n"
    assert library.connection.release == "2.0.0"


def test_the_repair_in_the_readme(store, capsys):
    open(f"{store.path}/notes.db", "w").close()
    exec(block("recovering=Recovery"), {"store": store})
    assert capsys.readouterr().out.startswith("started over: it is empty the old notes: /")


def test_the_program_for_asyncio_in_the_readme(store, releases, monkeypatch, capsys):
    text = block("async def main").replace('"store"', repr(store.path)).replace('"releases/app-2.0.0.json"', repr(releases[1]))
    text = text.replace("SELECT name", "SELECT id")
    names = {}
    exec(text, names)

    async def run():
        task = asyncio.create_task(names["main"]())
        number = 1
        while not (printed := capsys.readouterr().out):
            # The program may not have begun to wait for events.
            number = 3 - number
            await asyncio.to_thread(store.apply, releases[number], follow="match", retry=20)
            await asyncio.sleep(0.5)
            assert not task.done(), task.exception()
        task.cancel()
        assert printed.splitlines()[0] in ("1.0.0 200", "2.0.0 200")

    asyncio.run(run())


def test_the_settings_for_django_in_the_readme(store):
    names = {}
    exec(block("DATABASE_ROUTERS").replace('"/var/lib/app"', repr(store.path)), names)
    assert set(names["DATABASES"]) == {"default", "food", "notes", "prices", "thumbs"}


class Enough(Exception):
    pass


def test_the_loop_in_the_readme_draws_each_release(store, releases, capsys):
    (loop,) = [program for program in blocks() if "is not shown" in program]
    manifests = [releases[2], releases[1]]

    class Time:
        @staticmethod
        def sleep(seconds):
            if not manifests:
                raise Enough
            store.apply(manifests.pop(0), follow="match")

    try:
        exec(loop, {"store": store, "time": Time})
    except Enough:
        pass
    assert capsys.readouterr().out == "1.0.0 (200,)\n2.0.0 (200,)\n1.0.0 (200,)\n"
