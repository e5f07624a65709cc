"""Inputs of a permitted size whose processing takes hours."""
import json

from kit import attack, harmless, refused, works


@attack("a requirement of a release is a list of 20,000 ranges of versions", expects=harmless("requires|alternatives|versions"))
def many_alternatives(arena):
    arena.store()
    ranges = " || ".join(f"^{number}.0.0" for number in range(20000))
    release = arena.forge("1.0.0", {"food": ("reference", arena.content())}, change=lambda manifest: manifest | {"requires": {"app": ranges}})
    arena.attack("apply", "--store", "store", "--app", "0.0.1", release, limit=3)
