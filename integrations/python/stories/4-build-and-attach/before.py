"""A build makes the large database from a CSV file. The app attaches it where it is, and creates its own small one once."""
import csv
import os
import sqlite3
import sys


def build(output):
    if os.path.exists(output + ".new"):
        os.unlink(output + ".new")
    connection = sqlite3.connect(output + ".new")
    connection.execute("CREATE TABLE food (pk INTEGER PRIMARY KEY NOT NULL, name TEXT)")
    connection.execute("CREATE TABLE version (ver INTEGER)")
    with open("food.csv", newline="") as file:
        connection.executemany("INSERT INTO food VALUES (?, ?)", csv.reader(file, delimiter="|"))
    connection.execute("INSERT INTO version VALUES (1)")
    connection.commit()
    if connection.execute("PRAGMA integrity_check").fetchone() != ("ok",):
        raise RuntimeError("the database is damaged")
    connection.close()
    os.rename(output + ".new", output)


def start(shipped):
    if not os.path.exists("user.db"):
        template = sqlite3.connect("user.db.new")
        template.execute("CREATE TABLE diary (food INTEGER, text TEXT)")
        template.commit()
        template.close()
        os.rename("user.db.new", "user.db")
    connection = sqlite3.connect("file:user.db?mode=rw", uri=True)
    connection.execute("ATTACH ? AS shipped", [f"file:{os.path.abspath(shipped)}?mode=ro&immutable=1"])
    if connection.execute("SELECT ver FROM shipped.version").fetchone() != (1,):
        raise RuntimeError("the shipped database is another version")
    return connection


if sys.argv[1] == "1":
    build("main.db")
connection = start("main.db")
with connection:
    connection.execute("INSERT INTO diary VALUES (1, 'tasty')")
query = "SELECT name, count(*) FROM diary JOIN shipped.food ON pk = food"
print(connection.execute(query).fetchone())
try:
    connection.execute("DELETE FROM shipped.food")
except sqlite3.OperationalError:
    print("read-only")
