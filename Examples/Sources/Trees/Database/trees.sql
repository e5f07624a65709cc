-- Makes trees.db from the table beside this script.
CREATE TABLE tree (id INTEGER PRIMARY KEY, name TEXT NOT NULL, latin TEXT NOT NULL, metres INTEGER NOT NULL);
.mode csv
.import --skip 1 trees.csv tree
CREATE INDEX tree_metres ON tree (metres);
