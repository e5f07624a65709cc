"""Makes any number of releases, and serves them with a web server that sometimes fails, as real servers do."""
import os, random

from harness import releases

PRODUCT = "org.example.soak"
# The faults of a response; a repeated entry occurs more often.
FAULTS = ["none"] * 4 + ["refuse", "cut", "corrupt", "nothing"]


class Spoiling(releases.Handler):
    """Serves files, some of them damaged."""

    def copyfile(self, source, output):
        content, fault = source.read(), random.choice(FAULTS)
        if fault == "cut":
            content = content[:len(content) // 2]
        if fault == "corrupt":
            at = random.randrange(len(content))
            content = content[:at] + bytes([content[at] ^ 1]) + content[at + 1:]
        try:
            output.write(b"" if fault == "nothing" else content)
        except ConnectionError:
            pass

    def send_head(self):
        if random.choice(FAULTS) == "refuse":
            self.send_error(503)
            return None
        return super().send_head()


class Publisher:
    def __init__(self, moult, directory):
        self.moult, self.directory, self.number = moult, directory, 0
        self.feed = os.path.join(directory, "public")
        os.makedirs(self.feed)
        self.run("keygen", "-q", "--no-password", os.path.join(directory, "soak"))
        self.address = releases.serve(self.feed, Spoiling)

    def run(self, *words):
        releases.run(self.moult, *words)

    def next(self):
        """Makes the next release: every shipped row has the number of the release, and the cache sometimes has a new schema."""
        self.number += 1
        number, work = self.number, os.path.join(self.directory, f"{self.number}.draft")
        os.makedirs(work)
        fill = f"""
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
            INSERT INTO food(id, release, name) SELECT i, {number}, hex(randomblob(60)) FROM n;"""
        columns = "id INTEGER PRIMARY KEY, release INTEGER, name TEXT, mine INTEGER NOT NULL DEFAULT 0"
        scripts = {
            "food": f"CREATE TABLE food({columns});" + fill,
            "codes": f"CREATE TABLE codes(release); INSERT INTO codes VALUES({number});",
            "pantry": f"CREATE TABLE food({columns});" + fill,
            "user": "CREATE TABLE note(slot INTEGER PRIMARY KEY, count INTEGER);",
            "thumbs": f"CREATE TABLE thumb(id INTEGER PRIMARY KEY, image BLOB, v{number // 4} TEXT);",
        }
        kinds = {"food": "reference", "codes": "reference", "pantry": "shared", "user": "user", "thumbs": "cache"}
        for name, script in scripts.items():
            releases.database(os.path.join(work, f"{name}.db"), script)
        databases = {name: {"kind": kind, "source": f"{name}.db"} for name, kind in kinds.items()}
        databases["pantry"] |= {"preserve": [{"table": "food", "where": "mine = 1"}]}
        return releases.pack(self.moult, work, releases.draft(PRODUCT, f"{number}.0.0", number, databases), self.directory)

    def publish(self, manifest):
        self.run("publish", "-q", self.feed, manifest, "--key", os.path.join(self.directory, "soak.key"))
