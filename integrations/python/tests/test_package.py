"""The package as it is installed."""

import ast
import os
import pathlib
import subprocess

import moult_store

PACKAGE = pathlib.Path(moult_store.__file__).parent


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
