"""The plugin for datasette, in a real server: each request is answered from one release."""

import json
import subprocess
import sys
import threading
import urllib.request

import pytest
from conftest import FOODS


def fetch(address):
    with urllib.request.urlopen(address, timeout=30) as answer:
        return json.load(answer)


def seen(base):
    """The releases in one request: a page of rows, and the facet that another query counts."""
    page = fetch(f"{base}/food/food.json?_facet=release&_size=100")
    rows = {row[1] for row in page["rows"]}
    facets = {each["value"]: each["count"] for each in page["facet_results"]["release"]["results"]}
    assert page["filtered_table_rows_count"] == FOODS
    return rows, facets


@pytest.fixture
def server(store, place):
    metadata = place / "metadata.json"
    metadata.write_text(json.dumps({"plugins": {"moult_store": {"store": store.path}}}))
    log = place / "log"
    with open(log, "w") as output:
        command = [sys.executable, "-m", "datasette", "serve", "-m", str(metadata), "--port", "0"]
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
    assert "Traceback" not in log.read_text()


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
        # After the update no request shows the release before.
        assert seen(server) == ({number}, {number: FOODS})
    ended.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert min(counts) > 5
    # No connection to an earlier release is left open.
    seen(server)
    assert [each["current"] for each in store.status().json["generations"] if each["holders"]] == [True]
