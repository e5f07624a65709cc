"""SQLAlchemy: threads share a pool of connections, each checkout of which is on the newest release."""
from common import App, FOODS, PRICES, TIMEOUT
from moult_store import Store
from moult_store.sqlalchemy import create_engine

app = App()
engine = create_engine(Store(app.store, timeout=TIMEOUT), pool_size=4)


def insert(statement, values):
    with engine.begin() as connection:
        connection.exec_driver_sql(statement, values)


def redraw():
    shown = None
    for _ in app.numbers(pause=0.002):
        with engine.connect() as connection:
            generation = connection.connection.dbapi_connection
            if generation is not shown:
                shown = generation
                app.show(*(connection.exec_driver_sql(sql).scalar_one() for sql in (FOODS, PRICES)))


app.run(redraw, *(lambda name=name: app.write(name, insert) for name in ("sqlalchemy-a", "sqlalchemy-b")))
