"""Random histories. Each step has all its choices, so that it stays the same when other steps are removed."""
import random

STORES = 20


def history(seed):
    chance = random.Random(seed)
    steps = []
    for number in range(1, chance.randint(6, 14) + 1):
        machine, pick = chance.randint(0, 1), chance.randint(0, 1000)
        # Most commands make fewer than 300 calls.
        kill = chance.randint(1, 300) if chance.random() < 0.5 else None
        common = {"machine": machine, "pick": pick, "kill": kill}
        op = chance.choices(["publish", "roll", "promote", "withdraw", "renew", "patches", "keep", "rotate", "race", "steal", "recover", "replay"],
                            [32, 10, 6, 6, 7, 3, 7, 6, 8, 6, 8, 5])[0]
        step = {"op": op} | common
        if op in ("publish", "race"):
            step |= {"version": (1, 9, number) if op == "race" else (chance.randint(1, 3), 0, number), "channel": chance.choice(["stable", "stable", "beta"]),
                     "rollout": chance.choice([100, 100, 50, 10, 0]), "group": chance.choice(["", "", "canaries"]),
                     "app": op == "publish" and chance.random() < 0.3,
                     "from": op == "publish" and chance.random() < 0.4, "again": chance.random() < 0.6}
        elif op in ("roll", "promote"):
            step["rollout"] = chance.choice([0, 30, 100])
        elif op == "steal":
            step["serial"] = chance.choice([1, 2, 900, 990_000])
        steps += [step, {"op": "follow", "store": chance.randrange(STORES), "kill": chance.randint(1, 150) if chance.random() < 0.4 else None}]
    return steps


def text(step):
    """Returns a step as a command."""
    machine = f"m{step.get('machine')}"
    kill = f"  # killed at call {step['kill']}" if step.get("kill") else ""
    version = ".".join(map(str, step.get("version", ())))
    return {
        "publish": lambda: f"publish {machine} {version} --channel {step['channel']} --rollout {step['rollout']}"
                           + f" --group {step['group']}" * bool(step["group"]) + " (requires app)" * step["app"] + f" (requires release {step['pick']})" * step["from"] + ", and again if killed" * step["again"],
        "roll": lambda: f"publish {machine} --release {step['pick']} --rollout {step['rollout']}",
        "promote": lambda: f"publish {machine} --promote {step['pick']} --to stable --rollout {step['rollout']}",
        "withdraw": lambda: f"publish {machine} --withdraw {step['pick']}",
        "renew": lambda: f"publish {machine}",
        "patches": lambda: f"publish {machine} --patches {step['pick'] % 3}",
        "keep": lambda: f"publish {machine} --keep-releases {step['pick'] % 3 + 1}",
        "rotate": lambda: f"replace both keys on {machine}",
        "race": lambda: f"publish {machine} while m{1 - (step['machine'] or 0)} publishes {version}",
        "steal": lambda: f"a thief publishes 9.9.9 with a serial {step['serial']} higher",
        "recover": lambda: f"{machine} replaces the stolen keys",
        "replay": lambda: f"a store gets the files of moment {step['pick']}",
        "follow": lambda: f"apply s{step['store']}",
    }[step["op"]]() + kill
