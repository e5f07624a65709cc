"""Other programs that update a database, each used as in its manual; programs that are not installed are skipped."""
import atexit, functools, os, shutil, subprocess, time

from data import EMPTY
from measure import Side, shell, size, work

KEY = ("openssl req -x509 -newkey rsa:4096 -nodes -keyout peer.key -out peer.pem -subj /CN=bench -days 30 "
       "-addext extendedKeyUsage=emailProtection,codeSigning 2>/dev/null")


def peers(directory, archive):
    """Returns a side for each program, all of which install the database in a directory."""
    sides = [grype(directory, archive), trivy(directory)]
    for program, make in (("casync", casync), ("ostree", ostree), ("swupdate", swupdate), ("rauc", rauc)):
        if not shutil.which(program):
            continue
        try:
            side = make(directory)
            for line in (side.before, side.line):
                shell(f"{{ {line}; }} >/dev/null 2>&1")
            sides.append(side)
        except (subprocess.CalledProcessError, OSError):
            # For example, rauc needs a loop device, which a container does not have.
            print(f"{program}: does not run here", flush=True)
    return sides


def digest_of(path):
    return subprocess.check_output(["sha256sum", f"{work}/{path}"], text=True).split()[0]


def grype(directory, archive):
    """Works like grype (v6): checks the digest of the archive, unpacks it into a new directory, computes a digest of the
    database for later starts, and replaces the old directory."""
    hasher = "xxhsum -q -H1" if shutil.which("xxhsum") else "cksum"
    return Side("as grype does", f"echo '{digest_of(archive)}  {archive}' | sha256sum --quiet -c && bsdtar -xf {archive} -C new "
                f"&& {hasher} new/food.db > new/import.json && rm -rf live && mv -T new live", EMPTY)


def trivy(directory):
    """Works like trivy: checks the digest of an image layer, and unpacks the layer over the old database."""
    layer = f"{directory}/layer.tar.gz"
    shell(f"test -e {layer} || tar -C {directory} -czf {layer} food.db")
    return Side("as trivy does", f"echo '{digest_of(layer)}  {layer}' | sha256sum --quiet -c && tar -xzf {layer} -C live && echo > live/metadata.json",
                EMPTY)


def casync(directory):
    shell(f"cd {directory}; test -e food.caibx || casync make --store=chunks food.caibx food.db >/dev/null")
    return Side("casync extract, sync", f"(cd {directory} && casync extract --store=chunks food.caibx ../new/food.db && sync ../new/food.db)", EMPTY)


def ostree(directory):
    shell(f"""cd {directory}; test -e tree || {{ mkdir tree; cp food.db tree; ostree --repo=server init --mode=archive
              ostree --repo=server commit -b bench --tree=dir=tree >/dev/null; }}""")
    return Side("ostree pull-local, checkout", f"(cd {directory} && ostree --repo=client pull-local server bench && "
                "ostree --repo=client checkout -U bench out)",
                f"cd {directory}; rm -rf client out; ostree --repo=client init --mode=bare-user")


def swupdate(directory):
    """Installs a signed image into a file, as is usual with swupdate."""
    path = f"{directory}/swu"
    os.makedirs(f"{work}/{path}", exist_ok=True)
    with open(f"{work}/{path}/sw-description", "w") as file:
        file.write('software = {{ version = "1.0"; hardware-compatibility = [ "1.0" ]; files: ( {{ filename = "food.db"; '
                   'path = "{}/new/food.db"; sha256 = "{}"; }} ); }}\n'.format(work, digest_of(f"{directory}/food.db")))
    shell(f"test -e peer.pem || {KEY}")
    shell(f"""cd {path}; ln -f ../food.db food.db
              openssl cms -sign -in sw-description -out sw-description.sig -signer ../../peer.pem -inkey ../../peer.key -outform DER -nosmimecap -binary
              printf 'sw-description\\nsw-description.sig\\nfood.db\\n' | cpio -o -H crc -L --quiet > ../food.swu""")
    return Side("swupdate -i, sync", f"swupdate -k peer.pem -H bench:1.0 -i {directory}/food.swu && sync new/food.db", EMPTY)


def rauc(directory):
    """Installs a signed bundle with one image into a slot that is a file. The CPU time of the rauc service is not counted."""
    path = f"{directory}/rauc"
    shell(f"test -e peer.pem || {KEY}")
    os.makedirs(f"{work}/{path}", exist_ok=True)
    with open(f"{work}/{path}/manifest.raucm", "w") as file:
        file.write("[update]\ncompatible=bench\nversion=1\n\n[bundle]\nformat=plain\n\n[image.rootfs]\nfilename=food.img\n")
    shell(f"ln -f {directory}/food.db {path}/food.img; rm -f {directory}/food.raucb; rauc --cert peer.pem --key peer.key bundle {path} {directory}/food.raucb")
    start_rauc()
    return Side("rauc install", f"rauc install {directory}/food.raucb",
                f"rm -f slot.img; truncate -s {size(f'{directory}/food.db')} slot.img")


@functools.cache
def start_rauc():
    """Starts rauc's service on a private bus, not on the system bus."""
    with open(f"{work}/rauc.conf", "w") as file:
        file.write(f"[system]\ncompatible=bench\nbootloader=noop\nstatusfile={work}/rauc.status\n\n[keyring]\npath={work}/peer.pem\n\n"
                   f"[slot.rootfs.0]\ndevice=/dev/null\ntype=raw\nbootname=A\n\n"
                   f"[slot.rootfs.1]\ndevice={work}/slot.img\ntype=raw\nbootname=B\n")
    bus = subprocess.Popen(["dbus-daemon", "--session", "--nofork", "--print-address"], stdout=subprocess.PIPE, text=True)
    os.environ |= {"DBUS_SYSTEM_BUS_ADDRESS": bus.stdout.readline().strip(), "DBUS_STARTER_BUS_TYPE": "system"}
    shell("truncate -s 1M slot.img")
    service = subprocess.Popen(["rauc", "-c", f"{work}/rauc.conf", "--override-boot-slot=A", "service"], cwd=work,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for process in (bus, service):
        atexit.register(process.terminate)
    for _ in range(100):
        if subprocess.run(["rauc", "status"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            return
        time.sleep(0.05)
