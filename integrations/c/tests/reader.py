"""Reads a store through libmoult-reader with ctypes and Python's SQLite, as any language that can call C can do.

usage: reader.py LIBRARY STORE [MOULT MANIFEST]     with MOULT MANIFEST, installs another release while the store is open
"""
import ctypes, os, select, sqlite3, subprocess, sys


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("what", ctypes.c_char * 1024), ("why", ctypes.c_char * 1024), ("next", ctypes.c_char * 1024)]


class Database(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char_p) for name in ("name", "schema", "kind", "path", "uri")] + [("writable", ctypes.c_int), ("group", ctypes.c_char_p)]


library = ctypes.CDLL(sys.argv[1])
for name, result, arguments in [
    ("moult_open", ctypes.c_void_p, [ctypes.c_char_p, ctypes.POINTER(Error)]),
    ("moult_close", None, [ctypes.c_void_p]),
    ("moult_version", ctypes.c_char_p, [ctypes.c_void_p]),
    ("moult_database_at", ctypes.POINTER(Database), [ctypes.c_void_p, ctypes.c_size_t]),
    ("moult_switched", ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(Error)]),
    ("moult_watch", ctypes.c_int, [ctypes.c_char_p, ctypes.POINTER(Error)]),
    ("moult_watch_clear", None, [ctypes.c_int]),
]:
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments


def check(value, error):
    if not value:
        raise OSError(error.code, f"{error.what.decode()}: {error.why.decode()}; {error.next.decode()}")
    return value


class Store:
    """A lease, and one connection with all databases of the release."""

    def __init__(self, directory):
        error = Error()
        self.lease = check(library.moult_open(os.fsencode(directory), error), error)
        databases, index = [], 0
        while one := library.moult_database_at(self.lease, index):
            if not one.contents.group:
                databases.append({name: getattr(one.contents, name) for name, _ in Database._fields_})
            index += 1
        main = next((one["uri"] for one in databases if one["schema"] == b"main"), b":memory:")
        self.db = sqlite3.connect(main.decode(), uri=True)
        for one in databases:
            if one["schema"] != b"main":
                self.db.execute(f"ATTACH ? AS \"{one['schema'].decode()}\"", [one["uri"].decode()])

    @property
    def version(self):
        return library.moult_version(self.lease).decode()

    def close(self):
        self.db.close()
        library.moult_close(self.lease)


error = Error()
assert not library.moult_open(b"/no/such/store", error) and error.code == 2 and b"moult init" in error.next
watch = library.moult_watch(os.fsencode(sys.argv[2]), error)
check(watch >= 0, error)
store = Store(sys.argv[2])
print(store.version, store.db.execute("SELECT count(DISTINCT word.version), min(word.version), min(place.version) FROM word, place").fetchone())
try:
    store.db.execute("DELETE FROM word")
    sys.exit("a read-only database was changed")
except sqlite3.OperationalError as error:
    print(error)
if len(sys.argv) > 3:
    subprocess.run([sys.argv[3], "apply", "-q", "--follow", "match", "--store", sys.argv[2], sys.argv[4]], check=True)
    error = Error()
    assert select.select([watch], [], [], 30)[0], "no event"
    library.moult_watch_clear(watch)
    assert library.moult_switched(store.lease, error) == 1
    # The old release stays readable until the lease is closed.
    print(store.version, store.db.execute("SELECT min(version) FROM word").fetchone())
    store.close()
    store = Store(sys.argv[2])
    print(store.version, store.db.execute("SELECT min(version) FROM word").fetchone())
store.close()
os.close(watch)
