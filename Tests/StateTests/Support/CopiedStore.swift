import MoultBasics
import MoultFiles
import MoultLibc
import MoultTrust
import TestSupport
import Testing

/// A way to copy or move a store, as used by operators and backup programs.
enum CopyWay: String, CaseIterable {
    case archive = "cp -a"
    case hardLinks = "cp -al"
    case bytes = "cp -r"
    case tar
    case rsync = "rsync -aH"
    case move = "mv"
    case owner = "chown -R"
    /// Through an overlay, as in a container: a file is copied when it is first changed.
    case overlay = "overlayfs"
    case send = "btrfs send"

    static let available: [CopyWay] = allCases.filter { way in
        switch way {
        case .rsync: access("/usr/bin/rsync", X_OK) == 0
        case .owner: geteuid() == 0
        case .overlay: mayMountOverlays
        case .send: Btrfs.isAvailable
        default: true
        }
    }

    private static let mayMountOverlays: Bool = {
        guard geteuid() == 0, let scratch = try? Scratch(), let lower = try? scratch.directory("lower") else {
            return false
        }
        guard (try? CopyWay.overlay.copy(lower, to: scratch.path("copy"))) != nil else { return false }
        CopyWay.overlay.release(scratch.path("copy"))
        return true
    }()

    /// Cleans up a copy before its parent directory is removed.
    func release(_ copy: String) {
        guard self == .overlay || self == .send else { return }
        _ = try? Shell.run(["umount", "-l", copy])
        if self == .send { _ = try? Shell.run(["umount", "-l", "\(copy).system"]) }
    }

    /// Copies a store to a new path. `move` and `owner` change a copy, so that the original stays.
    func copy(_ store: String, to copy: String) throws {
        switch self {
        case .archive: try Shell.must(["cp", "-a", store, copy])
        // moult writes to a database only under its one name, so the databases of apps get files of their own.
        case .hardLinks:
            try Shell.must([
                "sh", "-c",
                """
                cp -al "$1" "$2"; for file in "$2"/*.db "$2"/*.db-*; do
                    [ -L "$file" ] || [ ! -f "$file" ] || { cp -p "$file" "$file.own" && mv "$file.own" "$file"; }
                done
                """, "sh", store, copy,
            ])
        case .bytes: try Shell.must(["cp", "-r", store, copy])
        case .tar:
            try Files.ensureDirectory(copy)
            try Shell.must(["sh", "-ec", "tar -C '\(store)' -cf - . | tar -C '\(copy)' -xpf -"])
        case .rsync: try Shell.must(["rsync", "-aH", "\(store)/", copy])
        case .move:
            try Shell.must(["cp", "-a", store, "\(copy).before"])
            try Shell.must(["mv", "\(copy).before", copy])
        case .owner:
            try Shell.must(["cp", "-a", store, copy])
            try Shell.must(["chown", "-R", "\(geteuid()):\(getegid())", copy])
        case .overlay:
            for directory in [copy, "\(copy).upper", "\(copy).work"] { try Files.ensureDirectory(directory) }
            try Shell.must([
                "mount", "-t", "overlay", "overlay", "-o",
                "lowerdir=\(store),upperdir=\(copy).upper,workdir=\(copy).work", copy,
            ])
        case .send:
            try Files.ensureDirectory(copy)
            let script = """
                set -e; mkdir "$2.system"; truncate -s 128M "$2.disk"; PATH=$PATH:/usr/sbin:/sbin mkfs.btrfs -q "$2.disk"
                mount -o loop "$2.disk" "$2.system"; cd "$2.system"; btrfs -q subvolume create from; cp -a "$1/." from
                btrfs -q subvolume snapshot -r from sent; mkdir to; btrfs -q send sent | btrfs -q receive to
                btrfs property set -f to/sent ro false; mount --bind to/sent "$2"
                """
            try Shell.must(["sh", "-ec", script, "sh", store, copy])
        }
    }
}

