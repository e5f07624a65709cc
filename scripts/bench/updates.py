"""Times updates of a read-only database: complete, signed, with bundles of other tools, with nothing to do; and rollbacks."""
import glob, json, os, shutil, sqlite3, subprocess

from data import EMPTY, SCRIPT, database, evolve, larger, make_empty, pack, script, shared_releases
from measure import Race, Side, compare, figure, is_wanted, large, middle, moult, options, rounds, runs_for, shell, size, sizes, small, work
from peers import peers
from harness import releases

LEVEL = 12


def make_databases():
    for megabytes in sizes:
        os.makedirs(f"{work}/m{megabytes}")
        if megabytes > 500:
            larger(f"{work}/m{megabytes}/food.db", f"{work}/m{middle}/food.db", megabytes // middle)
        else:
            database(f"{work}/m{megabytes}/food.db", megabytes)


def first_release(directory, level):
    """Makes a first release, with and without a signature, and an archive of the same bytes for the other tools; returns
    all paths."""
    manifest = pack(directory, "1.0.0", 1, level, out=f"out{level}")
    # The archive contains the database as it is in the bundle.
    shell(f"""cd {directory}; tar -xf out{level}/*-1.0.0.tar.zst; sha256sum food.db > sums; tar -cf food.tar food.db
              zstd -q -f -{level} -T2 food.tar -o food{level}.tar.zst; rm food.tar""")
    shutil.copytree(f"{work}/{directory}/out{level}", f"{work}/{directory}/signed{level}", copy_function=os.link)
    signed = manifest.replace(f"out{level}", f"signed{level}")
    shell(f"test -e bench.key || {moult} keygen -q --no-password bench; {moult} sign -q -k bench.key {signed}")
    return manifest, signed, f"{directory}/food{level}.tar.zst"


def full_update(megabytes, level=LEVEL):
    """Installs a release that this machine checks, and a signed one that the publisher has checked; the other tools check
    the same bytes as far as they can."""
    name = f"full update, {megabytes} MB" + (f", level {level}" if level != LEVEL else "")
    directory = f"m{megabytes}"
    manifest, signed, archive = first_release(directory, level)
    if not is_wanted(name):
        return
    unpack = f"bsdtar -xf {archive} -C new"
    is_usual = level == LEVEL
    sides = [Side("moult", f"{moult} apply -q {manifest} --store store", EMPTY),
             Side("moult, signed", f"{moult} apply -q {signed} --store store", make_empty("--key bench.pub")),
             Side("bsdtar -xf", unpack, EMPTY), Side("bsdtar -xf, sync", f"{unpack} && sync new/food.db", EMPTY)]
    others = peers(directory, archive) if is_usual else []
    if is_usual:
        sides.append(Side(SCRIPT, script(unpack, f"{directory}/sums"), EMPTY))
    race = Race(name, sides + others, runs_for(megabytes))
    if is_usual:
        race.row("moult", SCRIPT, 0.7 if megabytes == small else 0.45, cpu_most=None if megabytes == small else 0.65, memory_most=64)
    if megabytes != small:
        race.row("moult", "bsdtar -xf", 1.0 if level == 19 else None)
        race.row("moult", "bsdtar -xf, sync", 1.2 if is_usual else None)
        race.row("moult, signed", "bsdtar -xf, sync", 0.85 if is_usual else None, job=f"{name}, signed")
    for side in others:
        race.row("moult", side.name)


def foreign():
    """Installs bundles that other tools packed."""
    directory = f"m{middle}"
    shell(f"cd {directory}; zip -q -3 food.zip food.db; cp food{LEVEL}.tar.zst food.tar.zst")
    for ending in ("tar.zst", "zip"):
        archive = f"{directory}/food.{ending}"
        with open(glob.glob(f"{work}/{directory}/out{LEVEL}/*1.0.0.json")[0]) as file:
            manifest = json.load(file)
        digest = subprocess.check_output(["sha256sum", f"{work}/{archive}"], text=True).split()[0]
        manifest["bundle"] = {"file": f"food.{ending}", "size": size(archive), "sha256": digest}
        with open(f"{work}/{directory}/foreign-{ending}.json", "w") as file:
            json.dump(manifest, file)
        compare(f"full update, {middle} MB, foreign {ending}", 0.7,
                ("moult", f"{moult} apply -q {directory}/foreign-{ending}.json --store store"),
                (SCRIPT, script(f"bsdtar -xf {archive} -C new", f"{directory}/sums")), EMPTY)


def full_check():
    directory = f"m{middle}"
    job = f"verify full, {middle} MB"
    full = pack(directory, "1.0.1", 1, LEVEL, verify="full")
    alone = ("pragma integrity_check alone", f"sqlite3 {directory}/food.db 'pragma integrity_check'")
    compare(f"{job}: all of apply", None, ("moult", f"{moult} apply -q {full} --store store"), alone, EMPTY, 3)
    if is_wanted(job):
        shell(f"{EMPTY}; {moult} apply -q {full} --store store")
    compare(f"{job}: verify --deep", 0.25, ("moult", f"{moult} verify --deep -q --store store"), alone, runs=3)


def several_tables():
    """Installs the same rows in four tables, because most databases have several tables."""
    job = f"full update, {middle} MB, four tables"
    if not is_wanted(job):
        return
    shell("mkdir -p tables")
    connection = sqlite3.connect(f"{work}/tables/food.db", isolation_level=None)
    connection.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; ATTACH '{work}/m{middle}/food.db' AS source;")
    for number in range(4):
        connection.executescript(f"""
            CREATE TABLE food{number}(id INTEGER PRIMARY KEY, name TEXT NOT NULL, part TEXT, kcal REAL, note TEXT);
            INSERT INTO food{number} SELECT * FROM source.food WHERE id % 4 = {number} ORDER BY id;
            CREATE INDEX name{number} ON food{number}(name); CREATE INDEX part{number} ON food{number}(part, kcal);""")
    connection.close()
    manifest, _, archive = first_release("tables", LEVEL)
    unpack = f"bsdtar -xf {archive} -C new"
    race = Race(job, [Side("moult", f"{moult} apply -q {manifest} --store store", EMPTY), Side(SCRIPT, script(unpack, "tables/sums"), EMPTY),
                      Side("bsdtar -xf, sync", f"{unpack} && sync new/food.db", EMPTY)])
    race.row("moult", SCRIPT, 0.45)
    race.row("moult", "bsdtar -xf, sync", 1.2)


def nothing_to_do():
    manifest = f"m{small}/out{LEVEL}/bench-1.0.0.json"
    shell(f"{EMPTY}; {moult} apply -q {manifest} --store store")
    start = ("sqlite3 x.db 'pragma user_version'", f"sqlite3 m{small}/food.db 'pragma user_version'")
    for name, line, most in (("moult --version", "--version", None), ("apply with nothing to do", f"apply -q {manifest} --store store", 1.5),
                             ("status", "status --store store", 1.5)):
        compare(name, most, (name, f"{moult} {line}"), start, runs=30)


def plans():
    """Times plans, which read neither the bundle nor the database, so that they take the same time for all sizes."""
    for megabytes in (small, large):
        job = f"plan, {megabytes} MB"
        if is_wanted(job):
            manifest = f"m{megabytes}/out{LEVEL}/bench-1.0.0.json"
            Race(job, [Side("moult", f"{moult} plan {manifest} --store store", EMPTY)]).alone("moult", 20)


def plans_of_many():
    """Compares plans with the update of many shared databases of 1 MB: a plan reads no bundle, and a deep plan is an update without the
    decision."""
    races = {}
    for count in (4, 48) if options.quick else (4, 16, 48):
        job = f"{count} shared databases"
        if not is_wanted(f"plan, {job}"):
            continue
        directory = f"many{count}"
        first, second = shared_releases(directory, count)
        shell(f"{moult} init -q {directory}/store --product org.example.bench")
        ground = f"{moult} apply -q --follow match {first} --store {directory}/store"
        races[count] = race = Race(job, [
            Side("apply", f"{moult} apply -q {second} --store {directory}/store", ground),
            Side("plan", f"{moult} plan {second} --store {directory}/store", ground),
            Side("plan --deep", f"{moult} plan --deep {second} --store {directory}/store", ground)])
        race.row("plan", "apply", cpu_most=0.1, job=f"plan, {job}")
        race.row("plan --deep", "apply", cpu_most=1.1, job=f"plan --deep, {job}")
    if 48 in races and 4 in races:
        figure("plan --deep, 48 databases against 4, µs of CPU", "4 databases", *(
            round(races[count].median["plan --deep"][1] * 1e6) for count in (48, 4)), 13)


def in_place():
    for megabytes in (small, large):
        job = f"first start in place, {megabytes} MB"
        if not is_wanted(job):
            continue
        os.makedirs(f"{work}/place{megabytes}", exist_ok=True)
        shell(f"cp m{megabytes}/food.db place{megabytes}/food.db")
        manifest = pack(f"place{megabytes}", "1.0.0", 1, 1, place="in-place")
        Race(job, [Side("moult", f"{moult} apply -q {manifest} --store store", EMPTY)]).alone("moult", 20)


def rollback():
    """Times rollbacks. This runs last, because it changes the databases."""
    for megabytes in (small, large):
        directory = f"m{megabytes}"
        if not is_wanted(f"rollback, {megabytes} MB"):
            continue
        shell(f"{EMPTY}; {moult} apply -q {directory}/out{LEVEL}/bench-1.0.0.json --store store")
        evolve(f"{work}/{directory}/food.db", 100)
        second = pack(directory, "2.0.0", 2, 1)
        # A rollback puts the release that it replaces on hold.
        ground = f"{moult} unhold --all -q --store store || :; {moult} apply -q {second} --store store; echo > live/a"
        compare(f"rollback, {megabytes} MB", 5, ("moult rollback", f"{moult} rollback -q --store store"),
                ("mv and sync of the directory", "mv live/a live/b && sync live && mv live/b live/a"), ground)


def shared():
    """Replaces a database that the app writes to, without losing a row: with this moult and with an earlier moult."""
    if not options.before or not is_wanted("shared update"):
        return
    other = os.path.abspath(options.before)
    directory = "shared"
    os.makedirs(f"{work}/{directory}")
    shutil.copy(f"{work}/m{middle}/food.db", f"{work}/{directory}/food.db")
    fields = {"kind": "shared", "path": "food.db", "preserve": []}
    first = pack(directory, "1.0.0", 1, 3, **fields)
    evolve(f"{work}/{directory}/food.db", 100)
    second = pack(directory, "2.0.0", 2, 3, **fields)
    ground = "; ".join(
        [f"chmod -R u+w {store}; rm -rf {store}; {each} init -q {store} --product org.example.bench; {each} apply -q {first} --store {store}"
         for each, store in ((moult, "ours"), (other, "theirs"))])
    compare(f"shared update, {middle} MB", 1.1, ("moult apply", f"{moult} apply -q {second} --store ours"),
            ("the moult before", f"{other} apply -q {second} --store theirs"), f"mkdir -p ours theirs; {ground}", rounds)
