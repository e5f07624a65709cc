"""The store attaches the large database where it is, and creates the small one once."""
import sqlite3

from moult_store import Store

store = Store("store")
store.apply("releases/app-1.0.0.json", create=True)
with store.connection as connection:
    connection.execute("INSERT INTO diary VALUES (1, 'tasty')")
query = "SELECT name, count(*) FROM diary JOIN shipped.food ON pk = food"
print(connection.execute(query).fetchone())
try:
    connection.execute("DELETE FROM shipped.food")
except sqlite3.OperationalError:
    print("read-only")
