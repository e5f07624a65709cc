"""The location of a store: a plain directory, or a separate file system whose power can be cut."""
import os, shutil, subprocess, tempfile, time


class Plain:
    def __init__(self, scratch):
        self.path = tempfile.mkdtemp(dir=scratch, prefix="plain-")

    def sync(self):
        pass


class Mounted:
    """A file system in a file on a loop device."""
    MAKE = {"ext4": ["mkfs.ext4", "-q", "-F", "-m", "0"], "xfs": ["mkfs.xfs", "-q", "-f"]}
    SIZE = {"ext4": 64 << 20, "xfs": 320 << 20}

    def __init__(self, scratch, kind):
        self.path = tempfile.mkdtemp(dir=scratch, prefix=f"{kind}-")
        self.image = self.path + ".image"
        with open(self.image, "wb") as out:
            out.truncate(self.SIZE[kind])
        must(*self.MAKE[kind], self.image)
        must("mount", "-o", "loop", self.image, self.path)

    def sync(self):
        """Writes everything to the disk, before the part that a power cut interrupts."""
        must("sync", "-f", self.path)

    def restart(self):
        """Mounts the file system again after a power cut, with the data that had reached the disk."""
        for _ in range(400):
            must("umount", self.path)
            must("mount", "-o", "loop", self.image, self.path)
            try:
                probe = os.path.join(self.path, ".mounted")
                open(probe, "w").close()
                os.remove(probe)
                return
            except OSError:
                # A step of another trial, which has its own mounts, may keep the file system mounted until it exits.
                time.sleep(0.02)
        raise OSError(f"{self.image} stays shut down")


def why_not(kind):
    """Returns why this machine cannot mount such a file system; None if it can."""
    if os.geteuid() != 0:
        return "only root may mount"
    if not shutil.which(Mounted.MAKE[kind][0]):
        return f"{Mounted.MAKE[kind][0]} is missing"
    if not os.path.exists("/dev/loop-control"):
        return "this machine has no loop devices"
    try:
        with tempfile.TemporaryDirectory() as scratch:
            place = Mounted(scratch, kind)
            must("umount", place.path)
    except (subprocess.CalledProcessError, OSError) as error:
        return f"a file with {kind} cannot be mounted: {error}"
    return None


def must(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def unmount(scratch):
    """Unmounts every file system of a scratch directory."""
    for name in os.listdir(scratch):
        if os.path.ismount(os.path.join(scratch, name)):
            subprocess.run(["umount", os.path.join(scratch, name)], check=False)
