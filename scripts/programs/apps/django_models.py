"""Django with the backend of moult_store: `close_old_connections` changes to another release."""
import os

import django
from common import App, TIMEOUT
from django.conf import settings
from django.db import close_old_connections, connections, models
from moult_store.django import databases

app = App()
found = {name: {**each, "CONN_MAX_AGE": None} for name, each in databases(app.store, timeout=TIMEOUT).items()}
settings.configure(DATABASES={"default": found["notes"], **found}, INSTALLED_APPS=[], USE_TZ=True)
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
    for _ in app.numbers(pause=0.002):
        close_old_connections()
        if connections["food"].connection is None:
            # The first time, or another release is there.
            foods = joined(Food.objects.using("food").values_list("release", flat=True).distinct())
            prices = joined(Price.objects.using("prices").filter(own=0).values_list("cents", flat=True).distinct())
            app.show(foods, prices)


app.run(redraw, write)
# Django would close its connections one after the other.
os._exit(0)
