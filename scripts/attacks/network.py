"""Servers that lie to stores which follow a feed."""
import json

from kit import attack, files_of, harmless, refused, works


def feed(arena, url=None, versions=("1.0.0",)):
    """Publishes releases in `public`, signed with k.key, and creates a store that follows the feed at a URL."""
    key = arena.key()
    for version in versions:
        release = arena.release(version, {"food": ("reference", f"CREATE TABLE food(v); INSERT INTO food VALUES('{version}')")})
        arena.moult("publish", "-q", "public", release, "--key", key)
    arena.moult("init", "-q", "store", "--product", "org.example.app", "--key", "k.pub", *(["--feed", url] if url else []))


@attack("a server sends a bundle with one changed byte", expects=refused("SHA-256|digest|match"))
def changed_bundle(arena):
    server = arena.serve({})
    feed(arena, server.url + "/feed.json")
    files = files_of("public")
    name = next(name for name in files if name.endswith(".zst"))
    files[name] = files[name][:-1] + bytes([files[name][-1] ^ 1])
    server.answers = files
    arena.attack("apply", "--store", "store")
