"""Consumers in this process are called before and after the updates that it runs."""

import os
import shutil
import time

import pytest

from moult_store import ConsumerError, InUseError, MoultError, Store


class Consumer:
    def __init__(self, name, calls):
        self.name, self.calls = name, calls

    def release(self, change):
        self.calls.append((self.name, "release", [each.name for each in change.databases], change.version, change.is_installed))

    def reload(self, change):
        self.calls.append((self.name, "reload", [each.name for each in change.databases], change.version, change.is_installed))


@pytest.fixture
def calls(store):
    made, registrations = [], []

    def register(name, kind=Consumer, **options):
        consumer = kind(name, made)
        registrations.append(store.register(consumer, name=name, **options))
        return consumer

    made_register = register
    yield made, made_register
    for each in registrations:
        each.cancel()


def test_release_in_reverse_order_and_reload_in_order(store, releases, calls):
    made, register = calls
    register("first")
    register("foods", databases=["food"])
    register("prices", databases=["prices"])
    Store(store.path).apply(releases[2])
    assert made == [
        ("prices", "release", ["prices"], "1.0.0", False),
        ("first", "release", ["prices"], "1.0.0", False),
        ("first", "reload", ["food", "prices"], "2.0.0", True),
        ("foods", "reload", ["food"], "2.0.0", True),
        ("prices", "reload", ["prices"], "2.0.0", True),
    ]
    made.clear()
    store.apply(releases[2])
    assert made == []
    store.rollback(reason="a test")
    assert [each[:2] for each in made] == [
        ("prices", "release"), ("first", "release"), ("first", "reload"), ("foods", "reload"), ("prices", "reload"),
    ]


def test_a_reset_and_a_first_install(store, releases, calls, place):
    made, register = calls
    consumer = register("notes", databases=["notes"])
    store.reset("notes", set_user_data_aside=True)
    assert [each[1:3] for each in made] == [("release", ["notes"]), ("reload", ["notes"])]
    made.clear()
    new = Store(place / "another")
    registration = new.register(consumer, name="notes")
    new.apply(releases[1], create=True)
    registration.cancel()
    assert made == [("notes", "reload", ["food", "notes", "prices", "thumbs"], "1.0.0", True)]


class Stubborn(Consumer):
    def release(self, change):
        raise ValueError("a sheet is open")


class Slow(Consumer):
    def release(self, change):
        time.sleep(30)


@pytest.mark.parametrize("kind, why", [(Stubborn, "a sheet is open"), (Slow, "did not return within 0.3 s")])
def test_a_consumer_that_does_not_release(store, releases, calls, kind, why):
    made, register = calls
    register("stubborn", kind, timeout=0.3)
    register("other")
    with pytest.raises(InUseError, match=why) as raised:
        store.apply(releases[2])
    assert "stubborn does not release prices" in raised.value.what
    assert (raised.value.code, raised.value.outcome) == ("E631", "busy")
    assert store.release == "1.0.0"
    # Those that have released reload the previous content.
    assert ("other", "reload", ["prices"], "1.0.0", False) in made


class Broken(Consumer):
    def reload(self, change):
        super().reload(change)
        if change.version == "2.0.0":
            raise ValueError("no such column")


def test_a_consumer_that_does_not_reload(store, releases, calls, caplog):
    made, register = calls
    register("broken", Broken)
    assert store.apply(releases[2]).changed
    assert "the consumer broken did not reload: ValueError: no such column" in caplog.text


def test_a_release_that_a_consumer_cannot_reload_is_rolled_back(store, releases, calls):
    made, register = calls
    register("broken", Broken, on_reload_failure="roll-back")
    with pytest.raises(ConsumerError, match="no such column") as raised:
        store.apply(releases[2])
    assert (raised.value.code, raised.value.outcome) == ("E702", "undone")
    assert store.release == "1.0.0"
    assert store.status().holds[0].release == "2.0.0"
    assert made[-1][1:] == ("reload", ["food", "prices"], "1.0.0", True)


def test_a_failed_update_reloads_what_was_released(store, releases, calls, place):
    shutil.copytree(os.path.dirname(releases[2]), place / "out")
    bundle = place / "out" / "shop-2.0.0.tar.zst"

    class Saboteur(Consumer):
        def release(self, change):
            super().release(change)
            bundle.unlink()

    made, register = calls
    register("first", Saboteur)
    register("foods", databases=["food"])
    with pytest.raises(MoultError) as raised:
        store.apply(place / "out" / "shop-2.0.0.json")
    assert str(bundle) in str(raised.value)
    assert made == [("first", "release", ["prices"], "1.0.0", False), ("first", "reload", ["prices"], "1.0.0", False)]
    made.clear()
    # A release that the plan refuses calls no consumer.
    with pytest.raises(MoultError):
        store.apply(place / "none.json")
    assert made == []
