"""gunicorn --preload: the app has used the store before gunicorn forks its workers, each of which has two threads."""
import json, os

from common import FOODS, NOTE, PRICE, PRICES, TIMEOUT
from moult_store import Store

store = Store(os.environ["STORE"], timeout=TIMEOUT)
# In the process that forks.
assert store.connection.execute(FOODS).fetchone()
with store.connection as connection:
    connection.execute(NOTE, ("preload", os.getpid()))


def app(environment, respond):
    words = environment["PATH_INFO"].strip("/").split("/")
    if words[0] == "view":
        connection = store.connection
        answer = [connection.execute(sql).fetchone()[0] for sql in (FOODS, PRICES)]
    else:
        statement, values = {"note": (NOTE, (words[1], int(words[2]))), "price": (PRICE, (f"{words[1]} {words[2]}", int(words[2])))}[words[0]]
        with store.connection as connection:
            connection.execute(statement, values)
        answer = "committed"
    respond("200 OK", [("Content-Type", "application/json"), ("X-Process", str(os.getpid()))])
    return [json.dumps(answer).encode()]
