"""Uses the package in a new system: installs, reads, updates, goes back, resets."""

import asyncio
import subprocess

from moult_store import Recovery, Store, VersionError, aio
from moult_store.command import BUNDLED, Command

assert Command().find() == BUNDLED
for version in ["1.0.0", "2.0.0"]:
    subprocess.run([BUNDLED, "pack", "-q", f"drafts/phrasebook-{version}.draft.json", "-o", "releases"], check=True)

with Store("store") as store:
    assert store.apply("releases/phrasebook-1.0.0.json", create=True).changed
    with store.connection as connection:
        connection.execute("INSERT INTO note (text) VALUES ('mine')")
    del connection
    events = store.events()
    store.apply("releases/phrasebook-2.0.0.json")
    assert events.next(5).databases == ("phrases",)
    assert store.connection.execute("SELECT count(*), (SELECT text FROM note) FROM phrases.phrase").fetchone() == (30, "mine")
    try:
        store.apply("releases/phrasebook-1.0.0.json")
    except VersionError as error:
        print(error.code, error.what)
    store.rollback(reason="a test")
    assert store.verify(deep=True).sound and store.release == "1.0.0"
    open(store.path_of("notes"), "w").close()
with Store("store").open("notes", recovering=Recovery.SET_USER_DATA_ASIDE) as connection:
    assert connection.recovered.why
asyncio.run(aio.Store("store").status())
print("the package works")
