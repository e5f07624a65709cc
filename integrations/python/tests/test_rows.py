"""The objects of a command that runs until it is ended, one for each line."""

import os
import threading
import time

import pytest
from test_command import children, executable

from moult_store import MoultError
from moult_store.command import Command
from moult_store.rows import changes


def stub(place, text):
    return Command(executable(place / "moult", f"#!/bin/sh\n{text}\n"))


def test_the_objects_come_as_they_are_printed_and_close_ends_the_command(place):
    command = stub(place, 'echo "$*" >&2; echo \'{"event": "generation", "version": "2.0.0"}\'; exec sleep 600')
    lines = changes(command, "/store", since="1.0.0+12")
    assert next(lines) == {"event": "generation", "version": "2.0.0"}
    assert lines.next(0.1) is None
    lines.close()
    assert list(children(os.getpid())) == []
    assert list(lines) == []


def test_close_in_another_thread_ends_the_iteration(place):
    lines = changes(stub(place, "exec sleep 600"), "/store")
    thread = threading.Thread(target=lambda: list(lines))
    thread.start()
    time.sleep(0.2)
    lines.close()
    thread.join(10)
    assert not thread.is_alive()


def test_an_error_is_raised(place):
    failing = """echo '{"error": {"code": "E800", "exit": 1, "what": "no store"}}'; exit 1"""
    with pytest.raises(MoultError, match="no store"):
        next(changes(stub(place, failing), "/store"))
    with pytest.raises(MoultError, match="printed no JSON"):
        next(changes(stub(place, "echo wrong >&2; exit 64"), "/store"))


def test_garbage_collection_ends_the_command(place):
    lines = changes(stub(place, "exec sleep 600"), "/store")
    while not list(children(os.getpid())):
        time.sleep(0.01)
    del lines
    assert list(children(os.getpid())) == []
