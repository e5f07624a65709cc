"""Another user of the machine attacks commands of root."""
from kit import attack, harmless, refused, works, OTHER


@attack("exchanges the directory of an output for a link to a directory of root, again and again, while root builds a database",
        expects=harmless(), root=True, limit=40)
def output_exchanged_for_link(arena):
    arena.write("make.sql", "CREATE TABLE t(x);")
    arena.directory("shared", 0o1777)
    arena.other("sh", "-c", f"mkdir shared/out; ln -s {arena.victim} shared/link")
    with arena.racing("while True: exchange('shared/out', 'shared/link')"):
        for _ in range(60):
            arena.attack("build", "-q", "make.sql", "-o", "shared/out/out.db", allowed=["shared"])
