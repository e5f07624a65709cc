"""The package as it is installed."""

import ast
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
    assert len(blocks()) == 10
    for program in blocks():
        ast.parse(program)


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
