"""A feed on a web server: the wheel contains the program that sends the requests."""

import functools
import http.server
import json
import os
import subprocess
import threading

import pytest

from moult_store import DistrustedError, NoFeedError, Store, UnreachableError, command


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
    settings = json.loads(open(f"{store.path}/moult.json").read())
    settings.setdefault("feed", {"url": address})
    open(f"{store.path}/moult.json", "w").write(json.dumps(settings))
    assert store.newest() is None
    publish(2)
    assert store.newest() == "2.0.0" and store.release == "1.0.0"
    assert store.follow().version == store.release == "2.0.0"
    assert not store.follow().changed
    with pytest.raises(DistrustedError, match="different keys"):
        Store(store.path, trusting=["RWQother"]).follow()


def test_a_feed_that_cannot_be_reached_is_an_error(store, place, feed):
    with pytest.raises(NoFeedError):
        store.newest()
    words = ["init", "--json", "--product", "org.example.shop", "--key", feed[1], "--feed", "http://127.0.0.1:9/feed.json"]
    store._command.run([*words, str(place / "offline")])
    with pytest.raises(UnreachableError) as raised:
        Store(place / "offline", command=command.BUNDLED).newest()
    assert raised.value.outcome == "busy"
