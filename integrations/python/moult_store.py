"""The databases of a moult store, from Python: copy this file into your program. It needs nothing but Python."""
import contextlib, fcntl, json, os, sqlite3
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
        current = self.directory + "/.moult/current"
        while os.path.basename(os.readlink(current)) != self.generation:
            self.__exit__()
            # A shared lock is the lease that keeps a generation. It counts if that is still the current one afterwards.
            lease = os.open(current, os.O_RDONLY)
            self._held.callback(os.close, lease)
            fcntl.flock(lease, fcntl.LOCK_SH)
            if os.path.samestat(os.fstat(lease), os.stat(current)):
                self._db = self._held.enter_context(contextlib.closing(self._open(os.readlink(f"/proc/self/fd/{lease}"))))
        return self._db

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
