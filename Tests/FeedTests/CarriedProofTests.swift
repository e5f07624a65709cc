import MoultBasics
import TestSupport
import Testing

/// A store does not repeat the checks that `pack` recorded if trusted keys signed the manifest.
@Suite(.processes) struct CarriedProofTests {
    private let bench: Bench
    private static let proof = "food: identity, 1 golden query, digest; checked by the publisher with SQLite "

    init() throws {
        bench = try Bench()
        try bench.key("a")
        try bench.must(
            """
            for i in 1 2; do
            mkdir rel$i
            sqlite3 rel$i/food.db "CREATE TABLE food(id INTEGER PRIMARY KEY, release TEXT);
                CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT);
                INSERT INTO food SELECT value, '$i.0.0' FROM generate_series(1, 100);
                INSERT INTO note SELECT value, 'some text ' || value FROM generate_series(1, 2000);"
            echo '{ "manifest": 1, "product": "org.example.test", "version": "'$i'.0.0",
                "databases": { "food": { "kind": "reference" } },
                "checks": [{ "on": "food", "sql": "SELECT count(*) FROM food", "expect": ">= 100" }] }' > rel$i/draft.json
            moult pack rel$i/draft.json -o rel -q
            moult sign rel/test-$i.0.0.json -k a.key -q
            done
            moult init --product org.example.test --key a.pub -q
            """)
    }

    /// Damages a table of the first release, and packs and signs it as if it were sound. `more` changes the manifest `m`.
    private func damage(_ more: String = "") throws {
        try bench.must(
            """
            cp rel1/food.db food.db
            python3 - <<'END'
            import hashlib, json, subprocess
            data = bytearray(open("food.db", "rb").read())
            data[-4096 * 3:-4096 * 2] = b"no page " * 512
            open("food.db", "wb").write(data)
            subprocess.run("tar -cf - food.db | zstd -q -f -o rel/test-1.0.0.tar.zst", shell=True, check=True)
            bundle = open("rel/test-1.0.0.tar.zst", "rb").read()
            m = json.load(open("rel/test-1.0.0.json"))
            m["bundle"] = {"file": "test-1.0.0.tar.zst", "size": len(bundle), "sha256": hashlib.sha256(bundle).hexdigest()}
            food = m["databases"]["food"]
            food["sha256"] = hashlib.sha256(data).hexdigest()
            \(more)
            json.dump(m, open("rel/test-1.0.0.json", "w"))
            END
            rm -f rel/*.minisig
            moult sign rel/test-1.0.0.json -k a.key -q
            """)
    }

    private func isRefused(_ line: String = "moult apply rel/test-1.0.0.json") throws -> Bool {
        let ended = try bench.run(line)
        let errors = ["food.db does not match the manifest: ", "food.db fails verification: "]
        return ended.status == 1 && errors.contains { ended.errors.contains($0) }
    }

    private var sqlite: String {
        get throws { try bench.must("sqlite3 :memory: 'SELECT sqlite_version()'").dropLast().description }
    }

