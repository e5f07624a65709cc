import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// A FIFO in place of a file. Opening it would wait for another process, so no command may open it.
@Suite struct PipeTests {
    private let scratch: Scratch
    private let releases: CopiedStore.Releases
    private let store: CopiedStore

    init() throws {
        scratch = try Scratch()
        releases = try CopiedStore.Releases()
        store = try CopiedStore.make(.quarantine, at: scratch.path("store"), releases)
    }

    private static let files = [
        "moult.json", "food.db", "app.db", "diary.db", ".moult/current", ".moult/history.jsonl", ".moult/links.json",
        ".moult/checks.json", ".moult/holds.json", ".moult/steps.json", ".moult/lock", ".moult/generations",
        ".moult/transactions", ".moult/quarantine", ".moult/feed", ".moult/current/manifest.json",
        ".moult/current/seal.json", ".moult/current/food.db", ".moult/current/app.db", ".moult/quarantine/*/set.json",
        ".moult/quarantine/*/diary.db", "food.db-journal", "app.db-journal", "app.db-wal", "app.db-shm",
        "diary.db-journal", "diary.db-wal", "diary.db-shm", ".moult/current/food.db-wal",
        ".moult/quarantine/*/diary.db-wal",
        ".moult/transactions/20260101000000-0a0b0c0d/decided.json",
    ]

    private var verbs: [[String]] {
        [
            ["status"], ["verify", "--deep"], ["status", "--deep"], ["history"], ["quarantine", "list"],
            ["sql", "SELECT * FROM food.food"], ["plan", releases.manifest(2)], ["clean"],
            ["apply", releases.manifest(2)], ["recover"],
        ]
    }

    @Test(.tags(.thorough)) func `no command hangs on a pipe in place of a file`() throws {
        for file in Self.files {
            let copy = CopiedStore(path: scratch.path("copy"))
            try CopyWay.archive.copy(store.path, to: copy.path)
            try Shell.must([
                "sh", "-ec",
                "cd '\(copy.path)'; f=\(file); d=$(echo $(dirname $f)); f=$d/${f##*/}; mkdir -p $d; chmod u+w $d; [ ! -e $f ] || chmod -R u+w $f; rm -rf $f; mkfifo $f",
            ])
            for words in verbs {
                let ended = try Shell.run(["timeout", "60", BuiltMoult.path()] + words + ["--store", copy.path])
                #expect(ended.status != 124 && ended.status >= 0, "\(file), \(words): \(ended)")
            }
            try Files.removeTree(copy.path)
        }
    }

    private static let kinds = [
        ("mkfifo", "not a regular file"), ("mkdir", "a directory"), ("ln -s /etc/hostname", "a symbolic link"),
    ]
    private static let places = kinds.flatMap { kind in ["-journal", "-wal", "-shm"].map { ($0, kind) } }

    @Test(.tags(.sampled), arguments: places.sampled(4))
    func `no command hangs on a pipe next to a database that is named on the command line`(
        suffix: String, kind: (make: String, what: String)
    ) throws {
        let (old, new) = (scratch.path("old.db"), scratch.path("new.db"))
        for file in [old, new] { try Shell.must(["sqlite3", file, "CREATE TABLE t(x); INSERT INTO t VALUES(1)"]) }
        for piped in [old, new] {
            try Shell.must(["sh", "-ec", "\(kind.make) '\(piped)\(suffix)'"])
            let verbs = [
                ["replace", old, new], ["inspect", piped], ["diff", old, new],
                ["pack", piped, "--product", "org.example.piped", "--output", scratch.path("out")],
            ]
            for words in verbs {
                let ended = try Shell.run(["timeout", "60", BuiltMoult.path()] + words)
                #expect(ended.status != 124 && ended.status > 0, "\(words): \(ended)")
                #expect(ended.errors.contains("\(piped)\(suffix) is \(kind.what)"), "\(words): \(ended)")
            }
            try Shell.must(["rm", "-d", piped + suffix])
        }
        #expect(try Shell.must(["sqlite3", old, "SELECT x FROM t"]) == "1\n")
    }

    @Test func `no command hangs on a pipe that is named on the command line`() throws {
        let pipe = scratch.path("pipe")
        try Shell.must(["mkfifo", pipe])
        for words in [["apply", pipe], ["plan", pipe], ["inspect", pipe], ["diff", pipe, pipe]] {
            let ended = try Shell.run(
                ["timeout", "60", BuiltMoult.path()] + words + (words[0] == "apply" ? ["--store", store.path] : []))
            #expect(ended.status != 124 && ended.status > 0, "\(words): \(ended)")
        }
    }
}
