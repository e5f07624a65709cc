"""Runs the command of the wheel: `python -m moult_store pack food.db`."""

import os
import sys

from .command import Command
from .errors import MoultError

try:
    path = Command().find()
    os.execv(path, [path, *sys.argv[1:]])
except MoultError as error:
    sys.exit(f"moult: {error}")
except OSError as error:
    sys.exit(f"moult: cannot run {path}: {error.strerror}")
