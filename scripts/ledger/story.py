"""Makes stories: story K of seed S always has the same operations, whatever the command does."""
import random

import beside
import onefile
from catalogue import RELEASES, family

FAMILIES = 400
# One story in this many is about a single file.
FILE_EVERY = 8
MODES = (0o600, 0o640, 0o660, 0o644)


def story(seed, number, families=FAMILIES, files=True):
    if files and number % FILE_EVERY == 0:
        return onefile.story(seed, number)
    rng = random.Random(f"story {seed} {number}")
    chosen = rng.randrange(families)
    drafts = family(chosen).releases
    names = family(chosen).all
    at = rng.choice([0, 0, 0, 1, 2])
    length = min(40, 5 + int(rng.expovariate(1 / 12)))
    ops = []
    for name in names:
        if rng.random() < 0.12:
            ops.append({"op": "plain", "db": name, "like": at, "seed": rng.randrange(10**6), "n": rng.randint(1, 5)})
        if ops and rng.random() < 0.05:
            ops.append({"op": "open", "db": ops[-1]["db"], "how": "idle"})
    if rng.random() < 0.05:
        ops.append({"op": rng.choice(["kill", "kill", "full"]), "at": rng.randint(1, 130), "cmd": {"op": "apply", "to": at}})
    ops.append({"op": "apply", "to": at})
    while len(ops) < length:
        here = drafts[at]["databases"]
        db = rng.choice(sorted(here)) if rng.random() < 0.95 else rng.choice(names)
        shared = [n for n in sorted(here) if here[n]["kind"] == "shared"]
        writable = [n for n in sorted(here) if here[n]["kind"] != "reference"] or [db]
        caches = [n for n in sorted(here) if here[n]["kind"] == "cache"]
        kind = rng.choices(list(WEIGHTS), WEIGHTS.values())[0]
        if kind == "write":
            ops.append({"op": "write", "db": rng.choice(writable), "seed": rng.randrange(10**6), "n": rng.randint(1, 6)})
            if rng.random() < 0.06:
                ops[-1]["crash"] = True
        elif kind == "apply":
            before = at
            op, at = update(rng, drafts, at)
            ops.append(op)
            if shared and rng.random() < 0.12:
                # A bad release: the app has already written to its databases when the operator rolls back.
                for name in shared:
                    ops.append({"op": "write", "db": name, "seed": rng.randrange(10**6), "n": rng.randint(2, 6)})
                ops.append({"op": "rollback"})
                at = before
                if rng.random() < 0.5:
                    ops.append({"op": "unhold"})
        elif kind == "rollback":
            op = {"op": "rollback"}
            if rng.random() < 0.3:
                op["to"] = rng.randrange(0, at + 1)
                at = op["to"]
            else:
                at = max(0, at - 1)
            if rng.random() < 0.3:
                op["take"] = sorted(here)
            ops.append(op)
            if rng.random() < 0.5:
                ops.append({"op": "unhold"})
        elif kind == "foreign":
            ops.append({"op": "quarantine", "what": "foreign", "pick": rng.randrange(1000)})
        elif kind == "schema":
            ops.append({"op": "schema", "db": rng.choice(shared or writable), "seed": rng.randrange(10**6)})
        elif kind == "mode":
            ops.append({"op": "mode", "db": rng.choice(writable), "wal": rng.random() < 0.7})
        elif kind == "open":
            # These are rare, because a command waits several seconds for a transaction to end.
            how = rng.choices(["idle", "read", "write"], [14, 1, 1])[0]
            ops.append({"op": "open", "db": rng.choice(writable), "how": how})
            if len(shared) > 1 and rng.random() < 0.3:
                # Two open databases: both are replaced, or neither.
                ops[-1]["db"] = shared[0]
                ops.append({"op": "open", "db": shared[1], "how": rng.choices(["idle", "write"], [12, 1])[0]})
            if rng.random() < 0.95:
                op, at = update(rng, drafts, at)
                ops.append(op)
        elif kind == "reset":
            ops.append({"op": "reset", "db": db if rng.random() < 0.5 or not caches else rng.choice(caches), "aside": rng.random() < 0.7})
        elif kind == "damage":
            name = rng.choice(caches) if caches and rng.random() < 0.7 else rng.choice(writable)
            ops.append({"op": "damage", "db": name, "how": rng.choice(["truncate", "garbage", "zero"])})
            ops.append({"op": "again"} if rng.random() < 0.5 else {"op": "reset", "db": name, "aside": True})
        elif kind == "remove":
            ops.append({"op": "remove", "db": rng.choice(writable)})
            ops.append({"op": "again"})
        elif kind in ("copy", "again", "status", "unhold"):
            ops.append({"op": kind})
        elif kind == "older":
            name = rng.choice(shared or writable)
            ops.append({"op": "keepcopy" if rng.random() < 0.6 else "restorecopy", "db": name})
        elif kind in ("kill", "full"):
            # Most commands make 40 to 150 calls that change something on the disk.
            command, after = rng.choice([lambda: update(rng, drafts, at)] * 3 + [lambda: ({"op": "rollback"}, at),
                                        lambda: ({"op": "reset", "db": rng.choice(writable), "aside": True}, at)])()
            ops.append({"op": kind, "at": int(rng.choice([rng.randint(1, 40), rng.randint(1, 160)])), "cmd": command})
            if kind == "kill" and rng.random() < 0.2:
                ops[-1]["torn"] = True
            if kind == "kill" and rng.random() < 0.2:
                ops[-1]["undo"] = True
            if kind == "kill" and rng.random() < 0.4:
                ops[-1]["write"] = {"db": rng.choice(writable), "seed": rng.randrange(10**6)}
            if command["op"] == "apply":
                ops.append(dict(command))
                at = after
        elif kind == "meanwhile":
            command, at = update(rng, drafts, at)
            ops.append({"op": "meanwhile", "at": int(rng.choice([rng.randint(1, 40), rng.randint(1, 120)])), "cmd": command,
                        "write": {"db": rng.choice(shared or writable), "seed": rng.randrange(10**6)}})
            # The moment between releasing the lock and taking the lease.
            if rng.random() < 0.3:
                ops[-1].update(at=rng.choice([1, 1, 2]), call="lease")
        elif kind == "quarantine":
            ops.append({"op": "quarantine", "what": rng.choice(["list", "export", "export", "export", "restore", "table", "remove", "age"]), "pick": rng.randrange(1000)})
        elif kind == "saved":
            op, at = update(rng, drafts, at)
            ops.append({"op": "saved", "cmd": op})
            if rng.random() < 0.5:
                ops[-1]["write"] = {"op": "write", "db": rng.choice(writable), "seed": rng.randrange(10**6), "n": 2}
        elif kind == "clean":
            ops.append({"op": "clean", "older": rng.random() < 0.5, "keep": rng.random() < 0.3})
        elif kind == "salvage":
            ops.append({"op": "salvage", "db": rng.choice(writable)})
        elif kind == "hold":
            ops.append({"op": "hold", "v": rng.choice([min(at + 1, RELEASES - 1), "*"])})
        elif kind == "owner":
            ops.append({"op": "owner", "db": rng.choice(writable), "mode": rng.choice(MODES), "uid": rng.choice([0, 1234])})
        elif kind == "link":
            ops.append({"op": "link", "db": rng.choice(shared or writable)})
        elif kind == "plan":
            op, _ = update(rng, drafts, at)
            ops.append({"op": "plan", **{k: v for k, v in op.items() if k != "op"}} | ({"deep": True} if rng.random() < 0.3 else {}))
        elif kind == "pack":
            ops.append({"op": "pack", "like": at, "how": rng.choice(["table", "columns", "string", "column", "random", "syntax", "time", "subquery"])})
        elif kind == "plain":
            to = min(RELEASES - 1, at + 1)
            new = [n for n in sorted(drafts[to]["databases"]) if drafts[to]["databases"][n]["path"] not in {d["path"] for d in here.values()}]
            if new:
                ops.append({"op": "plain", "db": rng.choice(new), "like": to, "seed": rng.randrange(10**6), "n": rng.randint(1, 5)})
                ops.append({"op": "apply", "to": to})
                at = to
    made = {"seed": seed, "story": number, "family": chosen, "without": [], "ops": with_companions(ops[:40], seed, number)}
    settings = {}
    if rng.random() < 0.25:
        settings |= {"keep": rng.choice([1, 2]), "minimumAge": 0}
    return made | ({"settings": settings} if settings else {})


