"""The programs that a harness uses, and the commands that it runs."""
import os, shutil, subprocess, tempfile

from harness import files

HERE = os.path.dirname(os.path.abspath(__file__))


class Wrong(Exception):
    """A condition that does not hold."""


class Tools:
    """The command, and the programs of this directory, compiled in a scratch directory; without a compiler they are None."""

    def __init__(self, moult, scratch):
        self.moult, self.scratch = os.path.abspath(moult), scratch
        self.strike = self.compiled("strike")
        self.companion = self.compiled("companion", "-lsqlite3")
        self.slowclose = self.compiled("slowclose", "-shared", "-fPIC")

    def compiled(self, name, *options):
        target = os.path.join(self.scratch, name)
        compiler = os.environ.get("CC") or next(filter(shutil.which, ("cc", "clang")), None)
        words = [compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-o", target, f"{HERE}/{name}.c", *options]
        return target if compiler and subprocess.run(words).returncode == 0 else None


def struck(report):
    """Returns the report of `strike`: the calls, the first call that was struck, the status of the command."""
    with open(report) as file:
        *calls, last = file.read().splitlines()
    found = dict(word.split("=") for word in last.split())
    return {name: value if name in ("at", "paths") else int(value) for name, value in found.items()} | {"list": calls}


class Runner:
    """A directory, and the commands that are run there, with their results."""

    def __init__(self, tools, directory, **environment):
        self.tools, self.directory, self.log = tools, directory, []
        # The apps beside the commands.
        self.apps = None
        # The copy from which the directory is restored, which stays for the next command.
        self.start = None
        self.environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": tools.scratch, "TMPDIR": tools.scratch} | environment

    def remove(self):
        files.remove(self.directory)

    def words(self, command):
        return command

    def run(self, *command, before=(), **environment):
        ended = subprocess.run([*(self.apps.around_command if self.apps else []), *before, self.tools.moult, *self.words(command)], env=self.environment | environment, cwd=self.directory,
                               text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        self.log.append(f"{' '.join(command)}: {ended.returncode} {ended.stderr.strip()}")
        return ended.returncode

    def must(self, *command, **environment):
        if status := self.run(*command, **environment):
            raise Wrong(f"moult {' '.join(command)} exited with {status}: {self.log[-1]}")

    def strike(self, command, *how):
        """Runs a command and strikes it; returns the report, whose `ending` is the status of the command."""
        with tempfile.NamedTemporaryFile(dir=self.tools.scratch, prefix="report-") as report:
            if self.run(*command, before=[self.tools.strike, "-o", report.name, *map(str, how), "--"]):
                raise SystemExit("strike: " + self.log[-1])
            found = struck(report.name)
        if found["struck"]:
            self.log.append(f"  struck at {found['at']} {found['paths']} ({' '.join(map(str, how))}), ended with {found['ending']}")
        return found

    def wrong(self, error):
        """Returns the error with the results of all commands."""
        text = f"{error}\n    " + "\n    ".join(self.log)
        return Wrong(text.replace(self.directory + "/", "").replace(self.tools.scratch + "/", ""))
