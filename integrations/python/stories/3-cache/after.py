"""The database is a cache: if its schema is not the one that this version of the app expects, the app starts with an empty one."""
import sys

from moult_store import cache

SCHEMA = f"CREATE TABLE thumb (id INTEGER PRIMARY KEY, image BLOB{', width INTEGER' * (sys.argv[1] == '2')})"
print("fetch again" if cache("thumbs.db", SCHEMA).is_fresh else "ready")
