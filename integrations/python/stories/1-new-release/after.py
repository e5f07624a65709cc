"""The app ships a release; at each start, the store installs it if it is another one than the installed one."""
import sys

from moult_store import Store

store = Store("store")
store.apply(f"releases/app-{sys.argv[1]}.0.0.json", create=True, follow="match")
print(store.connection.execute("SELECT name FROM data.food WHERE id = 1").fetchone()[0])
