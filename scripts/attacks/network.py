"""Servers that lie to stores which follow a feed, and feeds that an attacker has changed."""
import base64
import gzip
import json
import os
import pathlib
import shutil
import ssl
import time
from urllib.parse import parse_qs, urlsplit

from kit import attack, files_of, harmless, refused, works, Failed, LIBC, PRODUCT

LIMITS = {"patience": 2, "minimumRate": 1000, "fileDeadline": 5, "deadline": 8}
UNREACHABLE = (1, 3, 75)


def follow(arena, versions=("1.0.0", "2.0.0"), installed=True, limits=None, server=None):
    """Publishes releases in `public`, signed with k.key, and creates a store that follows them. The store has the first
    release. Returns the server, which serves the first feed at first and then the last."""
    server = server or arena.serve({})
    feed(arena, f"{server.url}/feed.json", versions[:1])
    shutil.copytree("public", "old")
    server.answers = files_of("public")
    settings = json.loads(pathlib.Path("store/moult.json").read_text())
    arena.settings({"feed": {**settings["feed"], **LIMITS, **(limits or {})}})
    if installed:
        arena.moult("apply", "-q", "--store", "store")
        arena.keeps("store/food.db", "SELECT v FROM food", [(versions[0],)])
    for version in versions[1:]:
        release = arena.release(version, {"food": ("reference", f"CREATE TABLE food(v); INSERT INTO food VALUES('{version}')")})
        arena.moult("publish", "-q", "public", release, "--key", "k.key")
    server.answers = files_of("public")
    return server


def feed(arena, url=None, versions=("1.0.0",)):
    """Publishes releases in `public`, signed with k.key, and creates a store that follows the feed at a URL."""
    key = arena.key()
    for version in versions:
        release = arena.release(version, {"food": ("reference", f"CREATE TABLE food(v); INSERT INTO food VALUES('{version}')")})
        arena.moult("publish", "-q", "public", release, "--key", key)
    arena.moult("init", "-q", "store", "--product", PRODUCT, "--key", "k.pub", *(["--feed", url] if url else []))


def resign(arena, change, name="feed.json", key="k.key", directory="public"):
    """Changes a feed or a manifest and signs it with a key; returns all files of the directory."""
    path = pathlib.Path(directory, name)
    content = json.loads(path.read_text())
    path.write_text(json.dumps(change(content) or content))
    for signature in pathlib.Path(directory).glob(f"{name}*.minisig"):
        signature.unlink()
    if key:
        arena.moult("sign", "-q", path, "-k", key)
    return files_of(directory)


def tries(arena, expects=None, words=("apply", "check"), limit=15, **options):
    for word in words:
        arena.attack(word, "--store", "store", limit=limit, **({"expects": expects} if expects else {}), **options)


def only(files, suffix, answer):
    """Replaces the answer for the files whose name ends so."""
    return {name: answer if name.endswith(suffix) else content for name, content in files.items()}


@attack("a server sends a bundle and a manifest with one changed byte, or longer, or shorter", refused("SHA-256|digest|match|size|sign|large|bytes|ended|exceeds|incomplete", *UNREACHABLE), limit=40)
def changed_files(arena):
    server = follow(arena)
    files = files_of("public")
    for suffix in ("2.0.0.tar.zst", "2.0.0.json"):
        name = next(name for name in files if name.endswith(suffix))
        for content in (files[name][:-1] + bytes([files[name][-1] ^ 1]), files[name] + b"x", files[name][:-1], b"", b"x" * 5_000_000):
            server.answers = {**files, name: content}
            tries(arena, words=["apply"])


@attack("a server sends endless bodies for the feed, its signature, the manifest and the bundle", refused("large|size|exceeds|limit|long|deadline|time|bytes", *UNREACHABLE), limit=60)
def endless_bodies(arena):
    server = follow(arena)
    files = files_of("public")

    def endless(handler):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while True:
                handler.wfile.write(b"10000\r\n" + b" " * 65536 + b"\r\n")
        except OSError:
            return None
    for suffix in ("feed.json", "2.0.0.json", "2.0.0.tar.zst"):
        server.answers = only(files, suffix, endless)
        tries(arena, words=["apply"], memory=300)


