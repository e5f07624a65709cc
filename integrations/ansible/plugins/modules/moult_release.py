#!/usr/bin/python
"""Installs a release in a moult store."""

DOCUMENTATION = r"""
module: moult_release
short_description: Install a release in a moult store
description:
  - Runs C(moult apply), which installs a release completely or not at all. If it is already installed, nothing changes.
  - In check mode it runs C(moult plan), which does not change the store.
  - In diff mode the lines of the plan are shown.
options:
  store:
    description: The directory with the databases.
    type: path
    required: true
  manifest:
    description:
      - The manifest of the release on the host, with its bundle in the same directory. The default is the feed of the store.
      - The module fails if another user, except root, can change the file.
    type: path
  product:
    description: The product of the store. If it is set, a missing store is created.
    type: str
  keys:
    description:
      - The public keys that sign the releases, each as the last line of its C(.pub) file. A new store gets them, and
        the module fails if an existing store trusts other keys or none. Whole keys are compared, not their IDs.
      - Required unless O(allow_unsigned=true).
    type: list
    elements: str
    default: []
  allow_unsigned:
    description: Accept unsigned releases. Anyone who can change them during the transfer can then install other data.
    type: bool
    default: false
  follow:
    description: Releases to accept. V(newer) accepts only newer versions, V(match) also older ones. The default is the setting of the store.
    type: str
    choices: [newer, match]
  app:
    description: The app's version, if the release requires one.
    type: str
  allow_downgrade:
    description: Accept an older release as well.
    type: bool
    default: false
  wait:
    description: Seconds to wait for another update to finish.
    type: int
    default: 60
  executable:
    description: The moult command to run. The module fails if another user, except root, can change it.
    type: path
    default: moult
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
"""

EXAMPLES = r"""
- moult.store.moult_release:
    store: /var/lib/app
    manifest: /srv/releases/app-2.1.0.json
    product: org.example.app
    keys: [RWQyPRdtNqG5Si6tnim0/KUZ97yVcba5a/aVOkIXeW3td3d3sOpUmEzH]
"""

RETURN = r"""
version: {description: The installed version; in check mode, the version that would be installed., type: str, returned: success}
generation: {description: The generation of that version., type: str, returned: success}
plan: {description: The lines of the plan., type: list, elements: str, returned: in check or diff mode}
outcome:
  description: The name of the exit status, V(failed), V(refused), V(stale), V(undone), V(stuck), V(usage) or V(busy).
  type: str
  returned: failure
code: {description: The code of the error., type: str, returned: failure}
rc: {description: The exit status., type: int, returned: failure}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.moult.store.plugins.module_utils.command import Moult, ids


class Release(Moult):
    def __init__(self, module):
        super().__init__(module)
        if self.parameters["manifest"]:
            self.require_own(self.parameters["manifest"], "read")

    def prove_trust(self):
        """Fails if keys are given and the store does not trust exactly these keys."""
        if not self.parameters["keys"]:
            return
        wanted = {self.decoded(key) for key in self.parameters["keys"]}
        status = self.run("status")[1][0]
        if status.get("trusted") and "trustedKeys" not in status:
            self.module.fail_json(msg=f"{self.executable} is too old: it does not say which keys the store trusts. Install a newer moult.")
        # The ID of a key is a number that anyone can give to another key.
        trusted = {self.decoded(key) for key in status.get("trustedKeys", [])}
        if trusted != wanted:
            same = " (the keys differ, although their IDs are equal)" if ids(trusted) == ids(wanted) else ""
            self.module.fail_json(
                msg=f"{self.parameters['store']} trusts {ids(trusted) or 'no key'}, but the given keys are "
                f"{ids(wanted)}{same}. Change \"keys\" in {self.parameters['store']}/moult.json.")

    def release(self):
        words = [self.parameters["manifest"]] if self.parameters["manifest"] else []
        words += [word for key in ("follow", "app") if self.parameters[key] for word in ("--" + key, self.parameters[key])]
        if self.parameters["allow_unsigned"] and not self.parameters["manifest"]:
            words.append("--allow-unsigned")
        return words + (["--allow-downgrade"] if self.parameters["allow_downgrade"] else [])

    def installed(self):
        """Returns the installed release, which the plan of a feed without new releases does not contain."""
        status = self.run("status")[1][0]
        names = {"version": "installed", "generation": "generation"}
        return {name: status[key] for name, key in names.items() if key in status}

    def plan(self):
        """Returns whether there are changes, the plan, and the lines that moult prints for it."""
        status, (plan,) = self.run("plan", *self.release(), fine=(0, 2))
        return status == 2, plan, self.run("plan", *self.release(), fine=(0, 2), as_json=False)[1]


def main():
    module = AnsibleModule(
        supports_check_mode=True,
        argument_spec=dict(
            store=dict(type="path", required=True), manifest=dict(type="path"), product=dict(type="str"),
            keys=dict(type="list", elements="str", default=[], no_log=False),
            allow_unsigned=dict(type="bool", default=False),
            follow=dict(type="str", choices=["newer", "match"]), app=dict(type="str"),
            allow_downgrade=dict(type="bool", default=False), wait=dict(type="int", default=60),
            executable=dict(type="path", default="moult")))
    moult, result = Release(module), {"changed": False}

    if bool(module.params["keys"]) == module.params["allow_unsigned"]:
        module.fail_json(
            msg="Specify the keys that sign the releases (keys), or accept unsigned releases "
            "(allow_unsigned: true)." + (" Both are given." if module.params["keys"] else ""))
    made = bool(module.params["product"]) and moult.init()
    if made and module.check_mode:
        # Without a store, moult cannot make a plan.
        lines = [f"+ {module.params['store']}: a store for {module.params['product']}, and its first release"]
        module.exit_json(changed=True, plan=lines, diff={"prepared": "\n".join(lines) + "\n"})
    moult.prove_trust()
    if module.check_mode or module._diff:
        changes, plan, lines = moult.plan()
        result = {"changed": changes or made, "plan": lines, **(plan.get("to") or moult.installed())}
        if changes:
            result["diff"] = {"prepared": "\n".join(lines) + "\n"}
    if not module.check_mode:
        _, events = moult.run("apply", *moult.release(), "--wait", str(module.params["wait"]))
        end = events[-1]
        result |= {"changed": end["changed"] or made, "version": end["version"], "generation": end["generation"]}
    module.exit_json(**result)


if __name__ == "__main__":
    main()
