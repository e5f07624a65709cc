"""A feed on a web server: the wheel contains the program that sends the requests."""

import asyncio
import fcntl
import functools
import http.server
import json
import os
import subprocess
import threading
import time

import pytest

from moult_store import (
    Cancellation,
    DistrustedError,
    MoultError,
    NoFeedError,
    OperationCancelled,
    Store,
    UnreachableError,
    UpdateSchedule,
    aio,
    command,
)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def feed(place, releases, moult):
    """The address of a feed with release 1, its public key, and a function that publishes another release."""

    def run(*words):
        subprocess.run([moult, *words], check=True, cwd=place, stdout=subprocess.DEVNULL)

    run("keygen", "-q", "--no-password", "release")
    key = (place / "release.pub").read_text().splitlines()[-1]

    def publish(number):
        run("publish", "-q", "public", releases[number], "--key", "release.key")

    publish(1)
    handler = functools.partial(Quiet, directory=place / "public")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/feed.json", key, publish
        server.shutdown()


def test_follow_a_feed(place, feed):
    address, key, publish = feed
    store = Store(place / "followed", command=command.BUNDLED, trusting=[key])
    # The program beside the command, not one that is installed.
    assert os.access(os.path.join(os.path.dirname(command.BUNDLED), "moult-fetch"), os.X_OK)
    assert store.apply(address, create=True).version == "1.0.0"
    store.set_feed(address)
    assert store.newest() is None
    publish(2)
    assert store.newest() == "2.0.0" and store.release == "1.0.0"
    assert store.follow().version == store.release == "2.0.0"
    assert not store.follow().changed
    with pytest.raises(DistrustedError, match="different keys"):
        Store(store.path, trusting=["RWQother"]).follow()


def settings(store):
    return json.loads(open(f"{store.path}/moult.json").read())


def test_the_feed_is_written_and_nothing_else(store, place):
    before = settings(store)
    os.chmod(f"{store.path}/moult.json", 0o640)
    store.set_feed("https://example.org/feed.json", channel="beta")
    assert settings(store) == {**before, "feed": {"url": "https://example.org/feed.json", "channel": "beta"}}
    assert os.stat(f"{store.path}/moult.json").st_mode & 0o777 == 0o640
    # The channel stays as long as the address does.
    store.set_feed("https://example.org/feed.json")
    assert settings(store)["feed"]["channel"] == "beta"
    # The other fields belong to the server.
    changed = settings(store)
    changed["feed"]["patience"] = 5
    with open(f"{store.path}/moult.json", "w") as file:
        json.dump(changed, file)
    store.set_feed("https://example.org/feed.json", channel="stable")
    assert settings(store)["feed"] == {"url": "https://example.org/feed.json", "patience": 5}
    store.set_feed("https://example.org/feed.json?token=1")
    assert settings(store)["feed"] == {"url": "https://example.org/feed.json?token=1"}
    assert os.stat(f"{store.path}/moult.json").st_mode & 0o777 == 0o600
    # The command accepts what was written.
    assert store.status().json["feed"] == "https://example.org/feed.json?***"
    store.set_feed(place / "public")
    assert settings(store)["feed"] == {"url": str(place / "public")}
    store.set_feed(None)
    assert settings(store) == before
    for url, channel in [("", None), ("https://example.org/feed.json", "a b")]:
        with pytest.raises(MoultError) as raised:
            store.set_feed(url, channel=channel)
        assert raised.value.code == "E801"
    text = '{"moult": 1, "product": "org.example.shop", /* ours */}'
    open(f"{store.path}/moult.json", "w").write(text)
    with pytest.raises(MoultError, match="comments"):
        store.set_feed("https://example.org/feed.json")
    assert open(f"{store.path}/moult.json").read() == text
    assert not [name for name in os.listdir(store.path) if name.startswith(".moult.json")]


def test_the_feed_waits_for_the_lock(store):
    written = []
    with open(f"{store.path}/.moult/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        thread = threading.Thread(target=lambda: written.append(store.set_feed("https://example.org/feed.json")))
        thread.start()
        thread.join(0.3)
        assert not written and "feed" not in settings(store)
    thread.join(10)
    assert written and "feed" in settings(store)


def test_a_store_is_created_with_its_feed(place, feed):
    address, key, _ = feed
    store = Store(place / "created", trusting=[key], command=command.BUNDLED)
    store.set_feed(address, product="org.example.shop")
    assert store.follow().version == "1.0.0"
    assert settings(store)["follow"] == "match"


def test_follow_regularly(place, feed):
    address, key, publish = feed
    store = Store(place / "regular", trusting=[key], command=command.BUNDLED)
    store.set_feed(address, product="org.example.shop")
    schedule = UpdateSchedule(interval=1, jitter=0.1)
    with Cancellation() as cancellation:
        results = store.follow_regularly(schedule)
        assert next(results).version == "1.0.0"
        publish(2)
        begin = time.monotonic()
        assert next(results).version == "2.0.0"
        assert time.monotonic() - begin > 0.9
        # A failure is a result.
        store.set_feed("http://127.0.0.1:9/feed.json")
        assert isinstance(next(results), UnreachableError)
        store.set_feed(address)
        assert not next(results).changed
        threading.Timer(0.2, cancellation.cancel).start()
        with pytest.raises(OperationCancelled):
            next(store.follow_regularly(UpdateSchedule(interval=3600)))

    async def main():
        found = [each async for each in limited(aio.Store(store.path, command.BUNDLED), schedule)]
        assert [each.changed for each in found] == [False]

    async def limited(store, schedule):
        async for each in store.follow_regularly(schedule):
            yield each
            return

    asyncio.run(main())


def test_the_pause_of_a_schedule():
    schedule = UpdateSchedule(interval=100, jitter=10)
    assert schedule.pause(None, 0.5) == 5
    assert schedule.pause(30, 0.5) == 75
    assert schedule.pause(500, 0) == 0
    assert UpdateSchedule(interval=-5, jitter=-5).pause(0, 1) == 1


def test_a_feed_that_cannot_be_reached_is_an_error(store, place, feed):
    with pytest.raises(NoFeedError):
        store.newest()
    words = ["init", "--json", "--product", "org.example.shop", "--key", feed[1], "--feed", "http://127.0.0.1:9/feed.json"]
    store._command.run([*words, str(place / "offline")])
    with pytest.raises(UnreachableError) as raised:
        Store(place / "offline", command=command.BUNDLED).newest()
    assert raised.value.outcome == "busy"