    @Test func `pack records its checks, and plan, apply and status name the proof`() throws {
        let manifest = try JSON(parsing: Array(bench.must("cat rel/test-1.0.0.json").utf8), source: "manifest")
        let version = try bench.must("moult --version").split(separator: " ").last?.dropLast().description
        #expect(
            try manifest["databases"]?["food"]?["proved"]
                == ["check": "full", "sqlite": .string(sqlite), "moult": .string(version ?? "")])
        let words = try Self.proof + sqlite
        #expect(try bench.run("moult plan rel/test-1.0.0.json").output.contains("\(words)\n"))
        #expect(try bench.must("moult apply rel/test-1.0.0.json 2>&1").contains("\(words)\n"))
        let proof = try "digest; checked by the publisher with SQLite \(sqlite)"
        #expect(try bench.must("moult status").contains("read-only, verified: \(proof)\n"))
        let status = try JSON(parsing: Array(bench.must("moult status --json").utf8), source: "status")
        #expect(status["databases"]?.array?.first?["proof"]?.string == proof)
        #expect(try bench.run("moult verify --deep").status == 0)
    }

    @Test func `verify --deep finds a wrong proof under a valid signature`() throws {
        try damage()
        try bench.must("moult apply rel/test-1.0.0.json")
        #expect(try bench.run("moult verify").status == 0)
        let deep = try bench.run("moult verify --deep")
        #expect(deep.status == 1 && deep.output.contains("integrity_check"), "\(deep)")
        // If the operator requires the check, a store refuses the damaged database.
        try bench.must("moult init other --product org.example.test --key a.pub -q")
        try bench.must("sed -i '2i \"verify\": \"quick\",' other/moult.json")
        #expect(try isRefused("moult apply rel/test-1.0.0.json --store other"))
    }

    @Test func `a setting or the manifest can require the check on the machine`() throws {
        try damage()
        for depth in ["quick", "full"] {
            try bench.must("cp store/moult.json kept; sed -i '2i \"verify\": \"\(depth)\",' store/moult.json")
            let plan = try bench.run("moult plan rel/test-1.0.0.json").output
            #expect(plan.contains(depth == "full" ? "integrity_check, foreign_key_check" : "quick_check"), "\(plan)")
            #expect(!plan.contains("publisher with"))
            #expect(try isRefused(), "\(depth)")
            try bench.must("mv kept store/moult.json")
            try damage("food['verify'] = '\(depth)'")
            #expect(try isRefused(), "\(depth)")
        }
    }

    @Test func `a proof counts only if release keys have signed the manifest or its digest`() throws {
        try damage()
        // The store has no keys, so it does not know who signed the manifest.
        try bench.must("moult init open --product org.example.test -q")
        #expect(try isRefused("moult apply rel/test-1.0.0.json --store open"))
        // The manifest is signed, but has no recorded checks.
        try damage("del food['proved']")
        #expect(try isRefused())
        // A feed that is signed by the same keys has the digest of the manifest, so the manifest needs no signature of its own.
        try bench.must(
            "rm -rf rel/*; moult pack rel1/draft.json -o rel -q; moult publish public rel/test-1.0.0.json -k a.key -q")
        try bench.must("moult init fed --product org.example.test --key a.pub --feed public/feed.json -q")
        try bench.must("rm public/test-1.0.0.json.minisig")
        let words = try Self.proof + sqlite
        #expect(try bench.run("moult plan --store fed").output.contains("\(words)\n"))
        try bench.must("moult apply --store fed")
        #expect(try bench.must("moult status --store fed").contains("checked by the publisher"))
    }

    @Test func `header, identity and golden queries are checked in spite of a proof`() throws {
        try damage("food['identity']['userVersion'] = 7")
        #expect(try isRefused())
        try damage("food['identity'].pop('userVersion', None); m['checks'][0]['expect'] = '= 7'")
        #expect(
            try bench.run("moult apply rel/test-1.0.0.json").errors.contains("fails a golden query"))
        try damage("m['checks'][0]['expect'] = '>= 100'")
        try bench.must("moult apply rel/test-1.0.0.json")
    }

    @Test func `a repaired file and a file of a kept release are checked on the machine`() throws {
        try bench.must("moult apply rel/test-1.0.0.json; moult apply rel/test-2.0.0.json")
        try bench.must("mkdir -p rel3; cp rel2/food.db rel3; sed s/2.0.0/3.0.0/ rel2/draft.json > rel3/draft.json")
        try bench.must("moult pack rel3/draft.json -o rel -q; moult sign rel/test-3.0.0.json -k a.key -q")
        let checked = "food: digest, identity, quick_check, 1 golden query"
        #expect(try bench.run("moult plan rel/test-3.0.0.json").output.contains(checked))
        try bench.must(
            "f=$(readlink -f store/food.db); chmod u+w $f; printf x | dd of=$f bs=1 seek=9000 conv=notrunc 2>&1")
        #expect(try bench.run("moult plan rel/test-2.0.0.json").output.contains(checked))
        try bench.must("moult apply rel/test-2.0.0.json")
        #expect(!(try bench.must("moult status").contains("checked by the publisher")))
        #expect(try bench.run("moult verify --deep").status == 0)
    }
}
