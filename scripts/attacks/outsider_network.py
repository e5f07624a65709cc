"""Lying servers, by an author who has not read the code: endless headers and chunks, wrong ranges, wrong states, torn feeds, redirects with secrets."""
import json
import os
import pathlib
import socket
import threading
import time

from kit import attack, files_of, harmless, refused, works
from network import feed

SLOW = {"patience": 2, "fileDeadline": 3, "deadline": 6}


def lines(arena, script):
    """Starts a server that answers each connection with the function `script(connection, request)`, and returns its URL."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    stopped = threading.Event()

    def serve(connection):
        try:
            connection.settimeout(8)
            request = b""
            while b"\r\n\r\n" not in request:
                part = connection.recv(65536)
                if not part:
                    return
                request += part
            script(connection, request.decode("latin-1"))
        except OSError:
            pass
        finally:
            connection.close()

    def accept():
        while not stopped.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    arena.closing.append(lambda: (stopped.set(), listener.close()))
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def followed(arena, url, **more):
    """Creates a store that follows a feed at this URL and has release 1.0.0, which was installed from a directory."""
    feed(arena, url + "/feed.json", versions=("1.0.0", "2.0.0"))
    settings = json.loads(pathlib.Path("store/moult.json").read_text())
    arena.settings({"feed": {**settings["feed"], **SLOW, **more}})
    arena.moult("sign", "-q", "releases/app-1.0.0.json", "--key", "k.key")
    arena.moult("apply", "-q", "--store", "store", "releases/app-1.0.0.json")
    arena.keeps("store/food.db", "SELECT v FROM food", [("1.0.0",)])


ENDLESS = {
    "informational responses": lambda c, r: [c.sendall(b"HTTP/1.1 103 Early\r\nLink: <x>\r\n\r\n" * 1000) for _ in range(100000)],
    "an endless chunk extension": lambda c, r: [c.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;")] + [c.sendall(b"a" * 65536) for _ in range(100000)],
    "endless chunks of no byte": lambda c, r: [c.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")] + [c.sendall(b"0000000000000000000000000000001\r\n \r\n" * 1000) for _ in range(100000)],
    "an endless trailer": lambda c, r: [c.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")] + [c.sendall(b"X-T: a\r\n" * 8000) for _ in range(100000)],
    "an endless status line": lambda c, r: [c.sendall(b"HTTP/1.1 200 ")] + [c.sendall(b"K" * 65536) for _ in range(100000)],
    "an endless body without length": lambda c, r: [c.sendall(b"HTTP/1.0 200 OK\r\n\r\n")] + [c.sendall(b" " * 65536) for _ in range(100000)],
    "silence": lambda c, r: time.sleep(8),
    "one byte at a time": lambda c, r: [(c.sendall(b" "), time.sleep(0.05)) for _ in range(200)],
    "an endless redirect": lambda c, r: c.sendall(f"HTTP/1.1 302 F\r\nLocation: /{time.time()}\r\nContent-Length: 0\r\n\r\n".encode()),
    "a redirect to a URL of 60 KB": lambda c, r: c.sendall(b"HTTP/1.1 302 F\r\nLocation: /" + b"a" * 60000 + b"\r\nContent-Length: 0\r\n\r\n"),
}


@attack("a server sends what never ends: states, chunks, extensions, trailers, lines, bodies, redirects", refused("", 1, 3, 75), limit=160)
def endless(arena):
    current = [None]
    url = lines(arena, lambda connection, request: current[0](connection, request))
    followed(arena, url)
    for name, script in ENDLESS.items():
        current[0] = script
        begun = len(arena.effects)
        arena.attack("check", "--store", "store", memory=300, limit=10)
        arena.effects[begun:] = [f"{effect} ({name})" for effect in arena.effects[begun:]]


ODD = [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 204 No\r\n\r\n", b"HTTP/1.1 304 Not Modified\r\n\r\n", b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\n\r\n{}{}{",
       b"HTTP/1.1 301 M\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 302 F\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 302 F\r\nLocation: gopher://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
       b"HTTP/1.1 302 F\r\nLocation: \x1b]0;x\x07\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 403 \x1b]0;x\x07\xff\r\nContent-Length: 4\r\n\r\n\x1b[2J", b"HTTP/1.1 404 no\r\nContent-Length: 2\r\n\r\n{}", b"HTTP/1.1 410 Gone\r\n\r\n",
       b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n{}", b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}}",
       b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", b"HTTP/1.1 200 OK\r\nContent-Encoding: x, y\r\nContent-Length: 2\r\n\r\n{}", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
       b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnull", b"HTTP/1.1 999 ?\r\n\r\n", b"HTTP/9.9 200 OK\r\n\r\n{}", b"\0" * 3000, b"SSH-2.0-x\r\n", b"HTTP/1.1 429 T\r\nRetry-After: -1\r\n\r\n",
       b"HTTP/1.1 503 U\r\nRetry-After: 99999999999999999999\r\n\r\n", b"HTTP/1.1 503 U\r\nRetry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\n\r\n", b"HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\n{}",
       b"HTTP/1.1 401 U\r\nWWW-Authenticate: Negotiate\r\nWWW-Authenticate: NTLM\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 407 P\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
       b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + b"[" * 300000]


@attack("a server answers with odd states, ranges, lengths and encodings; `check` must not say that no newer release exists", refused("", 1, 3, 75), limit=160)
def odd_answers(arena):
    current = [b""]
    url = lines(arena, lambda connection, request: connection.sendall(current[0]))
    followed(arena, url)
    for answer in ODD:
        current[0] = answer
        begun = len(arena.effects)
        arena.attack("check", "--store", "store", memory=300, limit=10)
        arena.effects[begun:] = [f"{effect} ({answer[:80]!r})" for effect in arena.effects[begun:]]


@attack("a server breaks off a bundle, and answers the rest with wrong ranges, other content or another length", harmless(), limit=60)
def wrong_ranges(arena):
    arena.directory("public")
    server = arena.serve({})
    followed(arena, server.url, fileDeadline=6, deadline=8)
    files = files_of("public")
    name = next(name for name in files if name.endswith(".zst") and "2.0.0" in name)
    whole, half = files[name], len(files[name]) // 2

    def broken(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(whole)))
        handler.send_header("ETag", '"a"')
        handler.send_header("Accept-Ranges", "bytes")
        handler.end_headers()
        handler.wfile.write(whole[:half])
        return None

    rests = {"an earlier range": (206, {"Content-Range": f"bytes 0-{len(whole) - 1}/{len(whole)}"}, whole), "a range in a longer file": (206, {"Content-Range": f"bytes {half}-{len(whole)}/{1 << 50}"}, whole[half:] + b"x"),
             "other bytes": (206, {"Content-Range": f"bytes {half}-{len(whole) - 1}/{len(whole)}"}, bytes(len(whole) - half)), "no range": (206, {}, whole[half:]), "416": (416, {"Content-Range": f"bytes */{half}"}, b""),
             "multipart": (206, {"Content-Type": "multipart/byteranges; boundary=x"}, b"--x\r\n\r\n--x--"), "an endless rest": (206, {"Content-Range": f"bytes {half}-{len(whole) - 1}/{len(whole)}", "Content-Length": str(1 << 40)}, whole[half:])}
    for what, rest in rests.items():
        arena.sh("rm -rf store/.moult/downloads")
        server.answers = {**files, name: lambda handler, rest=rest: rest if handler.headers.get("Range") else broken(handler)}
        ended = arena.attack("apply", "--store", "store", limit=12, allowed=["store"])
        arena.check(ended.status != 0 or arena.rows("store/food.db", "SELECT v FROM food") == [("2.0.0",)], f"rows: {what}: {ended}")
        arena.moult("rollback", "-q", "--store", "store", fine=(0, 1, 3))
        arena.moult("unhold", "-q", "--all", "--store", "store", fine=(0, 1, 3))
    arena.attack("verify", "--deep", "--store", "store", expects=works())


@attack("a server mixes an old and a new feed: the feed, its signature, the manifest and the bundle change between requests", harmless(), limit=60)
def torn_feed(arena):
    arena.directory("public")
    server = arena.serve({})
    followed(arena, server.url)
    old = files_of("public")
    third = arena.release("3.0.0", {"food": ("reference", "CREATE TABLE food(v); INSERT INTO food VALUES('3.0.0')")})
    arena.moult("publish", "-q", "public", third, "--key", "k.key")
    new = files_of("public")
    changed = sorted(name for name in new if old.get(name) != new[name])
    for mask in range(1, 1 << min(len(changed), 4)):
        server.answers = {**new, **{name: old.get(name, (404, {}, b"")) for bit, name in enumerate(changed) if mask >> bit & 1}}
        ended = arena.attack("apply", "--store", "store", limit=12, allowed=["store"])
        arena.check(arena.rows("store/food.db", "SELECT v FROM food")[0][0] in ("1.0.0", "2.0.0", "3.0.0"), f"rows: {ended}")
    server.answers = new
    arena.attack("apply", "--store", "store", allowed=["store"], expects=works())
    server.answers = old
    arena.attack("check", "--store", "store", expects=refused("older|serial", 1, 3))
    arena.kept[:] = [(arena.path("store/food.db"), "SELECT v FROM food", [("3.0.0",)])]


@attack("a feed with a token redirects to another port, another host name and a URL with the token in it", refused("", 1, 3, 75), limit=60)
def token_to_other_server(arena):
    other = arena.serve({})
    first = arena.serve({})
    for template in ("http://user:{secret}@127.0.0.1:{port}/feed.json", "http://127.0.0.1:{port}/feed.json?sig={secret}&b={secret}", "http://127.0.0.1:{port}/feed.json?token={secret}#x"):
        arena.sh("rm -rf store public releases k.*")
        url = template.format(secret=arena.secret, port=first.port)
        arena.key()
        arena.moult("init", "-q", "store", "--product", "org.example.app", "--key", "k.pub", "--feed", "http://127.0.0.1:1/feed.json")
        arena.settings({"feed": {"url": url, **SLOW}})
        os.chmod("store/moult.json", 0o600)
        for target in (f"http://127.0.0.1:{other.port}/x", f"http://localhost:{other.port}/x", f"//127.0.0.1:{other.port}/y", f"http://127.0.0.1:{other.port}/{arena.secret}"):
            other.requests.clear()
            first.answers = lambda handler, target=target: (302, {"Location": target}, b"")
            for words in (["check"], ["apply", "-v"], ["check", "--json"], ["export", "1.0.0", "x"], ["plan", "-v"]):
                arena.attack(*words, "--store", "store", limit=10)
            for _, path, headers in other.requests:
                arena.check(arena.secret not in json.dumps(headers) and "Authorization" not in headers and (arena.secret not in path or arena.secret in target), f"secret: sent to another server: {path} {headers}")
        for words in (["status"], ["status", "--json"], ["status", "--prometheus"], ["status", "--deep"], ["history"]):
            arena.attack(*words, "--store", "store", expects=works("", 0, 1))


@attack("files of a release and mirrors are named so that requests leave the directory of the feed", harmless(), limit=40)
def file_names(arena):
    server = arena.serve({})
    key = arena.key()
    for name in ("../secret.tar", "..%2fsecret.tar", "%2e%2e/secret.tar", "a/b.tar", "x.tar?y", "x.tar#y", "//127.0.0.1:1/x.tar", "x\\..\\y.tar", "http:x.tar", "x.tar\r\nX: y"):
        arena.sh("rm -rf store public forged")
        release = arena.forge("1.0.0", {"food": ("reference", arena.content())}, change=lambda m, n=name: m["bundle"].update(file=n) or m)
        arena.moult("sign", "-q", release, "--key", key)
        arena.moult("init", "-q", "store", "--product", "org.example.app", "--key", "k.pub")
        files = {**files_of("forged"), "/secret.tar": pathlib.Path("forged/app-1.0.0.tar").read_bytes()}
        server.requests.clear()
        server.answers = {**files, **{f"/feed{path}": content for path, content in files.items()}}
        arena.attack("apply", "--store", "store", f"{server.url}/feed/app-1.0.0.json", limit=8, allowed=["store"])
        outside = [path for _, path, _ in server.requests if not path.startswith("/feed/") or ".." in path or "%2e" in path.lower()]
        arena.check(not outside, f"file: {name!r} requests {outside}")
        arena.check(not os.path.lexists("store/food.db"), f"file: installed from {name!r}")
