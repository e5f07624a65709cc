"""Random operations on the store, and the conditions that must hold after each of them."""
import collections, json, os, random, shutil, sqlite3, subprocess, time

from harness import releases

from publisher import PRODUCT

# The allowed exit statuses of an undisturbed and of a disturbed command: 0 done, 1 and 3 not started, 5 undone, 6 to be
# completed, 75 try later.
QUIET, DISTURBED = {0}, {0, 1, 3, 5, 6, 75}


class Deeds:
    def __init__(self, moult, store, publisher, can_fill):
        self.moult, self.store, self.publisher = moult, store, publisher
        self.done = collections.Counter()
        self.took = 0.5
        self.choices = [self.update] * 4 + [self.follow] * 2 + [self.back, self.two, self.clean] + [self.killed] * 4
        if can_fill:
            self.choices += [self.full] * 2

    def start(self, *words):
        return subprocess.Popen([self.moult, *words, "--store", self.store], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, allowed, *words):
        begun, process = time.monotonic(), self.start(*words)
        _, errors = process.communicate(timeout=300)
        assert process.returncode in allowed, f"{' '.join(words)} exited with {process.returncode}: {errors}"
        self.took = 0.8 * self.took + 0.2 * (time.monotonic() - begun)
        return process.returncode

    def begin(self):
        subprocess.run([self.moult, "init", "-q", self.store, "--product", PRODUCT], check=True)
        # Old files must not fill the small disk.
        releases.set_settings(self.store, minimumAge=0, quarantine={"size": 4_000_000}, feed={"url": self.publisher.address})
        self.run(QUIET, "apply", "-q", self.publisher.next())
        with sqlite3.connect(os.path.join(self.store, "pantry.db")) as pantry:
            pantry.execute("PRAGMA journal_mode = WAL")
        pantry.close()

    def one(self):
        deed = random.choice(self.choices)
        deed()
        self.rest()
        self.whole(deed.__name__)

    def rest(self):
        """Finishes or undoes an interrupted update."""
        self.run(QUIET, "recover", "-q", "--wait", "60")

    def whole(self, deed):
        """Checks that the pointer, the read-only databases and the shared database belong to one release."""
        current = os.path.join(self.store, ".moult/current")
        version = int(json.load(open(os.path.join(current, "manifest.json")))["version"].split(".")[0])
        seen = {}
        for name, sql in {"food": "SELECT DISTINCT release FROM food", "codes": "SELECT release FROM codes",
                          "pantry": "SELECT DISTINCT release FROM food WHERE mine = 0"}.items():
            mode = "mode=ro&immutable=1" if name != "pantry" else "mode=rw"
            connection = sqlite3.connect(f"file:{self.store}/{name}.db?{mode}", uri=True, timeout=10)
            seen[name] = [row[0] for row in connection.execute(sql)]
            connection.close()
        assert all(found == [version] for found in seen.values()), f"after {deed}: {version} is installed, but found {seen}"

    def update(self):
        self.run(QUIET, "apply", "-q", "--wait", "60", self.publisher.next())
        self.done["updates"] += 1

    def follow(self):
        """Follows the feed, whose server sometimes fails."""
        self.publisher.publish(self.publisher.next())
        status = self.run({0, 1, 3, 75}, "apply", "-q", "--allow-unsigned", "--wait", "60")
        self.done["updates from the feed" if status == 0 else "updates that failed because of the server"] += 1

    def back(self):
        if self.run({0, 3}, "rollback", "-q", "--reason", "soak") == 0:
            self.done["rollbacks"] += 1
            self.run(QUIET, "unhold", "--all", "-q")

    def two(self):
        """Runs two updates at the same time: the second one exits with 75, or finds nothing to do."""
        manifest = self.publisher.next()
        both = [self.start("apply", "-q", manifest) for _ in range(2)]
        results = [(process.communicate(timeout=300)[1], process.returncode) for process in both]
        statuses = sorted(status for _, status in results)
        assert statuses[0] == 0 and statuses[1] in (0, 75), f"two updates at the same time exited with {results}"
        self.done["pairs of updates at the same time"] += 1

    def killed(self):
        """Kills an update or a rollback at a random moment, and sometimes the recovery after it."""
        words = random.choice([("apply", "-q", self.publisher.next()), ("rollback", "-q", "--reason", "killed")])
        for command in (words, ("recover", "-q")):
            process = self.start(*command)
            try:
                process.communicate(timeout=random.uniform(0, 1.5 * self.took))
                break
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                self.done["kills survived"] += 1
            if random.random() < 0.5:
                break
        self.run({0}, "unhold", "--all", "-q", "--wait", "60")

    def full(self):
        """Fills the disk, tries an update, and frees the space again."""
        filler = os.path.join(os.path.dirname(self.store), "filler")
        mark = filler + ".mark"
        manifest = self.publisher.next()
        open(mark, "w").close()
        try:
            room = shutil.disk_usage(self.store).free
            with open(filler, "wb") as out:
                os.posix_fallocate(out.fileno(), 0, max(4096, room - random.choice([0, 1 << 16, 1 << 18, 1 << 20, 3 << 19])))
        except OSError:
            pass  # The writers have already filled the disk.
        try:
            status = self.run(DISTURBED, "apply", "-q", manifest)
            self.done["updates that succeeded on a full disk" if status == 0 else "updates that failed on a full disk"] += 1
        finally:
            os.remove(filler)
            os.remove(mark)

    def clean(self):
        self.run(QUIET, "clean", "-q", "--wait", "60")
        self.done["runs of clean"] += 1

    def left_over(self):
        """Returns the files that should not be left over, with their sizes."""
        self.run(QUIET, "clean", "-q", "--quarantine-older-than", "0")
        moult = os.path.join(self.store, ".moult")
        found = [os.path.join(moult, "transactions", name) for name in os.listdir(os.path.join(moult, "transactions"))]
        report = subprocess.run([self.moult, "status", "--deep", "--json", "--store", self.store], capture_output=True, text=True)
        for line in report.stdout.splitlines():
            found += [one["path"] for one in json.loads(line).get("findings", []) if one["kind"] in ("unknown", "unused", "unfinished")]
        return {path: size(path) for path in found if os.path.basename(path) != "CACHEDIR.TAG"}

    def unsound(self):
        ended = subprocess.run([self.moult, "verify", "--deep", "--store", self.store], capture_output=True, text=True)
        return [] if ended.returncode == 0 else [f"verify: {ended.stdout}{ended.stderr}"]


def size(path):
    if not os.path.isdir(path) or os.path.islink(path):
        return os.lstat(path).st_size
    return 1 + sum(size(os.path.join(path, name)) for name in os.listdir(path))