def with_companions(ops, seed, number):
    """Gives most commands an app that writes at the same time."""
    rng = random.Random(f"beside {seed} {number}")
    for op in ops:
        if op["op"] in beside.OPERATIONS and rng.random() < 0.95:
            op["beside"] = {"kind": rng.randrange(10**6), "pick": rng.randrange(10**6)}
    return ops


WEIGHTS = {
    "write": 36, "apply": 22, "rollback": 5, "foreign": 0.7, "schema": 2.5, "mode": 3, "open": 3, "reset": 3, "damage": 2, "remove": 0.5,
    "copy": 0.8, "again": 2, "status": 2, "older": 1.5, "kill": 2.5, "full": 0.7, "quarantine": 3, "hold": 1.2, "unhold": 1, "owner": 1,
    "link": 0.4, "plan": 2.5, "pack": 0.4, "plain": 1, "saved": 1.2, "clean": 0.8, "salvage": 0.2, "meanwhile": 2,
}


def update(rng, drafts, at):
    """Returns an update to a later release, or sometimes to an older release or the installed one, and the index of the newest
    release so far."""
    roll = rng.random()
    if roll < 0.04:
        to = rng.randrange(0, at + 1)
    else:
        to = min(RELEASES - 1, at + rng.choice([1, 1, 1, 1, 2, 3]))
    op = {"op": "apply", "to": to}
    here, there = drafts[at]["databases"], drafts[to]["databases"]
    kinds = {d["path"]: d["kind"] for d in here.values()}
    taken = sorted(n for n, d in there.items() if kinds.get(d["path"], d["kind"]) != d["kind"])
    if taken and rng.random() < 0.6:
        op["take"] = taken
    if rng.random() < 0.4:
        op["accept"] = True
    if to < at and rng.random() < 0.5:
        op["downgrade"] = True
    return op, max(at, to)
