import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Updates by patches: a store chooses the smallest download, and uses the bundle if a patch fails in any way.
@Suite(.tags(.thorough)) struct FeedPatchTests {
    let patches: PatchBench
    var bench: Bench { patches.bench }

    init() throws { patches = try PatchBench() }

    /// Describes the download in a plan: the numbers of patches and of reused members, and whether the bundle is
    /// needed.
    private func way(to version: String) throws -> String {
        try patches.json(
            "moult plan --json \(patches.manifest(version)) --store store",
            "sum(len(r[\"patches\"]) for r in m.get(\"reuse\", [])), len(m.get(\"reuse\", [])), \"bundle\" in m"
        )
    }

    @Test(arguments: [false, true])
    func `a release is installed from its patch`(rebuilt: Bool) throws {
        try patches.release("1.0.0", sequence: 1)
        try patches.release("2.0.0", sequence: 2, from: ["1.0.0"], rebuilt: rebuilt)
        try patches.store(with: "1.0.0")
        #expect(try way(to: "2.0.0") == "1 2 False")
        // The bundle is removed, so the update has to use the patch.
        try bench.must("rm rel/test-2.0.0.tar.zst")
        let told = try bench.must("moult plan \(patches.manifest("2.0.0")) --store store", status: 2)
        #expect(told.contains("instead of the bundle") && told.contains("by 1 patch of"))
        #expect(told.contains("unchanged, the file of 1.0.0"))
        try bench.must(
            "moult apply -q \(patches.manifest("2.0.0")) --store store && moult verify -q --deep --store store")
        #expect(try patches.has("2.0.0"))
        try bench.must("moult rollback -q --store store && moult verify -q --deep --store store")
        #expect(try patches.has("1.0.0"))
    }

    /// Patches of two databases are at most a twentieth larger than those of the zstd program.
    @Test(arguments: [false, true])
    func `patches are as small as those of the zstd program`(rebuilt: Bool) throws {
        try patches.release("1.0.0", sequence: 1)
        try patches.release("2.0.0", sequence: 2, rebuilt: rebuilt)
        let size = try patches.json("moult delta 1.0.0.food 2.0.0.food -o x.patch --json", "m[\"size\"]")
        try bench.must("zstd -q -19 --long=31 --patch-from=1.0.0.food 2.0.0.food -o x.zst")
        let (ours, theirs) = (Int(size) ?? 0, try Files.facts(bench.path("x.zst"))?.size ?? 0)
        #expect(ours > 0 && Double(ours) <= 1.05 * Double(theirs), "\(ours) against \(theirs)")
    }

    @Test func `a store applies several patches in a row`() throws {
        try patches.release("1.0.0", sequence: 1)
        try patches.release("2.0.0", sequence: 2, from: ["1.0.0"])
        try patches.release("3.0.0", sequence: 3)
        // `pack` makes a patch from each release, so another program has made this manifest.
        try patches.edit(
            "3.0.0",
            """
            last = [q for q in m['patches'] if q['from'] == '2.0.0']
            first = dict(json.load(open('rel/test-2.0.0.json'))['patches'][0], result=last[0]['base'])
            m['patches'] = last + [first]
            """)
        try patches.store(with: "1.0.0")
        try bench.must("rm rel/test-2.0.0.tar.zst rel/test-3.0.0.tar.zst")
        #expect(try way(to: "3.0.0") == "2 2 False")
        try bench.must("moult apply -q \(patches.manifest("3.0.0")) --store store")
        #expect(try patches.has("3.0.0"))
    }

    static let unfit: [(name: String, change: String, isTold: Bool)] = [
        ("a wrong byte", "f = open('rel/' + p['file'], 'r+b'); f.seek(60); f.write(b'moult')", true),
        ("a cut patch", "os.truncate('rel/' + p['file'], p['size'] - 9)", false),
        (
            "a cut patch that was sealed so",
            "os.truncate('rel/' + p['file'], p['size'] - 9); p['size'] -= 9; p['sha256'] = digest(p['file'])", true
        ),
        (
            "a patch that lies about its content's size",
            "f = open('rel/' + p['file'], 'r+b'); f.seek(-13, 2); f.write(b'\\x01\\x02\\x03\\x00'); f.close(); p['sha256'] = digest(p['file'])",
            true
        ),
        (
            "a patch for another base",
            "q = p['file'] + 'x'; os.rename('rel/' + p['file'], 'rel/' + q); p['base'] = dict(p['base']); p['file'] = q; os.system('moult delta 2.0.0.food 1.0.0.food -o rel/' + q); p['size'] = size(q); p['sha256'] = digest(q)",
            true
        ),
        ("no patch", "os.remove('rel/' + p['file'])", false),
        ("a base that does not exist", "p['base']['sha256'] = '0' * 64", false),
    ]

    @Test(arguments: unfit)
    func `the bundle is used whenever a patch fails`(name: String, change: String, isTold: Bool) throws {
        try patches.release("1.0.0", sequence: 1)
        try patches.release("2.0.0", sequence: 2, from: ["1.0.0"])
        try patches.store(with: "1.0.0")
        try patches.edit("2.0.0", "p = m['patches'][0]; " + change)
        let ended = try bench.run("moult apply \(patches.manifest("2.0.0")) --store store")
        #expect(ended.status == 0, "\(name): \(ended.errors)")
        #expect(ended.errors.contains("the update continues without this patch") == isTold, "\(name): \(ended.errors)")
        #expect(try patches.has("2.0.0"), "\(name)")
        // The failed attempt with the patch left no transaction and no line in the history.
        #expect(try bench.must("ls store/.moult/transactions") == "")
        #expect(try patches.json("moult history --json --store store", "len(m[\"entries\"])") == "2")
    }

    /// A user with write permission has changed a file of the installed release, and the next update detects the
    /// change.
    @Test(arguments: [true, false])
    func `a patch is not applied to a changed base`(hasBundle: Bool) throws {
        try patches.release("1.0.0", sequence: 1)
        try patches.release("2.0.0", sequence: 2, from: ["1.0.0"])
        try patches.store(with: "1.0.0")
        try bench.must(
            "chmod u+w store/food.db && printf x | dd of=store/food.db bs=1 seek=5000 conv=notrunc status=none")
        if !hasBundle { try bench.must("rm rel/test-2.0.0.tar.zst") }
        let ended = try bench.run("moult apply \(patches.manifest("2.0.0")) --store store")
        #expect(ended.status == (hasBundle ? 0 : 1), "\(ended.errors)")
        #expect(ended.errors.contains("does not match the manifest"))
        #expect(try patches.has("2.0.0") == hasBundle)
    }

    /// If the ctime of a base differs, its content is verified again, and a correct base is used.
    @Test func `a base with a new timestamp is verified and used`() throws {
        try patches.release("1.0.0", sequence: 1)
        try patches.release("2.0.0", sequence: 2, from: ["1.0.0"])
        try patches.store(with: "1.0.0")
        try bench.must("touch $(readlink -f store/food.db) && rm rel/test-2.0.0.tar.zst")
        #expect(try way(to: "2.0.0") == "1 2 False")
        try bench.must("moult apply -q \(patches.manifest("2.0.0")) --store store")
        #expect(try patches.has("2.0.0"))
    }

    @Test func `pack leaves out a patch that saves nothing`() throws {
        try patches.release("1.0.0", sequence: 1)
        try bench.must("sqlite3 food.db 'UPDATE food SET note = hex(randomblob(50))'; cp food.db codes.db")
        try bench.must(
            "sqlite3 codes.db 'ALTER TABLE food RENAME TO codes; UPDATE codes SET note = hex(randomblob(50))'")
        try patches.release("2.0.0", sequence: 2, from: ["1.0.0"])
        #expect(try bench.must("ls rel").contains(".patch") == false)
    }

    // MARK: unchanged databases

    /// The files of two generations are one file with two names, or share blocks. moult recognizes the file by its
    /// seal, even after names were added or removed.
    @Test func `a database that did not change is not copied`() throws {
        try patches.release("1.0.0", sequence: 1)
        try patches.release("2.0.0", sequence: 2)
        try patches.release(
            "3.0.0", sequence: 3,
            more: "\"checks\": [{ \"on\": \"food\", \"sql\": \"SELECT 1\", \"expect\": \"= 1\" }],")
        // `moult pack` would refuse a failing check, so the manifest is changed afterwards.
        try bench.must("sed -i 's/= 1\"/= 2\"/' \(patches.manifest("3.0.0"))")
        try patches.release("4.0.0", sequence: 4)
        try patches.store(with: "1.0.0")
        let inode = try bench.must("stat -Lc %i store/codes.db")
        let shares = try bench.run("cp --reflink=always codes.db reflink").status == 0
        try bench.must("moult apply -q \(patches.manifest("2.0.0")) --store store")
        #expect(try bench.must("stat -Lc %i store/codes.db") == inode || shares)
        func isSound(_ what: String) throws {
            let ended = try bench.run("moult verify --deep --store store && moult status --store store")
            #expect(ended.status == 0 && !ended.output.contains("changed"), "\(what): \(ended.output)\(ended.errors)")
        }
        try isSound("linked")
        if !shares {
            // The new ctime is not recorded, as after a crash between adding a name and recording the ctime.
            try bench.must("f=$(readlink -f store/codes.db); ln $f named && rm -f named")
            let look = try bench.must("moult verify --store store")
            #expect(look.contains("its SHA-256 matches"), "\(look)")
            try bench.must("moult recover -q --store store")
            try isSound("settled")
        }
        // While a refused release was staged, the file had one more name.
        #expect(try bench.run("moult apply -q \(patches.manifest("3.0.0")) --store store").status != 0)
        try isSound("refused")
        try bench.must("moult rollback -q --store store && moult unhold -q --all --store store")
        try isSound("rolled back")
        try bench.must(
            "moult apply -q \(patches.manifest("2.0.0")) --store store && moult apply -q \(patches.manifest("4.0.0")) --store store"
        )
        // Waits until the clock has advanced, so that `clean` gives the file a ctime that differs from the recorded
        // one.
        try bench.must("while touch tick && [ \"$(stat -c %z tick)\" = \"$(stat -Lc %z store/codes.db)\" ]; do :; done")
        try bench.must("moult clean -q --keep 1 --store store")
        try isSound("cleaned")
        let still = try bench.must(
            "strace -f -e trace=flock moult apply \(patches.manifest("4.0.0")) --store store 2>&1")
        #expect(!still.contains("LOCK_EX"), "apply took the lock although it had nothing to do")
        // A user with permission writes to the file. `verify` detects the change, although the file has had other
        // names.
        try bench.must(
            "chmod u+w store/codes.db && printf x | dd of=store/codes.db bs=1 seek=5000 conv=notrunc status=none")
        #expect(try bench.run("moult verify --store store").status != 0)
    }

    // MARK: feeds

    /// Counts the requests to a web server and the bytes that it sends: the store downloads only the patch, and nothing
    /// of the bundle.
    @Test func `only the patch is downloaded from a feed`() throws {
        try patches.release("1.0.0", sequence: 1)
        try patches.release("2.0.0", sequence: 2, from: ["1.0.0"])
        try bench.must("moult publish --allow-unsigned -q public \(patches.manifest("1.0.0"))")
        let server = try patches.serve("public")
        defer { server.program.stop() }
        try bench.must("moult init -q store --product org.example.test --feed \(server.url)feed.json")
        try bench.must("moult apply -q --store store --allow-unsigned; : > served")
        let published = try bench.must("moult publish --allow-unsigned public \(patches.manifest("2.0.0"))")
        #expect(published.contains(".from-1.0.0.patch"))
        let size = try patches.json("cat \(patches.manifest("2.0.0"))", "m[\"patches\"][0][\"size\"]")
        let missing = "sum(p.get(\"missing\", 0) for r in m[\"reuse\"] for p in r[\"patches\"])"
        #expect(try patches.json("moult plan --json --store store --allow-unsigned", missing) == size)
        try bench.must("moult apply -q --store store --allow-unsigned")
        #expect(try patches.has("2.0.0"))
        let served = try bench.must("cat served")
        #expect(served.contains("/test-2.0.0.food.from-1.0.0.patch \(size)\n"), "\(served)")
        #expect(!served.contains("tar.zst"), "\(served)")
    }

    @Test(arguments: ["head -c $(stat -c %s $f) /dev/urandom > x; mv x $f", "rm $f"])
    func `the bundle is used if a patch in the feed is damaged or missing`(spoil: String) throws {
        try patches.release("1.0.0", sequence: 1)
        try patches.release("2.0.0", sequence: 2, from: ["1.0.0"])
        try bench.must("moult publish --allow-unsigned -q public \(patches.manifest("1.0.0"))")
        let server = try patches.serve("public")
        defer { server.program.stop() }
        try bench.must(
            "moult init -q store --product org.example.test --feed \(server.url)feed.json && "
                + "moult apply -q --store store --allow-unsigned")
        try bench.must(
            "moult publish --allow-unsigned -q public \(patches.manifest("2.0.0")) && for f in public/*.patch; do \(spoil); done"
        )
        let ended = try bench.run("moult apply --store store --allow-unsigned")
        #expect(
            ended.status == 0 && ended.errors.contains("the update continues without this patch"), "\(ended.errors)")
        #expect(try patches.has("2.0.0"))
    }

    /// Only patches from the newest releases are kept; other patches are removed.
    @Test func `publish keeps the patches of the newest releases`() throws {
        try patches.release("1.0.0", sequence: 1)
        try patches.release("2.0.0", sequence: 2, from: ["1.0.0"])
        try patches.release("3.0.0", sequence: 3, from: ["2.0.0", "1.0.0"])
        func files() throws -> String { try bench.must("cd public; ls | grep patch$ || true") }
        for version in ["1.0.0", "2.0.0"] {
            try bench.must("moult publish --allow-unsigned -q public \(patches.manifest(version)) --patches 1")
        }
        #expect(try files() == "test-2.0.0.food.from-1.0.0.patch\n")
        try bench.must("moult publish --allow-unsigned -q public \(patches.manifest("3.0.0")) --patches 1")
        #expect(try files() == "test-3.0.0.food.from-2.0.0.patch\n")
        let listed = try patches.json(
            "cat public/feed.json", "[p[\"file\"] for r in m[\"releases\"] for p in r.get(\"patches\", [])]")
        #expect(listed == "['test-3.0.0.food.from-2.0.0.patch']")
        #expect(
            try bench.must("moult publish --allow-unsigned public --patches 0").contains(
                "test-3.0.0.food.from-2.0.0.patch"))
        #expect(try files() == "")
    }
}
