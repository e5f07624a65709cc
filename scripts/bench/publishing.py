"""Times the commands of publishers: build, pack, diff and delta; also the installation of patches."""
import csv, glob, os, random, shutil

from data import EMPTY, database, evolve, pack
from measure import Race, Side, compare, figure, is_wanted, large, middle, moult, options, rounds, shell, size, work


def build():
    rows = 200_000 if options.quick else 1_000_000
    generator = random.Random(3)
    with open(f"{work}/rows.csv", "w", newline="") as file:
        writer = csv.writer(file)
        for number in range(rows):
            writer.writerow([number, f"name {generator.randint(0, rows)}", f"part {number % 60}", generator.random(),
                             generator.randint(0, 9000), "with a comma, here", number % 7, "text that is a bit longer"])
    table = "CREATE TABLE food(id INTEGER PRIMARY KEY, name, part, share REAL, kcal INTEGER, a, b, c);\n"
    indexes = "CREATE INDEX name ON food(name);\nCREATE INDEX part ON food(part, kcal);\n"
    with open(f"{work}/build.sql", "w") as file:
        file.write(f"{table}.mode csv\n.import rows.csv food\n{indexes}")
    with open(f"{work}/rows.csv", newline="") as rows_file, open(f"{work}/inserts.sql", "w") as file:
        file.write(table + "BEGIN;\n")
        for number, row in enumerate(csv.reader(rows_file)):
            if number == rows // 5:
                break
            file.write("INSERT INTO food VALUES({},'{}','{}',{},{},'{}',{},'{}');\n".format(*row))
        file.write("COMMIT;\n" + indexes)
    for job, name, most in ((f"build, {rows:,} rows of CSV", "build", 0.7), (f"build, {rows // 5:,} INSERTs", "inserts", None)):
        compare(job, most, ("moult build", f"{moult} build -q {name}.sql -o built.db"),
                ("the sqlite3 shell", f"sqlite3 other.db < {name}.sql"), "rm -f built.db other.db", 3, memory_most=64)


def pack_and_diff():
    directory = f"m{middle}"
    draft, peer = f"{directory}/draft-1.0.0.json", "tar | zstd -T2"
    job = f"pack, {middle} MB, level 6"
    if is_wanted(job):
        clean = "rm -rf packed packed.tar.zst"
        Race(job, [Side("moult pack", f"{moult} pack -q {draft} -o packed --level 6", clean),
                   Side(peer, f"tar -cf - -C {directory} food.db | zstd -q -f -6 -T2 -o packed.tar.zst", clean)], 3
             ).row("moult pack", peer, 1.05)
        shell(f"""rm -rf packed; {moult} pack -q {draft} -o packed --level 6
                  tar -cf - -C {directory} food.db | zstd -q -f -6 -T2 -o packed.tar.zst""")
        figure(job, peer, size(glob.glob(f"{work}/packed/*.tar.zst")[0]), size("packed.tar.zst"), 1.015)
    shutil.copy(f"{work}/{directory}/food.db", f"{work}/other.db")
    evolve(f"{work}/other.db", 100)
    for most, arguments in ((0.6, ""), (0.2, " --summary")):
        compare(f"diff, {middle} MB, 1 % changed", most, ("moult diff", f"{moult} diff {directory}/food.db other.db"),
                (f"sqldiff{arguments}", f"sqldiff{arguments} {directory}/food.db other.db"), runs=3)


# Other patch programs, each with the size in megabytes of the largest database to try: changed in place, and rebuilt. Larger
# databases take many minutes.
MAKERS = {"zstd -19 --long=31 --patch-from": (60, 60, "zstd -q -f -19 --long=31 --patch-from=old.db {new} -o {out}"),
          "xdelta3 -9": (200, 200, "xdelta3 -9 -f -e -s old.db {new} {out}"),
          "bsdiff": (200, 60, "bsdiff old.db {new} {out}")}


def patches():
    """Measures patches from the previous release, changed in place and rebuilt: their sizes, and the times to make and to
    apply them."""
    for megabytes in [4] if options.quick else [4, 60, 200]:
        if is_wanted(f"patch, {megabytes} MB") or options.only.startswith(f"patch, {megabytes} MB"):
            patch_pairs(megabytes, f"patches{megabytes}")
    if not options.quick and is_wanted(f"patch, {large} MB"):
        large_delta()


