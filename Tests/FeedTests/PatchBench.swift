import MoultBasics
import MoultFiles
import TestSupport

/// Releases of two databases, packed by the command with patches. One of the databases changes a little in each
/// release.
struct PatchBench {
    let bench: Bench

    init() throws {
        bench = try Bench()
        // Larger than one MiB, so that updates use a hard link.
        try bench.must(
            """
            for name in food codes; do sqlite3 $name.db "CREATE TABLE $name(id INTEGER PRIMARY KEY, release TEXT, note TEXT);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
                INSERT INTO $name SELECT i, '1.0.0', hex(randomblob(50)) FROM n;"; done
            """)
    }

    func manifest(_ version: String) -> String { "rel/test-\(version).json" }

    /// Packs a release in which every hundredth row differs from the previous release; with `rebuilt`, the whole file
    /// is rewritten.
    func release(
        _ version: String, sequence: Int, from older: [String] = [], rebuilt: Bool = false, more: String = ""
    ) throws {
        try bench.must(
            "sqlite3 food.db \"UPDATE food SET note = hex(randomblob(50)) WHERE id % 100 = \(sequence); "
                + "UPDATE food SET release = '\(version)' WHERE id = 1\"")
        if rebuilt { try bench.must("sqlite3 food.db \"VACUUM INTO 'new.db'\" && mv new.db food.db") }
        let draft = """
            { "manifest": 1, "product": "org.example.test", "version": "\(version)", "sequence": \(sequence), \(more)
              "databases": { "food": { "kind": "reference", "source": "food.db" },
                             "codes": { "kind": "reference", "source": "codes.db" } } }
            """
        try Files.writeNew(Array(draft.utf8), to: bench.path("\(version).draft.json"))
        let from = older.map { " --delta-from \(manifest($0))" }.joined()
        try bench.must("moult pack -q \(version).draft.json -o rel --level 1\(from)")
        try bench.must(
            "tar -xOf rel/test-\(version).tar.zst food.db > \(version).food; "
                + "tar -xOf rel/test-\(version).tar.zst codes.db > codes.sealed")
    }

    /// Creates a store with a release.
    func store(with version: String) throws {
        try bench.must(
            "moult init -q store --product org.example.test && moult apply -q \(manifest(version)) --store store")
    }

    /// Serves a directory. The file `served` lists the requested files and their sizes.
    func serve(_ directory: String) throws -> (program: Background, url: String) {
        let script = """
            import http.server, os, sys
            os.chdir(sys.argv[1])
            log = open('../served', 'a')
            class Handler(http.server.SimpleHTTPRequestHandler):
                def copyfile(self, source, output):
                    log.write(f'{self.path} {os.fstat(source.fileno()).st_size}\\n'); log.flush()
                    super().copyfile(source, output)
            server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
            open('../port.new', 'w').write(str(server.server_port)); os.rename('../port.new', '../port')
            server.serve_forever()
            """
        try Files.writeNew(Array(script.utf8), to: bench.path("serve.py"))
        let program = try Background(["python3", bench.path("serve.py"), bench.path(directory)])
        try program.wait { try Files.facts(bench.path("port")) != nil }
        return (program, "http://127.0.0.1:\(try bench.must("cat port"))/")
    }

    /// Returns whether the store has exactly this release.
    func has(_ version: String) throws -> Bool {
        try bench.run("cmp store/food.db \(version).food && cmp store/codes.db codes.sealed").status == 0
    }

    /// Runs a command, and returns the value of a Python expression in which `m` is the JSON output of the command.
    func json(_ command: String, _ expression: String) throws -> String {
        let read = "python3 -c 'import json,sys; m=json.load(sys.stdin); print(\(expression))'"
        return try bench.must("{ \(command) || [ $? = 2 ]; } | \(read)").split(separator: "\n").joined(separator: " ")
    }

    /// Changes a manifest with Python code, in which `m` is the manifest; `digest(FILE)` and `size(FILE)` are for files
    /// in `rel`.
    func edit(_ version: String, _ change: String) throws {
        try Files.remove(bench.path("edit.py"))
        let script = """
            import json, hashlib, os, sys
            digest = lambda name: hashlib.sha256(open('rel/' + name, 'rb').read()).hexdigest()
            size = lambda name: os.path.getsize('rel/' + name)
            m = json.load(open(sys.argv[1]))
            \(change)
            json.dump(m, open(sys.argv[1], 'w'))
            """
        try Files.writeNew(Array(script.utf8), to: bench.path("edit.py"))
        try bench.must("python3 edit.py \(manifest(version))")
    }
}
