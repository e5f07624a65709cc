"""Programs that run as steps, and try to change more than they were granted."""
import json

from kit import attack, harmless, refused, works


def step(arena, plan="", apply="", name="test.step", writes=(), prepare="", undo="", describe="", settings=None, **more):
    """Creates a store with release 1.0.0, a release 2.0.0 and a trusted step, written in Python, which runs these statements."""
    program = arena.write("step", f"""#!/usr/bin/env python3
import ctypes, json, os, signal, socket, subprocess, sys, time
message = json.loads(sys.stdin.readline())
context, result = message.get("context", {{}}), {{"reply": "result"}}
def attempt(action):
    try: return "done: %s" % (action(),)
    except Exception as error: return "denied: %s" % error
if message["message"] == "describe":
    result |= {{"protocol": 1, "name": "{name}", "version": "1", "summary": "attacks", "planIsPure": True}}
    {describe or 'pass'}
elif message["message"] == "plan":
    result["effects"] = [{{"change": {{"do": "custom", "name": "test", "text": "attacks", "with": {{"writes": {json.dumps(list(writes))}}}}}}}]
    {plan or 'pass'}
elif message["message"] == "prepare":
    {prepare or 'pass'}
elif message["message"] == "apply":
    {apply or 'pass'}
elif message["message"] == "undo":
    {undo or 'pass'}
print(json.dumps(result))
""", 0o755)
    first, second = (arena.release(version, {"food": ("reference", f"CREATE TABLE food(v); INSERT INTO food VALUES('{version}')")})
                     for version in ("1.0.0", "2.0.0"))
    arena.store(first)
    arena.settings({"steps": {name: {"executable": program, "after": "copy", **(settings or {})}}})
    arena.moult("steps", "trust", name, "--store", "store")
    return second


@attack("a step that may write a missing file of the store rewrites moult.json", expects=harmless())
def missing_file_opens_directory(arena):
    log = arena.path("store/hook.log")
    second = step(arena, writes=[log], settings={"writable": [log]}, apply=f"""open({log!r}, "a").write("ran")
    attempt(lambda: open({arena.path("store/moult.json")!r}, "w").write("rewritten"))""")
    before = open("store/moult.json").read()
    arena.attack("apply", "--store", "store", second, allowed=["store/hook.log", "store/.moult", "store/food.db"])
    arena.check(open("store/moult.json").read() == before, "file: the step has rewritten moult.json")
