"""Prints a failing story as a shell script that needs only sqlite3 and moult."""
import json, os


def shell(verdict, moult):
    lines = ["#!/bin/bash", f"# A story of the ledger: seed {verdict.story['seed']}, story {verdict.story['story']}, family {verdict.story['family']}",
             "# What was wrong after the last command:"]
    lines += [f"#   {check}: {' '.join(text.split())[:300]}" for check, text in verdict.found]
    lines += [f"MOULT=${{MOULT:-{os.path.basename(moult)}}}", "W=$(mktemp -d -p /dev/shm) && R=$W/releases && S=$W/store && mkdir $R", ""]
    if any("$STRIKE" in line for line in verdict.log):
        # The numbers of the calls come from a run in memory.
        lines.insert(-1, "STRIKE=${STRIKE:?built with: cc -O2 -o strike scripts/harness/strike.c}")
    if any("$COMPANION" in line for line in verdict.log):
        lines.insert(-1, "COMPANION=${COMPANION:?built with: cc -O2 -o companion scripts/harness/companion.c -lsqlite3}")
    for index, directory in sorted(verdict.releases.items()):
        version = f"{index + 1}.0.0"
        lines.append(f"mkdir -p $R/{version} && cd $R/{version}")
        for base, below, names in os.walk(directory):
            below[:] = [b for b in below if b != "out"]
            for name in sorted(names):
                relative = os.path.relpath(os.path.join(base, name), directory)
                if name.endswith(".db"):
                    continue
                if "/" in relative:
                    lines.append(f"mkdir -p {os.path.dirname(relative)}")
                with open(os.path.join(base, name)) as file:
                    lines.append(f"cat > {relative} <<'END'\n{file.read().rstrip()}\nEND")
                if relative.endswith(".sql") and "/" not in relative:
                    lines.append(f"sqlite3 {relative[:-4]}.db < {relative}")
        lines.append(f"$MOULT pack -q --level 1 draft.json -o . || exit")
    settings = json.dumps({"keep": 30} | verdict.story.get("settings", {}))[1:-1]
    lines += ["", '$MOULT init -q "$S" --product org.example.ledger', f"""sed -i 's/"keep": *[0-9]*/{settings}/' "$S/moult.json\"""", 'cd "$W"', ""]
    lines += verdict.log
    lines += ['echo "the files are in $W"']
    return "\n".join(lines) + "\n"
