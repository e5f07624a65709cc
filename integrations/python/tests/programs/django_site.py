"""A Django program on a store. Prints what it sees as JSON, as its input asks: for instance `request` or `fork`."""

import json
import os
import sys
import threading

import django
from django.conf import settings
from django.core import signals
from django.core.management import call_command
from django.db import connections, models, transaction

from moult_store.django import database, databases

settings.configure(
    DATABASES={"default": database(sys.argv[1], "notes", timeout=30), **databases(sys.argv[1], timeout=30)},
    DATABASE_ROUTERS=["moult_store.django.Router"],
    INSTALLED_APPS=["django.contrib.contenttypes"],
    USE_TZ=True,
)
django.setup()


class Note(models.Model):
    writer, number = models.TextField(), models.IntegerField()

    class Meta:
        app_label, db_table, managed = "notes", "note", False


class Food(models.Model):
    release = models.IntegerField()

    class Meta:
        app_label, db_table, managed = "food", "food", False


class Price(models.Model):
    item, cents, own = models.TextField(primary_key=True), models.IntegerField(), models.IntegerField()

    class Meta:
        app_label, db_table, managed = "prices", "price", False


def seen():
    foods = list(Food.objects.using("food").values_list("release", flat=True).distinct())
    prices = list(Price.objects.using("prices").filter(own=0).values_list("cents", flat=True).distinct())
    return [foods, prices, Note.objects.count(), connections["food"].release]


def say(value):
    print(json.dumps(value), flush=True)


def request():
    signals.request_started.send(sender=None)
    try:
        return seen()
    finally:
        signals.request_finished.send(sender=None)


say("ready")
for line in sys.stdin:
    word = line.strip()
    if word == "request":
        say(request())
    elif word == "begin":
        signals.request_started.send(sender=None)
        say(seen())
    elif word == "see":
        say(seen())
    elif word == "end":
        signals.request_finished.send(sender=None)
        say(None)
    elif word == "atomic":
        with transaction.atomic():
            Note.objects.create(writer="django", number=1)
            say(seen())
            # The update happens here.
            sys.stdin.readline()
            Note.objects.create(writer="django", number=2)
        say(seen())
    elif word == "fork":
        # As a server does that loads the program before it forks its workers.
        child = os.fork()
        if child == 0:
            say(request())
            os._exit(0)
        os.waitpid(child, 0)
    elif word == "write":
        try:
            Food.objects.using("food").create(id=1000, release=9)
        except django.db.utils.OperationalError as error:
            say(str(error))
    elif word == "thread":
        result = []

        def work():
            result.append(request())
            connections.close_all()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        say(result[0])
    elif word == "migrate":
        call_command("migrate", verbosity=0, database="default", run_syncdb=True)
        say(sorted(connections["default"].introspection.table_names()))
    elif word == "test databases":
        found = [connections["food"].creation.create_test_db(0), seen()[0]]
        connections["food"].creation.destroy_test_db("food", 0)
        try:
            connections["default"].creation.create_test_db(0)
        except django.core.exceptions.ImproperlyConfigured as error:
            found.append(str(error))
        say(found)
