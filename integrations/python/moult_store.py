"""The databases of a moult store, from Python: copy this file into your program. It needs nothing but Python."""
import contextlib, fcntl, json, os, sqlite3, struct
from urllib.parse import quote


class Store:
    """Follows a store: `with Store(directory) as store: store.db.execute(sql)`."""

    def __init__(self, directory):
        self.directory, self.generation, self._held = os.path.realpath(directory), None, contextlib.ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.generation = None
        self._held.close()

    @property
    def db(self):
        """One connection with all databases of the installed release; another one as soon as there is another release."""
        while (name := self._current()) != self.generation:
            self.__exit__()
            try:
                self._lease(name)
            except FileNotFoundError:
                # Removed in between, if there is another one now.
                if self._current() == name:
                    raise
            # A lease counts if its generation is still the current one afterwards.
            if self._current() == name:
                generation = f"{self.directory}/.moult/generations/{name}"
                self._db = self._held.enter_context(contextlib.closing(self._open(generation)))
        return self._db

    def _current(self):
        return os.path.basename(os.readlink(self.directory + "/.moult/current"))

    def _lease(self, name):
        """Keeps a generation: a read lock on its lease file; if an older moult made the store, a flock on its directory."""
        hidden = self.directory + "/.moult"
        try:
            lease = os.open(f"{hidden}/leases/{name}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            self._held.callback(os.close, lease)
            fcntl.fcntl(lease, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))
        except FileNotFoundError:
            lease = os.open(f"{hidden}/generations/{name}", os.O_RDONLY)
            self._held.callback(os.close, lease)
            fcntl.flock(lease, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def _open(self, generation):
        with open(generation + "/manifest.json") as manifest:
            databases = json.load(manifest)["databases"]
        main = next((name for name in databases if databases[name]["kind"] == "user"), None)
        db = None if main else sqlite3.connect(":memory:", uri=True)
        for name in sorted(databases, key=lambda name: name != main):
            database = databases[name]
            living = f"file:{quote(self.directory)}/{database.get('path', database['member'])}?mode=rw"
            sealed = f"file:{quote(generation)}/{database['member']}?mode=ro&immutable=1"
            if db is None:
                db = sqlite3.connect(living, uri=True)
            else:
                path = sealed if database["kind"] == "reference" else living
                db.execute(f"ATTACH ? AS \"{database.get('attach', {}).get('as', name)}\"", [path])
        self.generation = os.path.basename(generation)
        return db
