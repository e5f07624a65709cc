"""Bundles whose archive attacks the machine that unpacks it."""
import tarfile

from kit import attack, refused, tar


@attack("a bundle has a member with the path ../../victim/public", expects=refused(r"\.\."))
def parent_path(arena):
    content = arena.content()
    arena.store()
    release = arena.forge("1.0.0", {"food": ("reference", content)}, archive=tar({"food.db": content, "../../victim/public": b"x"}))
    arena.attack("apply", "--store", "store", release)
