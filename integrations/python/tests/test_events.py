"""The releases that a store puts into service, for synchronous programs."""

import shutil
import threading
import time

import pytest

from moult_store import Events, MoultError, Store, StoreEvent


def test_events_report_each_release_and_its_databases(store, releases):
    with store.events() as events:
        assert events.next(0) is None
        first = store.generation
        store.apply(releases[2])
        event = events.next(5)
        assert event == StoreEvent(store.generation, "2.0.0", first, ("food", "prices"))
        assert str(event) == f"{store.generation}, was {first}: food prices"
        assert events.next(0) is None
        # The same release again writes the shared database, so its readers must reload.
        store.apply(releases[1], follow="match")
        assert events.next(5).databases == ("food", "prices")


def test_events_since_a_lease_miss_nothing(store, releases):
    lease, connection = store.lease(), store.connect()
    store.apply(releases[2])
    for since in [lease, connection]:
        assert store.events(since).next(5).version == "2.0.0"
    assert store.events(store.lease()).next(0) is None


def test_events_before_the_first_release(place, releases, moult):
    store = Store(place / "new")
    store._command.run(["init", "--json", "--product", "org.example.shop", store.path])
    events = store.events()
    assert events.next(0) is None
    store.apply(releases[1])
    event = events.next(5)
    assert (event.version, event.previous) == ("1.0.0", None)
    assert set(event.databases) == {"food", "notes", "prices", "thumbs"}


def test_close_ends_the_iteration_in_another_thread(store):
    events, seen = store.events(), []
    thread = threading.Thread(target=lambda: seen.extend(events))
    thread.start()
    time.sleep(0.1)
    events.close()
    thread.join(10)
    assert not thread.is_alive() and seen == []


def test_iteration_waits_without_polling(store, releases):
    events = store.events()
    update = threading.Timer(0.3, lambda: store.apply(releases[2]))
    update.start()
    begin = time.process_time()
    assert next(events).version == "2.0.0"
    assert time.process_time() - begin < 1
    update.join()


def test_without_inotify_the_store_is_looked_at_again(store, releases, monkeypatch):
    monkeypatch.setattr("moult_store.events.ctypes", None)
    events = store.events()
    assert events.fileno() == -1
    store.apply(releases[2])
    assert events.next(5).version == "2.0.0"


def test_a_directory_that_is_not_a_store_any_longer(store, place):
    with pytest.raises(MoultError, match="is not a store"):
        Events(str(place / "none"))
    events = store.events()
    shutil.move(f"{store.path}/.moult", place / "moved")
    with pytest.raises(MoultError, match="not a store any longer"):
        events.next(5)