def patch_pairs(megabytes, directory):
    os.makedirs(f"{work}/{directory}")
    if os.path.exists(f"{work}/m{megabytes}/food.db"):
        shutil.copy(f"{work}/m{megabytes}/food.db", f"{work}/{directory}/food.db")
    else:
        database(f"{work}/{directory}/food.db", megabytes)
    first = pack(directory, "1.0.0", 1, 3)
    shell(f"tar -xOf {directory}/out/*-1.0.0.tar.zst food.db > {directory}/old.db")
    pairs = []
    for number, how in ((2, "in place"), (3, "rebuilt")):
        version = f"{number}.0.0"
        shutil.copy(f"{work}/{directory}/old.db", f"{work}/{directory}/food.db")
        evolve(f"{work}/{directory}/food.db", 100)
        if number == 3:
            shell(f"cd {directory}; sqlite3 food.db \"VACUUM INTO 'new.db'\"; mv new.db food.db")
        manifest = pack(directory, version, number, 3, arguments=f"--delta-from {first}")
        shell(f"tar -xOf {directory}/out/*-{version}.tar.zst food.db > {directory}/new{number}.db")
        pairs.append((f"patch, {megabytes} MB, 1 % {how}", number, manifest))
    tasks = [(number, peer, f"{number}.{index}", line) for _, number, _ in pairs
             for index, (peer, (*most, line)) in enumerate(MAKERS.items()) if megabytes <= most[number - 2]]
    # Only the sizes of their patches matter, so several programs run at the same time.
    shell("printf '%s\\0' \"$@\" | xargs -0 -P 2 -n 1 bash -euc", arguments=[
        f"cd {directory}; {line.format(new=f'new{number}.db', out=out)} 2>/dev/null" for number, _, out, line in tasks])
    for name, number, manifest in pairs:
        ours = size(glob.glob(f"{work}/{directory}/out/*-{number}.0.0.food.from-1.0.0.patch")[0])
        theirs = {peer: size(f"{directory}/{out}") for of, peer, out, _ in tasks if of == number}
        for peer, count in theirs.items():
            figure(name, peer, ours, count, 1.05 if count == min(theirs.values()) else None)
    for name, number, manifest in pairs:
        apply_patch(name, number, manifest, first, directory, 3 if megabytes > 100 else rounds)


def apply_patch(name, number, manifest, first, directory, runs):
    delta(f"{name}: delta", f"{directory}/old.db", f"{directory}/new{number}.db", 3)
    # The compression level of zstd does not affect how fast it applies a patch.
    shell(f"zstd -q -f -3 --long=31 --patch-from={directory}/old.db {directory}/new{number}.db -o {directory}/{number}.zst")
    shell(f"mkdir -p {directory}/full; cp {directory}/out/*-{number}.0.0.json {directory}/out/*-{number}.0.0.tar.zst {directory}/full")
    ground = f"{EMPTY}; {moult} apply -q {first} --store store"
    race = Race(f"{name}: apply", [
        Side("moult", f"{moult} apply -q {manifest} --store store", ground),
        Side("zstd -d --patch-from, sync", f"zstd -q -d --long=31 --patch-from={directory}/old.db {directory}/{number}.zst -o new/food.db "
             "&& sync new/food.db new", ground),
        Side("moult, from the bundle", f"{moult} apply -q {directory}/full/{os.path.basename(manifest)} --store store", ground)], runs)
    race.row("moult", "zstd -d --patch-from, sync", 1.0)
    race.row("moult", "moult, from the bundle", 1.0)


def delta(job, old, new, runs):
    """Times `moult delta`, whose memory may be at most twice the size of the old file, or 64 MiB."""
    most = max(64, 2 * size(old) / (1 << 20))
    compare(job, 1.0, ("moult delta", f"{moult} delta -q {old} {new} -o x.patch"),
            ("xdelta3 -9", f"xdelta3 -9 -f -e -s {old} {new} x.xdelta"), "rm -f x.patch", runs, memory_most=most)


def large_delta():
    shutil.copy(f"{work}/m{large}/food.db", f"{work}/other.db")
    evolve(f"{work}/other.db", 100)
    delta(f"patch, {large} MB, 1 % in place: delta", f"m{large}/food.db", "other.db", 1)
