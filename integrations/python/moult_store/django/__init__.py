"""The databases of a store in Django, under their names: `DATABASES = {"default": ..., **databases("/var/lib/app")}`.

At the start of each request, the connections of its thread change to the release that is installed, all to the same one. In a program
without requests, such as a command or a worker, `close_old_connections` of Django does this.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Union

from ..store import Store

ENGINE = "moult_store.django"


def databases(store: Union[str, os.PathLike[str]], **options: Any) -> Dict[str, Dict[str, Any]]:
    """Returns the settings for all databases of a store in which a release is installed. `options` are those of each database."""
    with Store(store).lease() as lease:
        return {name: database(store, name, **options) for name in lease.names}


def database(store: Union[str, os.PathLike[str]], name: str, **options: Any) -> Dict[str, Any]:
    """Returns the setting for one database. `options` are those of `sqlite3.connect` and of Django, such as `timeout`."""
    return {"ENGINE": ENGINE, "NAME": name, "OPTIONS": {"store": os.path.realpath(store), **options}}


class Router:
    """For DATABASE_ROUTERS: `migrate` leaves the databases of stores alone, because releases contain their schemas."""

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> Any:
        from django.db import connections  # type: ignore[import-untyped]

        return False if connections[db].settings_dict["ENGINE"] == ENGINE else None