/// A store with one database of each kind, its releases, and the command.
struct CopiedStore {
    let path: String

    /// The releases 1.0.0, 2.0.0 and 3.0.0 of the product, packed once per process.
    struct Releases {
        let scratch: Scratch

        init() throws {
            scratch = try Scratch()
            try Fixture.copy("copies", to: scratch.directory("packed")) { packed in
                for number in 1...3 { try pack(number, into: packed) }
            }
        }

        private func pack(_ number: Int, into packed: String) throws {
            let work = try scratch.directory("draft-\(number)")
            let scripts = [
                "food": "CREATE TABLE food(x); INSERT INTO food VALUES('FOOD\(number)');",
                "app":
                    "CREATE TABLE item(name TEXT PRIMARY KEY, mine INT); INSERT INTO item VALUES('SHIPPED\(number)', 0);",
                "diary": "CREATE TABLE note(t); PRAGMA user_version = 1;",
            ]
            for (name, sql) in scripts { try Files.writeNew(Array(sql.utf8), to: "\(work)/\(name).sql") }
            let draft: JSON = [
                "manifest": 1, "product": "local.copies", "version": .string("\(number).0.0"),
                "sequence": .size(number),
                "databases": [
                    "food": ["kind": "reference", "build": ["script": "food.sql"]],
                    "app": [
                        "kind": "shared", "build": ["script": "app.sql"],
                        "preserve": [["table": "item", "where": "mine = 1"]],
                    ],
                    "diary": ["kind": "user", "build": ["script": "diary.sql"]],
                ],
            ]
            try Files.writeNew(Array(draft.pretty.utf8), to: "\(work)/draft.json")
            try BuiltMoult.must(["pack", "-q", "--allow-dirty", "\(work)/draft.json", "-o", packed])
        }

        func manifest(_ number: Int) -> String { scratch.path("packed/copies-\(number).0.0.json") }
    }

    /// The state of a store when it is copied.
    enum State: String, CaseIterable {
        case idle, twoGenerations, rolledBack, quarantine, interruptedEarly, interruptedLate

        /// The number of the installed release.
        var installed: Int {
            switch self {
            case .idle, .rolledBack, .quarantine: 1
            case .twoGenerations, .interruptedEarly: 2
            case .interruptedLate: 3
            }
        }

        var isInterrupted: Bool { self == .interruptedEarly || self == .interruptedLate }
    }

    func moult(_ arguments: [String]) throws -> Shell.Ended {
        try BuiltMoult.run(arguments + ["--store", path])
    }

    func must(_ arguments: String...) throws {
        let ended = try moult(arguments)
        try #require(ended.status == 0, "\(arguments): exit \(ended.status): \(ended.errors)")
    }

    /// Creates a store in this state.
    static func make(_ state: State, at path: String, _ releases: Releases) throws -> CopiedStore {
        let store = CopiedStore(path: path)
        try BuiltMoult.must(["init", "-q", path, "--product", "local.copies"])
        // Otherwise a generation is removed once it is a minute old, which depends on the load of the machine.
        let settings: JSON = ["moult": 1, "product": "local.copies", "keep": 9]
        try Files.replace("\(path)/moult.json", with: Array(settings.pretty.utf8))
        try store.must("apply", "-q", releases.manifest(1))
        try Shell.must(["sqlite3", "\(path)/app.db", "INSERT INTO item VALUES('MINE', 1)"])
        try Shell.must(["sqlite3", "\(path)/diary.db", "INSERT INTO note VALUES('DIARY')"])
        switch state {
        case .idle: break
        case .twoGenerations: try store.must("apply", "-q", releases.manifest(2))
        case .rolledBack:
            try store.must("apply", "-q", releases.manifest(2))
            try store.must("rollback", "-q")
        case .quarantine:
            try store.must("reset", "-q", "diary", "--set-user-data-aside")
            try Shell.must(["sqlite3", "\(path)/diary.db", "INSERT INTO note VALUES('LATER')"])
        case .interruptedEarly, .interruptedLate:
            try store.must("apply", "-q", releases.manifest(2))
            let point: (String, Int) = state == .interruptedEarly ? ("renameat2", 1) : ("symlinkat", 1)
            try #require(try store.kill(at: point, "apply", releases.manifest(3)))
        }
        return store
    }

