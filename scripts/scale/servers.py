"""Servers on free ports of this machine, their logs, and releases for them to serve."""
import os, pathlib, shlex, socket, subprocess, sys, time

sys.path[1:1] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
from harness import releases

NGINX = "/usr/sbin/nginx"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """A program that listens on a port; `stop` ends it."""

    def __init__(self, port, words, log):
        self.port = port
        self.process = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while True:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    return
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{words[0]} does not listen on port {port}")
            time.sleep(0.05)

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Nginx(Server):
    """Serves a directory, and logs the size of each response."""

    def __init__(self, work, directory):
        self.work = pathlib.Path(work, "nginx")
        self.work.mkdir()
        port = free_port()
        temporary = "".join(f"{name}_temp_path {self.work}/{name}; " for name in
                            ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
        (self.work / "conf").write_text(f"""
            {"user root;" if os.geteuid() == 0 else ""}
            daemon off; worker_processes 2; pid {self.work}/pid; error_log {self.work}/errors;
            events {{ worker_connections 4096; }}
            http {{
              log_format short '$request_method $uri $status $bytes_sent';
              access_log {self.work}/access short; {temporary}
              server {{ listen 127.0.0.1:{port} backlog=4096; root {directory}; }}
            }}""")
        super().__init__(port, [NGINX, "-p", self.work, "-e", self.work / "errors", "-c", self.work / "conf"],
                         subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{port}/feed.json"

    def requests(self):
        """Returns (method, path, status, bytes) of each request so far."""
        lines = (self.work / "access").read_text().splitlines()
        return [(method, path, int(status), int(size)) for method, path, status, size in map(str.split, lines)]


class Registry(Server):
    """Debian's container registry."""

    def __init__(self, work, name="registry"):
        self.work = pathlib.Path(work, name)
        self.work.mkdir()
        port = free_port()
        (self.work / "config").write_text(
            f"version: 0.1\nlog: {{accesslog: {{disabled: true}}, level: error}}\n"
            f"storage: {{filesystem: {{rootdirectory: {self.work}/data, maxthreads: 100}}, delete: {{enabled: true}}}}\n"
            f'http: {{addr: "127.0.0.1:{port}", secret: x}}\n')
        super().__init__(port, ["docker-registry", "serve", self.work / "config"], open(self.work / "log", "w"))
        self.host = f"127.0.0.1:{port}"
        self.url = f"oci+http://{self.host}/team/data"


class Publisher:
    """A directory with a key and releases of random content."""

    def __init__(self, moult, work):
        self.moult, self.work = os.path.abspath(moult), pathlib.Path(work)
        self.run("keygen", "-q", "--no-password", "release")

    def run(self, *words, status=0):
        ended = subprocess.run([self.moult, *map(str, words)], cwd=self.work, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        if ended.returncode != status:
            raise SystemExit(f"moult {shlex.join(map(str, words))} exited with {ended.returncode}: {ended.stderr}{ended.stdout}")
        return ended.stdout

    def pack(self, version, sequence, kilobytes):
        """Packs a release; returns the path of its manifest."""
        folder = self.work / version
        folder.mkdir()
        releases.database(
            str(folder / "data.db"),
            f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; CREATE TABLE data(id INTEGER PRIMARY KEY, noise BLOB);"
            f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {max(1, kilobytes // 4)}) "
            f"INSERT INTO data SELECT i, randomblob(4000) FROM n;")
        draft = releases.draft("org.example.data", version, sequence, {"data": {"kind": "reference", "source": "data.db"}})
        releases.pack(self.moult, str(folder), draft, str(self.work / "releases"), level=None)
        (folder / "data.db").unlink()
        return self.work / "releases" / f"data-{version}.json"
