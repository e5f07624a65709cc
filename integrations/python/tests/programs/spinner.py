"""Writes numbered rows to the file of a database until its input ends, and counts those that were committed.

    spinner.py DATABASE NAME
"""

import sqlite3
import sys
import time
from until_end import spin, work

connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
result = {"name": sys.argv[2], "rows": 0}


def write():
    result["rows"] += spin(connection, sys.argv[2], result["rows"] + 1)
    # Without a pause, readers would hardly get a lock.
    time.sleep(0.002)


work(write, result)