@attack("a server accepts the connection and sends nothing, or one byte per second", refused("slow|size|time|answer|rate|deadline|reach|patience|second", *UNREACHABLE), limit=60)
def stalled(arena):
    server = follow(arena)
    files = files_of("public")

    def silent(handler):
        time.sleep(14)

    def drip(handler):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        try:
            for _ in range(14):
                handler.wfile.write(b" ")
                time.sleep(1)
        except OSError:
            return None
    for suffix in ("feed.json", "2.0.0.tar.zst"):
        for answer in (silent, drip):
            server.answers = only(files, suffix, answer)
            tries(arena, words=["apply"], limit=12)


@attack("a server sends endless headers, headers with control characters, or a broken status line", refused("header|answer|response|server|HTTP|feed|cannot|status|valid", *UNREACHABLE), limit=60)
def broken_headers(arena):
    server = follow(arena)

    def raw(*parts, forever=False):
        def answer(handler):
            try:
                for part in parts:
                    handler.wfile.write(part)
                while forever:
                    handler.wfile.write(b"X-More: " + b"x" * 1000 + b"\r\n")
            except OSError:
                pass
        return answer
    for answer in (raw(b"HTTP/1.1 200 OK\r\n", forever=True), raw(b"HTTP/1.1 500 \x1b]0;title\x07\x1b[2J evil\r\nContent-Length: 0\r\n\r\n"), raw(b"\xff\xfe\xfd\r\n\r\n"),
                   raw(b"HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n"), raw(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"), raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nx"),
                   raw(b"HTTP/9.9 200 OK\r\n\r\nx"), raw(b"x" * 100_000), raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 2000 + b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"), raw(b""),
                   raw(b"HTTP/1.1 404 \xe2\x80\xae\r\nContent-Length: 0\r\n\r\n"), raw(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde")):
        server.answers = lambda handler, answer=answer: answer(handler)
        tries(arena, words=["check"], limit=12, memory=300)


@attack("a server compresses a feed of gigabytes into some kilobytes", refused("large|size|limit|valid|sign|exceeds|JSON|feed", *UNREACHABLE), limit=30)
def compressed_bomb(arena):
    server = follow(arena)
    packed = gzip.compress(bytes(200 << 20))
    for encoding in ("gzip", "deflate", "br", "zstd", "gzip, gzip"):
        server.answers = lambda handler: (200, {"Content-Encoding": encoding}, packed)
        tries(arena, words=["check"], memory=300)


@attack("a server redirects to files, other schemes, URLs with a password, or in a circle", refused("redirect|scheme|not allowed|many|URL|follow|password|refuse|status", *UNREACHABLE), limit=40)
def redirects(arena):
    server = follow(arena)
    for target in (f"file://{arena.victim}/private", "ftp://127.0.0.1/x", "gopher://127.0.0.1:1/x", "dict://127.0.0.1:1/x", "http://user:pass@127.0.0.1:1/feed.json", "//", "", "http://",
                   "http://127.0.0.1:99999/x", "data:,x", "/feed.json", "http://\x1b]0;x\x07/", "unix:///run/x", "smb://127.0.0.1/x", "http://[::1/x", "scp://127.0.0.1/x"):
        server.answers = lambda handler: (302, {"Location": target}, b"")
        tries(arena, words=["check"])


PUBLIC = "93.184.215.14"


def isolate(arena):
    """Gives this attack a network of its own, whose loopback device has a public, a link-local and private addresses."""
    if LIBC.unshare(0x40000000) != 0:
        raise Failed("cannot create a network namespace")
    arena.sh(f"ip link set lo up; for a in {PUBLIC} 169.254.169.254 10.0.0.1 192.168.1.1; do ip addr add $a/32 dev lo; done")


@attack("a feed at a public address redirects to loopback, link-local and private addresses", refused("redirect|address|loopback|private", *UNREACHABLE), root=True, needs=("ip",), limit=40)
def redirect_to_this_machine(arena):
    isolate(arena)
    public = arena.serve({}, address=PUBLIC)
    follow(arena, server=public)
    for address in ("127.0.0.1", "169.254.169.254", "10.0.0.1", "192.168.1.1"):
        inner = arena.serve({"/feed.json": f"{arena.secret}".encode()}, address=address)
        public.answers = lambda handler: (302, {"Location": f"{inner.url}/feed.json"}, b"")
        tries(arena, words=["check"])
        arena.check(not inner.requests, f"secret: {address} was asked: {inner.requests}")


@attack("a server collects passwords over http, and through a redirect to another port", harmless(), limit=30)
def passwords(arena):
    server = follow(arena)
    other = arena.serve({"/feed.json": b"x"})
    arena.write("home/.netrc", f"machine 127.0.0.1 login user password {arena.secret}\ndefault login user password {arena.secret}\n", 0o600)
    server.answers = lambda handler: (401, {"WWW-Authenticate": 'Basic realm="x"'}, b"")
    tries(arena)
    server.answers = lambda handler: (302, {"Location": f"{other.url}/feed.json"}, b"")
    tries(arena)
    encoded = base64.b64encode(f"user:{arena.secret}".encode()).decode()
    sent = [request for request in server.requests + other.requests if "Authorization" in request[2] or encoded in str(request) or arena.secret in str(request)]
    arena.check(not sent, f"secret: a password was sent: {sent[:2]}")


@attack("a server answers 304 to a request without a condition, 206 with other bytes, and 200 to a request for a range", refused("304|206|answer|status|server|range|unchanged|match|feed|HTTP|interrupted", *UNREACHABLE), limit=40)
def unconditional_statuses(arena):
    server = follow(arena, installed=False)
    files = server.answers
    for answer in ((304, {}, b""), (206, {"Content-Range": "bytes 100-200/300"}, b"x" * 101), (204, {}, b""), (416, {}, b""), (203, {}, b"x")):
        server.answers = lambda handler: answer
        tries(arena)
        for suffix in ("2.0.0.json", "2.0.0.tar.zst"):
            server.answers = only(files, suffix, answer)
            tries(arena, words=["apply"])
    arena.check(not os.path.exists("store/.moult/current"), "file: something was installed")


@attack("a server replays the feed from before the last one, and offers an older release", harmless("older|serial|sequence|downgrade|earlier|lower"), limit=30)
def replay(arena):
    server = follow(arena, versions=("1.0.0", "2.0.0", "3.0.0"), installed=False)
    arena.moult("apply", "-q", "--store", "store")
    for forget in ("true", "rm -rf store/.moult/feed", "rm -f store/.moult/history.jsonl", "rm -rf store/.moult/feed store/.moult/checks.json"):
        arena.sh(forget)
        server.answers = files_of("old")
        tries(arena)
    arena.keeps("store/food.db", "SELECT v FROM food", [("3.0.0",)])


@attack("feeds are expired, of the future, unsigned, signed by another key, of another product, or with a giant serial", refused("expired|sign|product|serial|key|future|clock|format|million|valid|keys|time|list", *UNREACHABLE), limit=60)
def wrong_feeds(arena):
    server = follow(arena)
    arena.key("other")
    shutil.copytree("public", "kept")
    changes = [({"expires": "2020-01-01T00:00:00Z", "created": "2019-12-01T00:00:00Z"}, "k.key"), ({}, None), ({}, "other.key"), ({"product": "org.example.other"}, "k.key"),
               ({"serial": 2 ** 53}, "k.key"), ({"serial": 5_000_000}, "k.key"), ({"serial": 0}, "k.key"), ({"serial": -1}, "k.key"), ({"expires": "x"}, "k.key"), ({"releases": None}, "k.key"),
               ({"feed": 2}, "k.key"), ({"expires": "2020-01-01T00:00:00Z"}, "other.key"), ({"serial": 1}, "k.key")]
    for more, key in changes:
        shutil.rmtree("public")
        shutil.copytree("kept", "public")
        server.answers = resign(arena, lambda feed: {**feed, **more}, key=key)
        tries(arena)


@attack("a feed that a timestamp key could sign mixes manifests, digests, versions and paths of releases", refused("match|digest|SHA-256|name|path|version|sequence|file|sign|valid|release|size", *UNREACHABLE), limit=60)
def mixed_feeds(arena):
    server = follow(arena)
    shutil.copytree("public", "kept")

    def entry(feed, **more):
        feed["releases"][-1].update(more)

    def manifest(feed, **more):
        feed["releases"][-1]["manifest"].update(more)
    serial = 10
    old = json.loads(pathlib.Path("old/feed.json").read_text())["releases"][0]
    for change in (lambda feed: entry(feed, manifest=old["manifest"]), lambda feed: entry(feed, version="9.0.0"), lambda feed: entry(feed, sequence=99), lambda feed: manifest(feed, sha256="0" * 64),
                   lambda feed: manifest(feed, size=1), lambda feed: manifest(feed, size=1 << 50), lambda feed: manifest(feed, file="../../../victim/private"), lambda feed: manifest(feed, file="/etc/passwd"),
                   lambda feed: manifest(feed, file="http://127.0.0.1:1/x.json"), lambda feed: manifest(feed, file="a\nb.json"), lambda feed: manifest(feed, file=""), lambda feed: entry(feed, version="2.0.0/../x"),
                   lambda feed: feed["releases"].append(feed["releases"][-1]), lambda feed: manifest(feed, file="%2e%2e/x.json")):
        shutil.rmtree("public")
        shutil.copytree("kept", "public")
        serial += 1
        server.answers = resign(arena, lambda feed: (change(feed), feed.update(serial=serial)) and feed)
        tries(arena, words=["apply"])


@attack("a server has a key list for every number", harmless(), limit=30)
def endless_key_lists(arena):
    server = follow(arena)
    files = server.answers

    def any_list(handler):
        name = handler.path
        if name.startswith("/keys-"):
            return json.dumps({"keys": 1, "product": PRODUCT, "number": int("".join(filter(str.isdigit, name.split(".")[0])) or 0), "expires": "2030-01-01T00:00:00Z"}).encode()
        return files.get(name, (404, {}, b""))
    server.answers = any_list
    server.requests.clear()
    tries(arena, allowed="store")
    arena.kept.clear()
    asked = [path for _, path, _ in server.requests if path.startswith("/keys-")]
    arena.check(len(asked) <= 100, f"time: {len(asked)} key lists were asked for")


@attack("a server asks for a pause of an hour, or fails at first", refused("busy|later|reach|503|429|pause|unavailable|answer|server", *UNREACHABLE), limit=40)
def long_pauses(arena):
    server = follow(arena)
    for status, wait in ((503, "3600"), (429, "99999999999"), (503, "Fri, 31 Dec 2199 23:59:59 GMT"), (503, "-1"), (503, "\x1b[2J")):
        server.answers = lambda handler: (status, {"Retry-After": wait}, b"")
        tries(arena, words=["check"], limit=12)


@attack("a server has an untrusted certificate; a proxy in the settings of the feed's host is asked instead", refused("certificate|TLS|SSL|trust|verify", *UNREACHABLE), needs=("openssl",), limit=30)
def untrusted_certificate(arena):
    arena.sh("openssl req -x509 -newkey rsa:2048 -nodes -keyout tls.key -out tls.pem -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 2>/dev/null")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("tls.pem", "tls.key")
    server = arena.serve({}, context=context)
    plain = follow(arena)
    arena.settings({"feed": {"url": f"{server.url}/feed.json", **LIMITS}})
    server.answers = plain.answers
    arena.write("home/.netrc", f"machine 127.0.0.1 login user password {arena.secret}\n", 0o600)
    arena.write("home/.curlrc", "insecure\n")
    tries(arena)
    arena.check(not server.requests, f"secret: a request was sent: {server.requests[:1]}")


@attack("a feed over http without keys is followed", refused("key|sign|unsigned"))
def feed_without_keys(arena):
    server = follow(arena)
    arena.moult("init", "-q", "bare", "--product", PRODUCT)
    arena.settings({"feed": {"url": f"{server.url}/feed.json"}}, "bare")
    arena.attack("apply", "--store", "bare")
    arena.attack("check", "--store", "bare")


@attack("an ETag of a megabyte, cookies, and odd file names in headers", works(), limit=30)
def odd_headers(arena):
    server = follow(arena, versions=("1.0.0",))
    files = server.answers
    server.answers = lambda handler: (200, {"ETag": '"' + "x" * 30_000 + '"', "Set-Cookie": f"a={'y' * 3000}; Domain=com", "Content-Disposition": "attachment; filename=../../victim/public"},
                                      files[handler.path]) if handler.path in files else (404, {}, b"")
    for _ in range(3):
        tries(arena)
    arena.check(not any("Cookie" in headers for _, _, headers in server.requests), "secret: a cookie was sent back")


def registry(arena, scope, realm=None):
    """A registry on this machine that asks for a token with a scope."""
    server = arena.serve({})
    arena.write("home/.docker/config.json", json.dumps({"auths": {f"localhost:{server.port}": {"auth": base64.b64encode(f"user:{arena.secret}".encode()).decode()}}}), 0o600)

    def answer(handler):
        if handler.path.startswith("/token"):
            return json.dumps({"token": "t"}).encode()
        if "Authorization" not in handler.headers or handler.headers["Authorization"].startswith("Basic"):
            return 401, {"WWW-Authenticate": f'Bearer realm="{realm or f"http://localhost:{server.port}"}/token",service="registry",scope="{scope}"'}, b""
        return 404, {}, b""
    server.answers = answer
    if not os.path.exists("k.key"):
        arena.key()
    arena.moult("init", "-q", "oci", "--product", PRODUCT, "--key", "k.pub", "--feed", f"oci+http://localhost:{server.port}/team/food")
    return server


@attack("a registry names the scope of its administrator in its challenge, and gets it with the user's password", harmless(), limit=30)
def registry_scope(arena):
    for number, scope in enumerate(("repository:team/food:pull,push,delete", "registry:catalog:*", "repository:other/secret:pull", "repository:team/food:* repository:x:push", "")):
        arena.remove("oci")
        server = registry(arena, scope)
        arena.attack("check", "--store", "oci")
        asked = [path for _, path, _ in server.requests if path.startswith("/token")]
        wrong = [path for path in asked if parse_qs(urlsplit(path).query).get("scope", []) not in (["repository:team/food:pull"], [])]
        arena.check(not wrong, f"secret: with a password, the store asked for {wrong}")


@attack("a registry sends clients to a token service without TLS on another host, to files, and to a URL with another password", harmless(), root=True, needs=("ip",), limit=30)
def registry_realm(arena):
    isolate(arena)
    other = arena.serve(lambda handler: json.dumps({"token": "t"}).encode(), address=PUBLIC)
    for realm in (other.url, f"http://user:pass@{PUBLIC}:{other.port}", f"http://localhost@{PUBLIC}:{other.port}", "file:///etc", "https://127.0.0.1:1"):
        arena.remove("oci")
        registry(arena, "repository:team/food:pull", realm)
        arena.attack("check", "--store", "oci")
    arena.check(not other.requests, f"secret: a request was sent to another host: {other.requests[:1]}")


@attack("`publish` renews a feed of which manifests and bundles are missing or changed", refused("missing|match|exist|digest|changed|manifest|bundle|damaged|read"), limit=30)
def renewed_broken_feed(arena):
    follow(arena, versions=("1.0.0", "2.0.0"))
    shutil.copytree("public", "kept")
    for damage in ("rm public/app-1.0.0.json", "rm public/app-2.0.0.json", "rm public/app-2.0.0.tar.zst", "echo >> public/app-2.0.0.json", "truncate -s -1 public/app-2.0.0.tar.zst"):
        arena.sh(f"rm -rf public; cp -a kept public; {damage}")
        arena.attack("publish", "-q", "public", "--key", "k.key")


@attack("someone who can write to the directory of a feed changes it before the next `publish`", refused("sign|changed|key|signature"), limit=40)
def changed_feed_is_signed(arena):
    follow(arena)
    arena.key("other")
    evil = arena.release("5.0.0", {"food": ("reference", "CREATE TABLE food(v); INSERT INTO food VALUES('evil')")}, out="evil")
    shutil.copytree("public", "kept")
    for change, key in ((lambda feed: {**feed, "releases": feed["releases"][:1]}, None), (lambda feed: feed["releases"][-1].update(sequence=77), "other.key"), (lambda feed: feed.update(serial=500), None)):
        arena.sh("rm -rf public; cp -a kept public; cp evil/* public/")
        if key:
            resign(arena, change, key=key)
        else:
            feed = json.loads(pathlib.Path("public/feed.json").read_text())
            arena.write("public/feed.json", json.dumps(change(feed) or feed))
        arena.attack("publish", "-q", "public", "--key", "k.key")
