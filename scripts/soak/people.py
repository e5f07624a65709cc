"""The other processes that use the store: readers, writers, and `moult watch`."""
import json, os, sqlite3, subprocess, sys

READERS = ["connection", "connection", "query", "shell", "moult", "path"]
WRITERS = ["pantry.db", "pantry.db", "user.db"]


class People:
    def __init__(self, moult, store, directory):
        self.store = store
        os.makedirs(directory)
        program = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "person.py")]
        self.logs, self.processes = [], []
        for number, words in enumerate([["read", how] for how in READERS] + [["write", file] for file in WRITERS]):
            self.logs.append(os.path.join(directory, f"{number}.json"))
            self.processes.append(subprocess.Popen([*program, moult, store, self.logs[-1], str(number), *words], stdin=subprocess.PIPE))
        self.watch = subprocess.Popen([moult, "watch", "--store", store], stdout=subprocess.DEVNULL)

    def sizes(self):
        """Returns the memory (KiB) and the number of descriptors of `moult watch`."""
        status = open(f"/proc/{self.watch.pid}/status").read()
        return int(status.split("VmRSS:")[1].split()[0]), len(os.listdir(f"/proc/{self.watch.pid}/fd"))

    def end(self):
        """Ends all processes; returns the number of reads, the faults, the failures on a full disk, and the acknowledged rows."""
        for process in self.processes:
            process.stdin.close()
        faults = [f"the process {self.processes[i].args[6:]} exited with {status}" for i, status in
                  enumerate(process.wait() for process in self.processes) if status]
        self.watch.terminate()
        self.watch.wait()
        reads, full, acknowledged = 0, 0, {}
        for log in self.logs:
            said = json.load(open(log))
            reads, full, faults = reads + said["reads"], full + said["full"], faults + said["faults"]
            for slot, values in said["rows"].items():
                acknowledged[said["file"], int(slot)] = values
        return reads, faults, full, acknowledged

    def lost(self, acknowledged):
        """Returns the rows that have neither the last acknowledged value nor a value that may have been written after it."""
        found = {}
        for file, sql in {"pantry.db": "SELECT id, CAST(name AS INTEGER) FROM food WHERE mine = 1", "user.db": "SELECT slot, count FROM note"}.items():
            connection = sqlite3.connect(os.path.join(self.store, file))
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], f"{file} is damaged"
            found |= {(file, slot): value for slot, value in connection.execute(sql)}
            connection.close()
        return [f"{key} has {found.get(key)}, but {values} was written" for key, values in acknowledged.items() if found.get(key) not in values]
