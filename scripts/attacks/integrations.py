"""The Python package and the Ansible collection."""
import json
import os

from kit import attack, harmless, refused, works, ROOT, PYTHON

PYTHON_PATH = {"PYTHONPATH": str(ROOT / "integrations/python"), "PYTHONDONTWRITEBYTECODE": "1"}


def python(arena, script, **options):
    """Runs a Python program that uses the package on the store `store`. An exception is printed in one line, as an error."""
    prelude = "import sys\nfrom moult_store import Store, replace\nimport moult_store\ntry:\n"
    text = prelude + "".join(f"    {line}\n" for line in script.splitlines())
    text += "except Exception as error:\n    print('moult: error: %s: %s' % (type(error).__name__, error), file=sys.stderr)\n    sys.exit(1)\n"
    return arena.attack("-c", text, program=PYTHON, env={**PYTHON_PATH, "MOULT": arena.command}, **options)


@attack("the manifest of the installed release is a pipe", expects=refused("manifest.json"))
def pipe_as_manifest(arena):
    release = arena.release("1.0.0", {"food": ("reference", "CREATE TABLE food(x)")})
    arena.store(release)
    generation = f"store/.moult/{os.readlink('store/.moult/current')}"
    os.chmod(generation, 0o755)
    os.unlink(f"{generation}/manifest.json")
    os.mkfifo(f"{generation}/manifest.json")
    python(arena, "store = Store('store')\nprint(store.connect())", limit=5)
