"""What the modules of this collection share."""

import base64
import binascii
import json
import os
import shutil
import stat


class Moult:
    def __init__(self, module):
        self.module, self.parameters = module, module.params
        named = self.parameters["executable"]
        self.executable = shutil.which(named)
        if not self.executable:
            module.fail_json(msg=f"{named} is not an executable program. Install moult, or set \"executable\".")
        self.require_own(self.executable, "run")

    def require_own(self, path, verb):
        """Fails if another user, except root, can replace or change a file: anything in its path that others own or may write to."""
        fault = foreign(os.path.abspath(path))
        if fault:
            self.module.fail_json(
                msg=f"{path} must not be {verb} by {user_name()}: {fault}. Let root or {user_name()} own the file and all "
                "directories above it, and let no other user write to them.")

    def run(self, verb, *words, fine=(0,), as_json=True, store=None):
        """Returns the status and the output of a verb; if the status is not in `fine`, the module fails with the error of the
        verb."""
        command = [self.executable, verb, *words, "--store", store or self.parameters["store"]]
        status, output, errors = self.module.run_command(command + (["--json"] if as_json else []))
        lines = [json.loads(line) for line in output.splitlines()] if as_json else output.splitlines()
        if status in fine:
            return status, lines
        error = lines[-1].get("error", {}) if as_json and lines else {}
        sentence = ": ".join(error[key] for key in ("what", "why") if key in error)
        self.module.fail_json(
            msg=f"{sentence}. {error.get('now', '')}".strip() if sentence else errors.strip() or f"{verb} failed",
            rc=status, outcome=error.get("outcome"), code=error.get("code"))

    def settings_file(self):
        return os.path.join(self.parameters["store"], "moult.json")

    def init(self, *words):
        """Creates the store if it does not exist, unless in check mode; returns whether it did not exist."""
        if os.path.exists(self.settings_file()):
            return False
        if not self.module.check_mode:
            keys = [word for key in self.parameters["keys"] for word in ("--key", key)]
            self.run("init", "--product", self.parameters["product"], *keys, *words)
        return True

    def decoded(self, key):
        """Returns the bytes of a key in minisign's format."""
        try:
            data = base64.b64decode(key, validate=True)
        except (binascii.Error, ValueError):
            data = b""
        if len(data) != 42:
            self.module.fail_json(msg=f"{key} is not a public key: use the last line of the .pub file")
        return data


def ids(keys):
    """Returns the IDs of keys as minisign writes them: eight bytes in reverse order."""
    return " ".join(sorted(key[2:10][::-1].hex().upper().lstrip("0") or "0" for key in keys))


def user_name():
    return f"user {os.geteuid()}" if os.geteuid() else "root"


def foreign(path, links=40):
    """Returns why a user other than root and this one can change what is at an absolute path; None if no other user can."""
    place, rest = "/", [part for part in path.split("/") if part not in ("", ".")]
    while True:
        try:
            facts = os.lstat(place)
        except OSError as error:
            return f"{place}: {error.strerror}"
        # In a directory with the sticky bit, only the owner of a file can replace the file.
        is_sticky = stat.S_ISDIR(facts.st_mode) and facts.st_mode & stat.S_ISVTX
        if facts.st_uid not in (0, os.geteuid()):
            return f"{place} belongs to user {facts.st_uid}"
        if not stat.S_ISLNK(facts.st_mode) and facts.st_mode & 0o022 and not is_sticky:
            return f"other users can write to {place}"
        if stat.S_ISLNK(facts.st_mode):
            links -= 1
            if links == 0:
                return f"{place} leads through too many links"
            target = os.readlink(place)
            rest = [part for part in target.split("/") if part not in ("", ".")] + rest
            place = "/" if target.startswith("/") else os.path.dirname(place)
            continue
        if not rest:
            return None if stat.S_ISREG(facts.st_mode) else f"{place} is not a regular file"
        part = rest.pop(0)
        place = os.path.dirname(place) if part == ".." else os.path.join(place, part)
