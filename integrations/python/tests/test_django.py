"""The database backend for Django, in a program that runs requests as Django's server does."""

import json
import subprocess
import sys

import pytest
from conftest import PROGRAMS
from test_load import update


class Site:
    def __init__(self, store):
        pipe = subprocess.PIPE
        command = [sys.executable, str(PROGRAMS / "django_site.py"), store.path]
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        assert self.answer() == "ready"

    def tell(self, word):
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        return json.loads(line)

    def ask(self, word):
        self.tell(word)
        return self.answer()


@pytest.fixture
def site(store):
    site = Site(store)
    yield site
    errors = site.process.communicate()[1]
    assert site.process.returncode == 0 and errors == "", errors


def test_each_request_reads_the_release_that_is_installed(site, store, releases):
    assert site.ask("request") == [[1], [1], 0, "1.0.0"]
    for number in [2, 1, 2]:
        store.apply(releases[number], follow="match")
        assert site.ask("request") == [[number], [number], 0, f"{number}.0.0"]
        assert site.ask("thread") == [[number], [number], 0, f"{number}.0.0"]
    # No connection to an earlier release is left.
    assert [each["current"] for each in store.status().json["generations"] if each["holders"]] in ([], [True])


def test_a_request_keeps_its_read_only_release(site, store, releases):
    assert site.ask("begin")[0] == [1]
    store.apply(releases[2])
    # The content of a shared database changes in place, under the open connection.
    assert site.ask("see") == [[1], [2], 0, "1.0.0"]
    site.ask("end")
    assert site.ask("request") == [[2], [2], 0, "2.0.0"]


def test_a_transaction_is_not_disturbed_by_an_update(site, store, releases):
    site.tell("atomic")
    assert site.answer() == [[1], [1], 1, "1.0.0"]
    update(lambda: store.apply(releases[2], retry=20))
    site.tell("")
    assert site.answer() == [[1], [2], 2, "1.0.0"]
    assert site.ask("request") == [[2], [2], 2, "2.0.0"]


def test_a_forked_worker_opens_its_own_connections(site, store, releases):
    assert site.ask("begin")[3] == "1.0.0"
    assert site.ask("fork") == [[1], [1], 0, "1.0.0"]
    store.apply(releases[2])
    assert site.ask("fork") == [[2], [2], 0, "2.0.0"]
    assert site.ask("request") == [[2], [2], 0, "2.0.0"]


def test_read_only_databases_cannot_be_written_to_and_migrate_leaves_the_store_alone(site):
    assert "readonly" in site.ask("write")
    # Django itself makes its table of migrations; none of the app is run.
    assert site.ask("migrate") == ["django_migrations", "note"]


def test_test_databases(site, store):
    name, foods, refused = site.ask("test databases")
    assert (name, foods) == ("food", [1])
    assert f"tests would write to {store.path}/notes.db" in refused


def test_a_setting_without_a_store(store):
    program = (
        "from django.conf import settings; from django.db import connections; "
        "settings.configure(DATABASES={'default': {}, 'food': {'ENGINE': 'moult_store.django', 'NAME': 'food'}}); connections['food']"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert 'DATABASES["food"]["OPTIONS"] has no "store"' in ended.stderr
