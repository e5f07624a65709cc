"""The rules of a feed (docs/feeds.md, docs/publish.md), without code of moult."""
import hashlib

from harness.tools import Wrong

THIEF = (9, 9, 9)


def number(version):
    return tuple(map(int, version.split(".")))


def name(version):
    return ".".join(map(str, version))


def channel(release):
    return release.get("channel", "stable")


def position(machine, product, version):
    """Returns the share of machines, in percent, before this one in a rollout."""
    digest = hashlib.sha256(f"{product}\n{version}\n{machine}".encode()).digest()
    return (int.from_bytes(digest[:4], "big") * 10_000 >> 32) / 100


def offered(feed, store):
    """Returns the versions that a feed offers to a store."""
    return {
        number(release["version"]) for release in feed["releases"]
        if "withdrawn" not in release and channel(release) in ("stable", store.channel)
        and ("app" not in release.get("requires", {}) or store.app == number(release["version"])[0])
        and includes(release, store, feed["product"])}


def includes(release, store, product):
    """Returns whether the rollout of a release includes the machine of a store."""
    share = release.get("rollout", 100)
    if store.group == "first":
        return share > 0
    return store.group in release.get("groups", []) or position(store.machine, product, release["version"]) < share


class Rules:
    def __init__(self):
        # For each release: the oldest version over which it can be installed, and the releases from which it has patches.
        self.oldest, self.bases = {}, {}
        self.promised_patches = {}

    def newest(self, installed, versions):
        """Returns the newest release that can be installed over a version, directly or after others."""
        reached = {installed}
        for version in sorted(versions):
            oldest = self.oldest.get(version)
            if version > installed and (oldest is None or any(oldest <= one < version for one in reached)):
                reached.add(version)
        return max(reached)

    def expected(self, feed, store, trusted):
        """Returns the version that a store must have after it has followed a feed. `trusted` are the release keys in force."""
        versions = offered(feed, store)
        installed = store.installed()
        if installed is None:
            return max(versions, default=None)
        listed = any(release["manifest"]["sha256"] == store.digest() and "withdrawn" not in release for release in feed["releases"])
        if not listed and not trusted & store.signers and versions:
            return max(versions)
        return self.newest(installed, versions)

    def check_ways(self, store, before, after):
        """Checks that dropped releases take no store its way to the newest release."""
        old, left = offered(before, store), offered(after, store)
        if not left:
            if old:
                raise Wrong(f"a new store like {store.name} finds no release any more")
            return
        top = max(left)
        for start in self.bases:
            if start < top and self.newest(start, old | left) == top != self.newest(start, left):
                raise Wrong(f"a store like {store.name} with {name(start)} has no way to {name(top)} any more")

    def check_patches(self, feed, narrowed=None):
        """Checks that a patch stays in the feed as long as its base; `narrowed` is the number after --patches."""
        there = {number(release["version"]) for release in feed["releases"]}
        if narrowed is not None:
            lines = {}
            for release in feed["releases"]:
                if "withdrawn" not in release:
                    lines.setdefault((channel(release), release.get("requires", {}).get("app")), []).append(number(release["version"]))
            kept = {version for line in lines.values() for version in sorted(line)[-narrowed - 1:]} if narrowed else set()
            for patches in self.promised_patches.values():
                patches &= kept
        for release in feed["releases"]:
            version = number(release["version"])
            needed = self.promised_patches.setdefault(version, self.bases.get(version, set()) & there)
            found = {number(patch["from"]) for patch in release.get("patches", [])}
            if missing := (needed & there) - found:
                raise Wrong(f"{release['version']} has no patch from {name(min(missing))} any more, which serial {feed['serial']} offers")
