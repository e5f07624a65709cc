"""Makes a failing story as small as possible while it still fails in the same way."""
import copy

from catalogue import family
from trial import run


def smaller_of(story):
    """Returns a copy of a story with the same releases."""
    made = copy.deepcopy({k: v for k, v in story.items() if k != "drafts"})
    return made | ({"drafts": story["drafts"]} if "drafts" in story else {})


def shrink(verdict, catalogue, options, directory, most=250):
    wanted = verdict.signature
    best = verdict
    tries = 0

    def fails(story):
        nonlocal best, tries
        if tries >= most:
            return False
        tries += 1
        found = run(story, catalogue, options, directory)
        if found.failed and found.signature == wanted:
            best = found
            return True
        return False

    story = smaller_of(verdict.story)
    if verdict.at is not None and verdict.at >= 0:
        story["ops"] = story["ops"][:verdict.at + 1]
        fails(story)
    changed = True
    while changed and tries < most:
        changed = False
        # Removes operations, in large pieces first.
        size = max(1, len(best.story["ops"]) // 2)
        while size:
            at = 0
            while at < len(best.story["ops"]):
                smaller = smaller_of(best.story)
                del smaller["ops"][at:at + size]
                if smaller["ops"] and fails(smaller):
                    changed = True
                else:
                    at += size
            size //= 2
        # Removes statements of the app.
        for at, op in enumerate(best.story["ops"]):
            for count in (1, 2, 3):
                if op.get("n", 0) > count:
                    smaller = smaller_of(best.story)
                    smaller["ops"][at]["n"] = count
                    if fails(smaller):
                        changed = True
                        break
            for field in ("crash", "take", "accept", "torn", "deep", "beside"):
                if field in best.story["ops"][at]:
                    smaller = smaller_of(best.story)
                    del smaller["ops"][at][field]
                    changed |= fails(smaller)
        if "drafts" in best.story:
            continue
        # Removes databases and tables that are not involved.
        for name in family(best.story["family"]).all:
            if name not in best.story["without"]:
                smaller = smaller_of(best.story)
                smaller["without"] = best.story["without"] + [name]
                if all(release["databases"] for release in family(smaller["family"], tuple(smaller["without"])).releases):
                    changed |= fails(smaller)
        for release in family(best.story["family"], tuple(best.story["without"])).releases[:1]:
            for name, db in release["databases"].items():
                if db["kind"] == "shared":
                    for table in db["tables"]:
                        smaller = smaller_of(best.story)
                        smaller["without"] = best.story["without"] + [f"{name}.{table['name']}"]
                        if len(db["tables"]) > 1 and f"{name}.{table['name']}" not in best.story["without"]:
                            changed |= fails(smaller)
    return best
