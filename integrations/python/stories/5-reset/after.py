"""The app's own database may be damaged. Then the store sets it aside, and the app starts with an empty one, once."""
import sys

from moult_store import Recovery, Store

store = Store("store")
store.apply("releases/app-1.0.0.json", create=True)
if sys.argv[1] == "2":
    with open("store/notes.db", "w") as file:
        file.write("garbage")
connection = store.open("notes", recovering=Recovery.SET_USER_DATA_ASIDE)
print("started over" if connection.recovered else "opened", connection.execute("SELECT count(*) FROM note").fetchone())
with connection:
    connection.execute("INSERT INTO note VALUES ('mine')")
