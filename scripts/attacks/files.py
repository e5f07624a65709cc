"""Links, pipes and odd names in place of the files that the command reads and writes."""
import os

from kit import attack, harmless, refused, works


@attack("names a directory whose name is not UTF-8 as the working directory, next to one with U+FFFD in its name",
        expects=harmless("UTF-8|utf-8"))
def working_directory_of_bytes(arena):
    arena.database("new.db", "CREATE TABLE t(x); INSERT INTO t VALUES('new')")
    decoy = arena.directory("d\ufffd")
    arena.database("d\ufffd/app.db", "CREATE TABLE t(x); INSERT INTO t VALUES('decoy')")
    arena.sh(f"mkdir -p '{arena.root}/'$(printf 'd\\377')")
    real = os.fsdecode(os.fsencode(arena.root) + b"/d\xff")
    arena.database(f"{real}/app.db", "CREATE TABLE t(x); INSERT INTO t VALUES('real')")
    arena.attack("replace", "-q", "app.db", arena.path("new.db"), cwd=real, allowed=os.path.basename(real))
    arena.keeps(f"{decoy}/app.db", "SELECT x FROM t", [("decoy",)])