    /// Kills a command at a system call; returns false if the command ended before that call.
    func kill(at point: (call: String, number: Int), _ arguments: String...) throws -> Bool {
        try kill(at: point, arguments)
    }

    func kill(at point: (call: String, number: Int), _ arguments: [String]) throws -> Bool {
        let ended = try Shell.run(
            [
                "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(point.call)",
                "-e", "inject=\(point.call):signal=SIGKILL:when=\(point.number)", BuiltMoult.path(),
            ] + arguments + ["--store", path])
        return ended.status != 0
    }

    // MARK: Contents

    /// The relevant content of a store: its databases, the pointer, quarantine, and unfinished updates.
    struct Content: Equatable, CustomStringConvertible {
        var lines: [String]
        var description: String { lines.joined(separator: "\n") }
    }

    func content() throws -> Content {
        var lines = ["current \(try Files.target(ofLink: "\(path)/.moult/current") ?? "nothing")"]
        for (name, table) in [("food", "food"), ("app", "item"), ("diary", "note")] {
            lines.append("\(name): \(try read("\(path)/\(name).db", "SELECT * FROM \(table) ORDER BY 1"))")
        }
        for name in try Files.list("\(path)/.moult/generations") {
            lines.append("generation \(name)")
            let app = "\(path)/.moult/generations/\(name)/app.db"
            if name.hasPrefix("0+") { lines.append(try read(app, "SELECT * FROM old")) }
        }
        var sets: [String] = []
        for set in try Files.list("\(path)/.moult/quarantine") {
            let directory = "\(path)/.moult/quarantine/\(set)"
            let files = try Files.list(directory)
            let rows = try files.filter { $0 == "diary.db" }.map {
                try read("\(directory)/\($0)", "SELECT * FROM note")
            }
            sets.append("set \(set.split(separator: "-").dropFirst(2).joined(separator: "-")) \(files) \(rows)")
        }
        lines += sets.sorted()
        lines.append("transactions \(try Files.list("\(path)/.moult/transactions").count)")
        return Content(lines: lines)
    }

    private func read(_ file: String, _ sql: String) throws -> String {
        let scratch = try Scratch()
        for suffix in ["", "-wal", "-journal"] where try Files.factsThroughLinks(file + suffix) != nil {
            try Files.copy(
                Files.target(ofLink: file + suffix) == nil ? file + suffix : file, to: scratch.path("db\(suffix)"),
                mode: 0o600)
        }
        let ended = try Shell.run(["sqlite3", scratch.path("db"), sql])
        return ended.output + ended.errors
    }

    /// Returns the mode and content of each file, by its path, but no times. A command on a copy must not change the files of
    /// the original.
    func files() throws -> [String: String] {
        var files: [String: String] = [:]
        func walk(_ directory: String) throws {
            for name in try Files.list(directory) {
                let file = "\(directory)/\(name)"
                guard let facts = try Files.facts(file) else { continue }
                switch facts.kind {
                case .directory: try walk(file)
                case .link: files[file] = try Files.target(ofLink: file)
                default: files[file] = "\(String(facts.mode, radix: 8)) \(try SHA256.digest(ofFileAt: file).hex)"
                }
            }
        }
        try walk(path)
        return files
    }

    /// Returns the state of a database in `moult status`.
    func state(_ database: String) throws -> String? {
        let status = try JSON(parsing: try moult(["status", "--json"]).output, source: "status")
        return status["databases"]?.array?.first { $0["name"]?.string == database }?["state"]?.string
    }
}
