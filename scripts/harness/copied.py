"""A copy of the last commit in .build/copy, for tests of changes to it. Its build stays for the next change."""
import fcntl, os, pathlib, re, shutil, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TREE, SWITCH = ROOT / ".build/copy/tree", ROOT / ".build/copy/number"
FLAGS = ["--build-tests", "--disable-local-rpath", "-debug-info-format", "none"]
# Seconds for a suite. A change with which a suite takes longer has been found.
LIMIT = 180

HEADER = "/* Whether the change with this number is switched on. */\n_Bool moult_mutant(int number);\n"
SOURCE = """#include "CMutant.h"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int active;

/* Before `main`, because a process that is confined later opens no files. */
__attribute__((constructor)) static void read_number(void) {
    char text[16] = "";
    int file = open("%s", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    if (read(file, text, sizeof text - 1) > 0) active = atoi(text);
    close(file);
}

_Bool moult_mutant(int number) { return number == active; }
""" % SWITCH
# The module with the switch is a dependency of every Swift target, and a change may leave a value that is not used.
PACKAGE = (('        .target(name: "MoultLibc"),\n', '        .target(name: "MoultLibc"),\n        .target(name: "CMutant"),\n'),
           ('$0.name != "CLinux" }', '!["CLinux", "CMutant"].contains($0.name) }'),
           ('    if !["CLinux", "MoultLibc"].contains(target.name) { target.dependencies.append("MoultLibc") }\n',
            '    if !["CLinux", "CMutant", "MoultLibc"].contains(target.name) { target.dependencies += ["MoultLibc", "CMutant"] }\n'),
           ("    .treatAllWarnings(as: .error),\n", ""))


def git(*words, **more):
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True, **more).stdout


def commit():
    return git("rev-parse", "HEAD").strip()


def prepare():
    """Makes the copy the last commit again, with the switch. Files that have not changed stay, and are not compiled again."""
    TREE.mkdir(parents=True, exist_ok=True)
    prepare.lock = open(TREE.parent / "lock", "w")
    try:
        fcntl.flock(prepare.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(f"another process uses {TREE}")
    turn_on(0)
    with tempfile.TemporaryDirectory(dir=TREE.parent) as directory:
        new = pathlib.Path(directory)
        archive = subprocess.Popen(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", new], stdin=archive.stdout, check=True)
        if archive.wait():
            sys.exit("git archive failed")
        (new / "Sources/CMutant/include").mkdir(parents=True)
        (new / "Sources/CMutant/include/CMutant.h").write_text(HEADER)
        (new / "Sources/CMutant/mutant.c").write_text(SOURCE)
        package = (new / "Package.swift").read_text()
        for old, text in PACKAGE:
            if package.count(old) != 1:
                sys.exit(f"Package.swift has this text {package.count(old)} times instead of once: {old!r}")
            package = package.replace(old, text)
        (new / "Package.swift").write_text(package)
        subprocess.run(["rsync", "-rlp", "--checksum", "--delete", "--exclude=/.build", f"{new}/", f"{TREE}/"], check=True)


def turn_on(number):
    SWITCH.write_text(f"{number}\n")


def build(targets):
    """Builds the copy with these targets of tests, as `make test` does; returns the output if it fails."""
    environment = os.environ | {"MOULT_TEST_BUILD": "1", "MOULT_TESTS": ",".join(sorted(targets))}
    done = subprocess.run(["swift", "build", *FLAGS], cwd=TREE, env=environment, capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else None


def first_failure(pattern):
    """Runs the tests whose name matches, up to the first suite that fails; returns its name, or None."""
    command = ["scripts/test", "--untagged", "thorough", "--first", "--limit", str(LIMIT), "--only", pattern]
    done = subprocess.run(command, cwd=TREE, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    failed = re.findall(r"failed after \d+ seconds: (.+)$", done.stdout, re.M)
    if not failed:
        sys.exit(f"scripts/test failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return failed[-1].split(", ")[0]


def suite_that_finds(pattern):
    """Runs the tests whose name matches; returns the first suite that fails twice, or None. One that fails at random finds nothing."""
    suite = first_failure(pattern)
    while suite and not first_failure(f"^{re.escape(suite)}([./]|$)"):
        suite = first_failure(pattern)
    return suite
