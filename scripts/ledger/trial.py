"""Runs one story in a separate directory."""
import json, os, shutil, signal, sqlite3, traceback

from catalogue import PackRefused
from onefile import FileWorld
from world import CutShort, Failed, World


class Trouble(Exception):
    """An error of the ledger itself."""


def alarmed(*_):
    raise TimeoutError


signal.signal(signal.SIGALRM, alarmed)


class Verdict:
    def __init__(self, story, world, found=None, op=None, at=None):
        self.story, self.found, self.op, self.at = story, found, op, at
        self.counts, self.log = world.counts, world.log
        self.drafts = {str(index): release.draft for index, release in sorted(world.used.items())}
        self.releases = {index: release.directory for index, release in world.used.items()}

    @property
    def failed(self):
        return self.found is not None

    @property
    def signature(self):
        """Identifies the kind of a failure: the operation and the first failed check."""
        if not self.failed:
            return None
        op = self.op["op"]
        if op in ("kill", "full", "meanwhile"):
            op += " " + self.op["cmd"]["op"]
        return op, self.found[0][0]


def run(story, catalogue, options, directory):
    shutil.rmtree(directory, ignore_errors=True)
    world = (FileWorld if story["family"] == "one file" else World)(story, catalogue, options, directory)
    at = -1
    try:
        try:
            world.begin()
            for at, op in enumerate(story["ops"]):
                if op["op"] not in options.without:
                    world.tell(op)
            world.end()
            return Verdict(story, world)
        except Failed as failed:
            return Verdict(story, world, failed.found, failed.op, at)
        except CutShort:
            world.counts["stories cut short"] += 1
            return Verdict(story, world)
        except PackRefused as refused:
            return Verdict(story, world, [("pack", f"a sound draft was refused: {refused}")], story["ops"][max(at, 0)], at)
        except Exception:
            return Verdict(story, world, [("ledger", traceback.format_exc(limit=-6))], story["ops"][max(at, 0)], at)
    finally:
        for connection in world.open.values():
            connection.close()
        if not options.keep:
            shutil.rmtree(directory, ignore_errors=True)
