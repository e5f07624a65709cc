"""Databases whose schema, pages or SQL attack the process that opens them."""
from kit import attack, harmless, refused, works


@attack("an app's schema calls load_extension in a view that a golden query reads", expects=refused("load_extension|not authorized|unsafe"))
def load_extension_in_view(arena):
    release = arena.release("1.0.0", {"food": ("reference", "CREATE TABLE food(x); INSERT INTO food VALUES(1)")})
    arena.store(release)
    content = arena.content(f"CREATE TABLE food(x); CREATE VIEW v AS SELECT load_extension('{arena.trap()}') AS x")
    hostile = arena.forge("2.0.0", {"food": ("reference", content)}, change=lambda manifest: manifest | {
        "checks": [{"on": "food", "sql": "SELECT x FROM v", "expect": "1"}]})
    arena.attack("apply", "--store", "store", hostile)
