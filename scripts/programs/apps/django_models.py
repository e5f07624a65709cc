"""Django: its connections to writable databases stay open, and the one to the read-only database is replaced."""
import os

import django
from common import App, TIMEOUT
from django.conf import settings
from django.db import connections, models
from moult_store import Store

app = App()
store = Store(app.store)
lease = store.lease()


def database(lease, name):
    uri = next(one.uri() for one in lease.databases if one.name == name)
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": uri, "CONN_MAX_AGE": None, "OPTIONS": {"uri": True, "timeout": TIMEOUT}}


settings.configure(
    DATABASES={"default": database(lease, "notes"), "prices": database(lease, "prices"), "food": database(lease, "food")},
    INSTALLED_APPS=[], USE_TZ=True)
django.setup()


class Note(models.Model):
    writer, number = models.TextField(primary_key=True), models.IntegerField()

    class Meta:
        app_label, db_table, managed = "notes", "note", False


class Price(models.Model):
    item, cents, own = models.TextField(primary_key=True), models.IntegerField(), models.IntegerField()

    class Meta:
        app_label, db_table, managed = "prices", "price", False


class Food(models.Model):
    id, release = models.IntegerField(primary_key=True), models.IntegerField()

    class Meta:
        app_label, db_table, managed = "food", "food", False


def write():
    for number in app.numbers():
        Note.objects.create(writer="django", number=number)
        app.acknowledge("note", "django", number)
        Price.objects.using("prices").create(item=f"django {number}", cents=number, own=1)
        app.acknowledge("price", "django", number)


def joined(values):
    return ",".join(map(str, sorted(values)))


def redraw():
    global lease
    is_first = True
    for _ in app.numbers(pause=0.002):
        if is_first or lease.is_outdated:
            if not is_first:
                lease, old = store.lease(), lease
                # Read-only databases have no locks, so their connections can be closed.
                connections["food"].close()
                connections["food"].settings_dict["NAME"] = database(lease, "food")["NAME"]
                old.close()
            is_first = False
            foods = joined(Food.objects.using("food").values_list("release", flat=True).distinct())
            prices = joined(Price.objects.using("prices").filter(own=0).values_list("cents", flat=True).distinct())
            app.show(foods, prices)


app.run(redraw, write)
# Django would close its connections one after the other.
os._exit(0)
