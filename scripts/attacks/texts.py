"""Names and texts that change a terminal, a shell command or a path."""
from kit import attack, harmless, refused, works


@attack("a table has a name that changes the title of the terminal", expects=works())
def escape_in_table_name(arena):
    arena.database("old.db", 'CREATE TABLE "a\x1b]0;title\x07"(x)')
    arena.database("new.db", "CREATE TABLE b(x)")
    arena.attack("diff", "old.db", "new.db", terminal=True, expects=works("", 0, 2))
