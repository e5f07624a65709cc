#!/usr/bin/python
"""Creates and configures a moult store."""

DOCUMENTATION = r"""
module: moult_store
short_description: Create and configure a moult store
description:
  - Creates a store with C(moult init) if it does not exist, and changes C(moult.json) where it differs from the options.
  - It installs no release; M(moult.store.moult_release) does.
  - The command checks new settings before they replace the present ones.
options:
  store:
    description: The directory with the databases. Its parent directory must exist.
    type: path
    required: true
  product:
    description: The product of the store. The module fails if an existing store has another one.
    type: str
    required: true
  feed:
    description: The URL of the feed that the store follows, or a dictionary with the fields of C(feed) in C(moult.json).
    type: raw
  keys:
    description:
      - The public keys to trust, each as the last line of its C(.pub) file. If the publisher has separate keys, pin the root key.
      - Required unless O(allow_unsigned=true).
    type: list
    elements: str
    default: []
  threshold:
    description: How many of the keys must have signed each release and feed.
    type: int
    default: 1
  allow_unsigned:
    description: Let the store trust no key. Anyone who can change its releases during the transfer can then install other data.
    type: bool
    default: false
  settings:
    description:
      - Other fields of C(moult.json), such as C(keep), C(consumers) or C(monitoring). Each replaces the whole field.
      - A null removes a field. Fields that are not given stay as they are.
    type: dict
    default: {}
  executable:
    description: The moult command to run. The module fails if another user, except root, can change it.
    type: path
    default: moult
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
"""

EXAMPLES = r"""
- moult.store.moult_store:
    store: /var/lib/app
    product: org.example.app
    feed: https://example.org/releases/feed.json
    keys: [RWQyPRdtNqG5Si6tnim0/KUZ97yVcba5a/aVOkIXeW3td3d3sOpUmEzH]
    settings:
      onWithdrawn: rollback
      monitoring: {every: 3600}
"""

RETURN = r"""
settings: {description: The fields of C(moult.json)., type: dict, returned: success}
rc: {description: The exit status of moult., type: int, returned: failure}
"""

import json
import os
import tempfile

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.moult.store.plugins.module_utils.command import Moult


class Store(Moult):
    def present(self):
        """Returns the text of moult.json; None without a store."""
        try:
            with open(self.settings_file(), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def read(self, text):
        try:
            return json.loads(text)
        except ValueError as error:
            self.module.fail_json(
                msg=f"{self.settings_file()} is not plain JSON: {error}. The module would remove comments and final commas from the "
                "file. Remove them, or configure the store without this module.")

    def wanted(self, present):
        """Returns the settings with the options of the task."""
        given = dict(self.parameters["settings"])
        for name in ("moult", "product", "feed", "keys"):
            if name in given:
                self.module.fail_json(msg=f"settings cannot contain {name}: it has an option of its own")
        if present.get("product", self.parameters["product"]) != self.parameters["product"]:
            self.module.fail_json(msg=f"{self.parameters['store']} is a store for {present['product']}, not for {self.parameters['product']}")
        feed = self.parameters["feed"]
        if feed:
            given["feed"] = {"url": feed} if isinstance(feed, str) else feed
        if self.parameters["keys"]:
            # An entry of a key may have more fields, such as the time until which its signatures are valid.
            known = {key["key"]: key for key in present.get("keys", {}).get("trusted", [])}
            trusted = [known.get(key, {"key": key}) for key in self.parameters["keys"]]
            given["keys"] = {"threshold": self.parameters["threshold"], "trusted": trusted}
        else:
            given["keys"] = None
        merged = {"moult": 1, "product": self.parameters["product"]} | present | given
        return {name: value for name, value in merged.items() if value is not None}

    def require_valid(self, text):
        """Fails if the command does not accept these settings."""
        directory = tempfile.mkdtemp(dir=self.module.tmpdir)
        with open(os.path.join(directory, "moult.json"), "w", encoding="utf-8") as file:
            file.write(text)
        self.run("status", store=directory)

    def write(self, text):
        descriptor, path = tempfile.mkstemp(dir=self.module.tmpdir)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o644)
        self.module.atomic_move(path, self.settings_file())


def main():
    module = AnsibleModule(
        supports_check_mode=True,
        argument_spec=dict(
            store=dict(type="path", required=True), product=dict(type="str", required=True), feed=dict(type="raw"),
            keys=dict(type="list", elements="str", default=[], no_log=False), threshold=dict(type="int", default=1, no_log=False),
            allow_unsigned=dict(type="bool", default=False), settings=dict(type="dict", default={}),
            executable=dict(type="path", default="moult")))
    store = Store(module)
    if bool(module.params["keys"]) == module.params["allow_unsigned"]:
        module.fail_json(
            msg="Specify the keys that the store trusts (keys), or accept unsigned releases (allow_unsigned: true)."
            + (" Both are given." if module.params["keys"] else ""))
    for key in module.params["keys"]:
        store.decoded(key)
    if os.path.lexists(store.settings_file()):
        # Root does not use a store that another user can change, and neither reads nor replaces files there.
        store.run("status")
    before = store.present()
    present = store.read(before) if before is not None else {}
    wanted = store.wanted(present)
    text = json.dumps(wanted, indent=2, ensure_ascii=False) + "\n"
    changed = before is None or wanted != present
    if changed:
        store.require_valid(text)
        if not module.check_mode:
            store.init()
            store.write(text)
    diff = {"before": before or "", "after": text if changed else before, "before_header": store.settings_file(),
            "after_header": store.settings_file()}
    module.exit_json(changed=changed, settings=wanted, diff=diff)


if __name__ == "__main__":
    main()
