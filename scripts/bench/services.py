"""Readers during a live replacement, and releases in a container registry."""
import contextlib, multiprocessing, os, random, shutil, socket, sqlite3, subprocess, time, urllib.request

from data import evolve, pack
from measure import Race, Side, is_wanted, keep, middle, moult, options, shell, work

READERS = 8


def readers():
    """Times a point query by eight readers, in an idle store and while a release replaces the file that they read."""
    job = f"readers during a live replacement, {middle} MB: p99 of a query"
    if not is_wanted(job):
        return
    os.makedirs(f"{work}/live-readers")
    shutil.copy(f"{work}/m{middle}/food.db", f"{work}/live-readers/food.db")
    fields = {"kind": "shared", "path": "food.db", "preserve": []}
    first = pack("live-readers", "1.0.0", 1, 3, **fields)
    evolve(f"{work}/live-readers/food.db", 100)
    second = pack("live-readers", "2.0.0", 2, 3, **fields)
    shell(f"rm -rf readers; {moult} init -q readers --product org.example.bench; {moult} apply -q {first} --store readers; "
          "sqlite3 readers/food.db 'PRAGMA journal_mode=WAL'")
    calm = p99(lambda: time.sleep(1 if options.quick else 3))
    busy = p99(lambda: shell(f"{moult} apply -q {second} --store readers"))
    keep({"job": job, "against": "the same at rest", "wall": (busy, calm), "cpu": (0, 0), "ratio": busy / calm, "memory": (0, 0), "at most": 3})


def p99(body):
    context = multiprocessing.get_context("fork")
    stop, pipes, children = context.Event(), [], []
    for number in range(READERS):
        ours, theirs = context.Pipe()
        child = context.Process(target=read, args=(number, stop, theirs))
        child.start()
        pipes.append(ours)
        children.append(child)
    for pipe in pipes:
        pipe.recv()
    body()
    stop.set()
    taken = sorted(value for pipe in pipes for value in pipe.recv())
    for child in children:
        child.join()
        if child.exitcode:
            raise SystemExit("failed: a reader got an error")
    return taken[len(taken) * 99 // 100]


def read(number, stop, pipe):
    connection = sqlite3.connect(f"file:{work}/readers/food.db?mode=ro", uri=True, timeout=60, isolation_level=None)
    generator = random.Random(number)
    rows = connection.execute("SELECT max(id) FROM food").fetchone()[0]
    pipe.send("ready")
    taken = []
    while not stop.is_set():
        start = time.perf_counter()
        connection.execute("SELECT name FROM food WHERE id = ?", (generator.randint(0, rows),)).fetchone()
        taken.append(time.perf_counter() - start)
        # Pauses like an app, so that the readers do not keep every core busy.
        time.sleep(0.001)
    pipe.send(taken)


@contextlib.contextmanager
def registry():
    """Runs Debian's container registry on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with open(f"{work}/registry.yml", "w") as file:
        file.write(f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {work}/registry}}}}\n"
                   f"http: {{addr: '127.0.0.1:{port}', secret: x}}\n")
    server = subprocess.Popen(["docker-registry", "serve", f"{work}/registry.yml"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/").close()
                break
            time.sleep(0.05)
        yield f"localhost:{port}"
    finally:
        server.terminate()
        server.wait()


def registries():
    """Compares publishing to a registry and installing from it with `skopeo copy` of the same blobs between the registry
    and a directory."""
    job = f"registry, {middle} MB"
    if not is_wanted(job) or not shutil.which("docker-registry") or not shutil.which("skopeo"):
        return
    manifest = f"m{middle}/signed12/bench-1.0.0.json"
    with registry() as host:
        # Each run uses a new repository, because otherwise the blobs would already exist.
        turn = "echo $(($(cat turn) + 1)) > turn"
        publish = f"{moult} publish -q oci+http://{host}/ours$(cat turn) {manifest} -k bench.key"
        shell(f"echo 1 > turn; {publish}; echo {host}/ours1 > source; skopeo copy -q --src-tls-verify=false docker://{host}/ours1:1.0.0 dir:image")
        push = Race(f"{job}: push", [
            Side("moult publish", f"({publish})", turn),
            Side("skopeo copy", f"(skopeo copy -q --dest-tls-verify=false dir:image docker://{host}/theirs$(cat turn):1.0.0)", turn)], 3)
        push.row("moult publish", "skopeo copy", 1.1)
        store = ("chmod -R u+w pulled 2>/dev/null || :; rm -rf pulled image2; "
                 f"{moult} init -q pulled --product org.example.bench --key bench.pub --feed oci+http://{host}/ours1")
        pull = Race(f"{job}: pull", [
            Side("moult apply: fetch and install", f"{moult} apply -q --store pulled", store),
            Side("skopeo copy", f"skopeo copy -q --src-tls-verify=false docker://{host}/ours1:1.0.0 dir:image2", store)], 3)
        pull.row("moult apply: fetch and install", "skopeo copy", 1.1)
