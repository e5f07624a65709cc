"""The module sqlite3: two threads write with `store.connection`, and one redraws when it is another connection."""
from common import App, FOODS, PRICES, TIMEOUT
from moult_store import Store

app = App()
store = Store(app.store, timeout=TIMEOUT)


def insert(statement, values):
    with store.connection as connection:
        connection.execute(statement, values)


def redraw():
    shown = None
    for _ in app.numbers(pause=0.002):
        connection = store.connection
        if connection is not shown:
            shown = connection
            app.show(*(connection.execute(sql).fetchone()[0] for sql in (FOODS, PRICES)))


app.run(redraw, *(lambda name=name: app.write(name, insert) for name in ("sqlite3-a", "sqlite3-b")))
