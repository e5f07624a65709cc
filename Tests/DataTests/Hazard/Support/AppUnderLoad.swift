import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// An app that installs releases while its threads, and two other processes, write to a user database in rollback mode. A quarter of
/// the app's calls of `close` are late, as on a busy machine.
struct AppUnderLoad {
    private let scratch: Scratch
    private let app: String

    private static let slowClose = """
        #define _GNU_SOURCE
        #include <stdatomic.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        int close(int descriptor) {
            static atomic_ulong closed;
            if (++closed % 4 == 0) usleep(2000);
            return (int)syscall(SYS_close, descriptor);
        }
        """

    init() throws {
        scratch = try Scratch()
        app = Files.directory(of: try BuiltMoult.path()) + "/AppProbe"
        try Files.writeNew(Array(Self.slowClose.utf8), to: scratch.path("slow.c"))
        let notes = "CREATE TABLE note(id INTEGER PRIMARY KEY, writer TEXT, number INTEGER, text TEXT);"
        try Files.writeNew(
            Array("\(notes) CREATE UNIQUE INDEX numbered ON note(writer, number);".utf8), to: scratch.path("notes.sql"))
        for version in 1...2 {
            let draft = """
                {"manifest":1,"product":"org.example.test","version":"\(version).0.0","sequence":\(version),"databases":{
                "food":{"kind":"reference","source":"food\(version).db"},
                "notes":{"kind":"user","build":{"script":"notes.sql"}}}}
                """
            try Files.writeNew(Array(draft.utf8), to: scratch.path("\(version).json"))
        }
        try scratch.must(
            """
            gcc -shared -fPIC -o slow.so slow.c
            for v in 1 2; do sqlite3 food$v.db "CREATE TABLE food(x); INSERT INTO food VALUES($v)"; moult pack -q $v.json -o rel; done
            '\(app)' rel/test-1.0.0.json store
            """)
    }

    /// Installs so many releases, and checks that every committed row is there exactly once, and that no index is damaged.
    func install(_ updates: Int) throws {
        let manifests = [2, 1].map { scratch.path("rel/test-\($0).0.0.json") }
        let store = scratch.path("store")
        let others = try ["third", "fourth"].map { try Program([app, "write", store, $0]) }
        for other in others { try #require(other.line() == "ready") }
        let ended = try Shell.run(
            [app, "threads", "\(updates)", store] + manifests, environment: ["LD_PRELOAD": scratch.path("slow.so")])
        for other in others { other.closeInput() }
        var lines = ended.output.split(separator: "\n").map { String($0) }
        for other in others { if let line = other.line() { lines.append(line) } }
        // The rows of each writer, and the numbers of reads, visits, updates and busy updates.
        var counts: [String: Int] = [:]
        for line in lines {
            let words = line.split(separator: " ")
            if words.count == 2, let count = Int(words[1]) { counts[String(words[0])] = count }
        }
        #expect(ended.status == 0 && counts["updates"] == updates && counts.count == 8, "\(ended) \(lines)")
        let found = try scratch.must(
            """
            sqlite3 store/notes.db 'PRAGMA integrity_check' \
                'SELECT writer, count(*), count(DISTINCT number), max(number) FROM note GROUP BY 1 ORDER BY 1'
            """)
        let rows = ["first", "fourth", "second", "third"].map { name in
            let count = counts[name] ?? -1
            return "\(name)|\(count)|\(count)|\(count)\n"
        }
        #expect(found == "ok\n" + rows.joined())
        #expect(rows.allSatisfy { !$0.contains("|0|") && !$0.contains("|-1|") }, "\(lines)")
    }
}
