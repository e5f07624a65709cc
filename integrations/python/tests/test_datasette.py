"""The plugin for datasette, in a real server: each request is answered from one release."""

import json
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from conftest import FOODS, MIGRATED
from test_load import check_rows, update


def fetch(address):
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{error}: {error.read().decode()}") from error


def seen(base):
    """Returns the releases that one request saw: in a page of rows, and in the facet that another query counts."""
    page = fetch(f"{base}/food/food.json?_facet=release&_size=100")
    rows = {row[1] for row in page["rows"]}
    facets = {each["value"]: each["count"] for each in page["facet_results"]["release"]["results"]}
    assert page["filtered_table_rows_count"] == FOODS
    return rows, facets


@pytest.fixture
def settings():
    """More settings of the plugin."""
    return {}


@pytest.fixture
def server(store, place, settings):
    metadata = place / "metadata.json"
    metadata.write_text(json.dumps({"plugins": {"moult_store": {"store": store.path, **settings}}}))
    log = place / "log"
    with open(log, "w") as output:
        command = [sys.executable, "-m", "datasette", "serve", "-m", str(metadata), "--port", "0"]
        # The default of one second is too short on a busy machine.
        command += ["--setting", "sql_time_limit_ms", "30000", "--setting", "facet_time_limit_ms", "30000"]
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        address = None
        while address is None:
            assert process.poll() is None, log.read_text()
            address = next((word for word in log.read_text().split() if word.startswith("http://")), None)
        yield address
    finally:
        process.terminate()
        process.wait()
    assert "timeout" in settings or "Traceback" not in log.read_text()


def test_each_request_is_answered_from_one_release(server, store, releases):
    assert seen(server) == ({1}, {1: FOODS})
    assert fetch(f"{server}/prices.json?sql=select+count(*)+from+price")["rows"] == [[FOODS]]
    ended, errors, counts = threading.Event(), [], [0] * 4

    def read(index):
        try:
            while not ended.is_set():
                rows, facets = seen(server)
                assert len(rows) == 1 and facets == {rows.pop(): FOODS}
                counts[index] += 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=read, args=[index]) for index in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(10):
        number = 2 - turn % 2
        store.apply(releases[number], follow="match", retry=20)
        # After the update, no request shows the previous release.
        assert seen(server) == ({number}, {number: FOODS})
    ended.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert min(counts) > 5
    # No connection to an earlier release is left open.
    seen(server)
    assert [each["current"] for each in store.status().json["generations"] if each["holders"]] == [True]


def test_datasette_serves_rows_that_other_processes_write_during_updates(server, store, releases, program, capsys):
    writers = [program("writer", store.path, how, how).ready() for how in ["connection", "connect"]]
    ended, errors, counts = threading.Event(), [], [0] * 3
    sql = "select+count(*),count(distinct+cents),(select+count(*)+from+price+where+own)+from+price+where+own=0"

    def read(index):
        last = 0
        try:
            while not ended.is_set():
                foods, prices, own = fetch(f"{server}/prices.json?sql={sql}")["rows"][0]
                # The shipped prices are from one release, and no price of the app disappears.
                assert (foods, prices) == (FOODS, 1) and own >= last
                last = own
                notes, numbers = fetch(f"{server}/notes.json?sql=select+count(*),count(distinct+writer||number)+from+note")["rows"][0]
                assert notes == numbers
                counts[index] += 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=read, args=[index]) for index in range(len(counts))]
    for thread in threads:
        thread.start()
    for number in [2, 1] * 4 + [2, MIGRATED, 4]:
        before = list(counts)
        update(lambda: store.apply(releases[number], follow="match", retry=20))
        assert seen(server) == ({number}, {number: FOODS})
        while not errors and any(now == then for now, then in zip(counts, before)):
            time.sleep(0.01)
    written = [each.finish() for each in writers]
    total = sum(each["rows"] for each in written)
    ended.set()
    for thread in threads:
        thread.join()
    assert errors == []
    check_rows(store, written)
    assert fetch(f"{server}/notes.json?sql=select+count(*),min(done)+from+note")["rows"] == [[total, 0]]
    assert fetch(f"{server}/prices.json?sql=select+count(*)+from+price+where+own")["rows"] == [[total]]
    with capsys.disabled():
        print(f"\ndatasette: 11 installs, {counts} reads of both databases, {total} rows of each written by others")


def status_while_locked(address, store, seconds):
    """Returns the status of a request for a shared database that another process has locked for some seconds."""
    lock = sqlite3.connect(f"{store.path}/prices.db", isolation_level=None, check_same_thread=False)
    lock.execute("BEGIN EXCLUSIVE")
    timer = threading.Timer(seconds, lambda: (lock.rollback(), lock.close()))
    timer.start()
    try:
        with urllib.request.urlopen(f"{address}/prices.json?sql=select+count(*)+from+price", timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    finally:
        timer.join()


def test_a_request_waits_while_a_shared_database_is_locked(server, store):
    """sqlite3 alone waits five seconds."""
    assert status_while_locked(server, store, 7) == 200


@pytest.mark.parametrize("settings", [{"timeout": 0.5}])
def test_the_timeout_is_a_setting(server, store, settings):
    assert status_while_locked(server, store, 3) in (400, 500)
    assert status_while_locked(server, store, 0.1) == 200
