"""Judges of the attacks in the other files `outsider_*.py`, each of which is shown to find an effect before it is used."""
import contextlib
import html.parser
import os
import pathlib
import re
import shlex
import subprocess

from kit import Failed, tree


def can_fail(arena, judge, *arguments):
    """Fails unless a judge finds the effect that is planted in its arguments."""
    begun = len(arena.effects)
    judge(arena, *arguments)
    if len(arena.effects) == begun:
        raise Failed(f"{judge.__name__} does not find a planted effect in {str(arguments)[:200]}")
    del arena.effects[begun:]


def paste(arena, text, where="."):
    """Runs each command in an advice as a shell would, with stand-ins for all programs but `touch`."""
    arena.directory("fakes")
    for name in ("moult", "sudo", "chmod", "chown", "rm", "mv", "cp", "mkdir", "systemctl", "sqlite3", "ls", "kill", "umount", "cd"):
        arena.write(f"fakes/{name}", "#!/bin/sh\nexit 0\n", 0o755)
    shell = {"PATH": f"{arena.path('fakes')}:/usr/bin:/bin", "HOME": arena.path("home")}
    pieces = [text[match.start():] for match in re.finditer(r"(?<![\w/.-])(moult|sudo|chmod|chown|rm|mv|cp|mkdir|systemctl|ls|sqlite3) ", text)]
    for piece in pieces[:60]:
        # A command ends with its line, unless the line feed is quoted.
        lines = piece.split("\n")
        for count in range(1, min(len(lines), 6) + 1):
            script = "\n".join(lines[:count])
            with contextlib.suppress(ValueError):
                shlex.split(script)
                break
        if not re.search(r"/etc/moult|> */", script):
            subprocess.run(["/bin/bash", "-c", script], cwd=arena.path(where), env=shell, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=5)
            for found in [path for path in pathlib.Path(arena.root).rglob("sprung") if "fakes" not in str(path)]:
                arena.effect(f"program: pasted advice has run a program: {script[-500:]!r}")
                found.unlink()
    arena.after = tree(arena.root)


def page(arena, path):
    """A page has no element, attribute or address that comes from a text."""
    text = pathlib.Path(path).read_text()

    class Reader(html.parser.HTMLParser):
        def handle_starttag(self, tag, attributes):
            arena.check(tag not in ("img", "iframe", "object", "embed", "base", "form", "link") and not any(name.startswith("on") or "javascript:" in (value or "") for name, value in attributes),
                        f"characters: {path} has <{tag} {attributes}>"[:300])
            self.scripts = getattr(self, "scripts", 0) + (tag == "script")

    reader = Reader()
    reader.feed(text)
    arena.check("alert(1)</script>" not in text and "<script>alert" not in text, f"characters: {path} has a script of a text")
    arena.check(not re.search("[\u202a-\u202e\u2066-\u2069]", text), f"characters: {path} changes the direction of text")


def metrics(arena, text):
    """Every line is a comment or a metric, and exactly one is `moult_up`."""
    for line in text.splitlines():
        arena.check(re.fullmatch(r'#( \S.*)?|[a-z_]+(\{([a-z_]+="([^"\\\n]|\\[\\"n])*",?)*\})? [-+0-9.eE]+|[a-z_]+ NaN', line), f"characters: {line!r} (not a metric)")
    arena.check(text.count("\nmoult_up{") == 1, "characters: a metric is added")


def nagios_line(arena, text):
    arena.check(text.count("\n") == 1 and text.count("|") == 1, f"characters: {text!r}")
