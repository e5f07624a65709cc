"""SQLite databases that moult keeps up to date.

    with Store("/var/lib/app") as store:
        store.connection.execute("SELECT count(*) FROM food.food")
"""

from .command import Command
from .connection import Connection
from .copies import SecondSQLiteWarning
from .errors import CommandNotFound, MoultError, MoultTimeout
from .files import replace, undo_replace
from .lease import Database, Lease
from .results import Check, DatabaseStatus, Effect, Finding, Plan, Replacement, Status, Update, Verification
from .store import Attachments, Store

__all__ = [
    "Attachments",
    "Check",
    "Command",
    "CommandNotFound",
    "Connection",
    "Database",
    "DatabaseStatus",
    "Finding",
    "Effect",
    "Lease",
    "MoultError",
    "MoultTimeout",
    "Plan",
    "Replacement",
    "SecondSQLiteWarning",
    "Status",
    "Store",
    "Update",
    "Verification",
    "replace",
    "undo_replace",
]
