"""How a release is made: its databases, its draft, `moult pack`, and a web server for its feed."""
import functools, glob, http.server, json, os, shutil, sqlite3, subprocess, threading


def database(path, script, rows=()):
    """Creates a database in rollback mode; `rows` has pairs of a statement and its parameters."""
    if os.path.exists(path):
        os.remove(path)
    connection = sqlite3.connect(path)
    connection.executescript(script)
    for statement, values in rows:
        connection.executemany(statement, values)
    connection.commit()
    connection.close()


def run(*words, cwd=None):
    ended = subprocess.run(list(map(str, words)), cwd=cwd, capture_output=True, text=True)
    if ended.returncode:
        raise SystemExit(f"{' '.join(map(str, words))} exited with {ended.returncode}: {ended.stderr}")
    return ended.stdout


def draft(product, version, sequence, databases, **top):
    return {"manifest": 1, "product": product, "version": version, "sequence": sequence, "databases": databases, **top}


def write(directory, files):
    """Writes files by their relative names: text, or a value that becomes JSON."""
    for name, content in files.items():
        os.makedirs(os.path.dirname(os.path.join(directory, name)), exist_ok=True)
        with open(os.path.join(directory, name), "w") as out:
            out.write(content if isinstance(content, str) else json.dumps(content))


def pack(moult, directory, content, out, *options, level=1, name="draft.json"):
    """Packs a draft in the directory with its databases; returns the manifest."""
    write(directory, {name: content})
    run(moult, "pack", "-q", *([] if level is None else ["--level", level]), *options, name, "-o", out, cwd=directory)
    return glob.glob(os.path.join(directory, out, f"*-{content['version']}.json"))[0]


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files to clients that may be killed at any moment, and logs nothing."""

    def log_message(self, *_):
        pass

    def copyfile(self, source, output):
        try:
            shutil.copyfileobj(source, output)
        except ConnectionError:
            pass


def serve(directory, handler=Handler):
    """Serves the feed in a directory; returns its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=directory))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/feed.json"


def set_settings(store, **settings):
    """Changes settings in a store's moult.json."""
    path = os.path.join(store, "moult.json")
    with open(path) as file:
        known = json.load(file)
    with open(path, "w") as out:
        json.dump(known | settings, out)
