"""fork: a process that has used the store forks children, which write with connections of their own. A child that is forked in the
middle of a transaction is refused."""
import os, sys, traceback

from common import App, FOODS, NOTE, PRICE, PRICES, TIMEOUT
from moult_store import MoultError, Store

app = App()
store = Store(app.store, timeout=TIMEOUT)


def insert(statement, values):
    with store.connection as connection:
        connection.execute(statement, values)


def in_child(work):
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        sys.exit("a child failed")


def write(writer, number):
    insert(NOTE, (writer, number))
    app.acknowledge("note", writer, number)
    insert(PRICE, (f"{writer} {number}", number))
    app.acknowledge("price", writer, number)


def is_refused():
    try:
        store.connection
    except MoultError as error:
        assert "it was forked while process" in str(error), error
    else:
        raise AssertionError("a child of a process in a transaction got a connection")


shown = None
for number in app.numbers():
    connection = store.connection
    if connection is not shown:
        shown = connection
        app.show(*(connection.execute(sql).fetchone()[0] for sql in (FOODS, PRICES)))
    write("parent", number)
    if number % 4 == 0:
        in_child(lambda: write("child", number))
    if number % 10 == 0:
        with store.connection as connection:
            connection.execute(NOTE, ("around", number))
            in_child(is_refused)
        app.acknowledge("note", "around", number)
