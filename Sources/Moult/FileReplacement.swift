package import MoultBasics
package import MoultEngine
internal import MoultFiles
internal import MoultSQLite
internal import MoultStore
internal import StepKit

/// Replaces a single database file with another one, without any setup. A store next to the file keeps the old content for
/// undo.
package struct FileReplacement {
    /// The file name as the user gave it, but with `./` before a leading dash.
    package let name: String
    /// The file with the new content, for advice; nil for an undo.
    private let newName: String?
    private let layout: StoreLayout
    let path: String
    /// The open directory of the file: its owner, or that of a link on the way, could exchange it for a link to another one.
    private let directory: PinnedDirectory?

    /// Throws if `moult replace` cannot replace the file.
    package init(_ name: String, by new: String? = nil) throws {
        newName = new
        // A name that begins with a dash must not become an option in the commands shown.
        self.name = name.hasPrefix("-") ? "./\(name)" : name
        let absolute = try Files.absolute(name)
        // A file has only one store, whichever path leads to its directory.
        let place = Files.directory(of: absolute)
        let isThere = try Files.factsThroughLinks(place)?.kind == .directory
        // A file in a store is refused below, with better advice than that `current` is a link.
        let isInStore = absolute.pathParts().contains { String($0).hasBytes(of: ".moult") }
        directory = try isThere && !isInStore ? PinnedDirectory.output(place) : nil
        let real = try directory?.place ?? Files.resolvedForOpening(place)
        path = "\(real == "/" ? "" : real)/\(Files.name(of: absolute))"
        layout = try StoreLayout(ofFile: path)
        try requireOwnStore()
        try requireReplaceable()
    }

    /// Throws if another user owns the store or can write to it. In a directory that any user can write to, another user may
    /// have created the store first.
    private func requireOwnStore() throws {
        guard let fault = try Custody(layout).directoryFault() else { return }
        let move = Files.moveAway(fault.path)
        throw MoultError(
            .notReplaceable, .refused, what: "\(name) cannot be replaced: \(fault.path) \(fault.why)",
            why: "a user who can write there can change the content that --undo restores",
            now: fault.remedy.map { "To fix this: \(shellLine($0))" }
                ?? "As user \(Files.userName(fault.owner ?? 0)) or as root: \(move)")
    }

    /// The directory of the file's store.
    package var store: String { layout.root }
    private static let product = "local.replace"

    private func requireReplaceable() throws {
        guard let facts = try Files.facts(path) else {
            // SQLite would use a sidecar that is still there with the copied file.
            let left = try Sidecars.of(path).paths
            let aside = left.isEmpty ? "" : Files.commandToMoveAway(name) + " && "
            if let copy = try newestCopy() {
                throw refusal(
                    "no such file" + (left.isEmpty ? "" : ", and only \(left.joined(separator: " and ")) is left"),
                    "To restore its last copy: \(aside)\(shellLine(["cp", copy, name]))")
            }
            guard let newName else {
                throw refusal("no such file", "Specify the file that was replaced.")
            }
            throw refusal(
                "no such file", "To copy a database to this path: \(aside)\(shellLine(["cp", newName, name]))")
        }
        // A symlink to a file of a store is refused like that file.
        let target = try Files.target(ofLink: path)
        for file in [path] + (target == nil ? [] : [try Files.resolved(path)]) {
            guard let owner = try StoreLayout.owner(of: file) else { continue }
            throw refusal(
                "it belongs to the store \(owner.store), and only releases of the store may replace it",
                "Install a release with: \(shellLine(["moult", "apply", "RELEASE", "--store", owner.store]))")
        }
        if let target {
            let file = try Files.resolved(path)
            let words = newName.map { [file, $0] } ?? ["--undo", file]
            throw refusal(
                "it is a symbolic link to \(target)",
                "Specify the file itself: \(shellLine(["moult", "replace"] + words))")
        }
        guard facts.kind == .file else { throw refusal("it is not a regular file", "Specify a database file.") }
        // A file without write permission is not meant to change.
        try Permission.write(path).check("\(name) cannot be replaced")
        do { try DatabaseHeader.requireNoExcess(at: path) } catch let error as MoultError
            where error.code == .databaseCorrupt
        { throw refusal(error.why ?? error.what, error.now ?? "Restore a backup.") }
    }

    private func refusal(_ why: String, _ now: String) -> MoultError {
        MoultError(.notReplaceable, .refused, what: "\(name) cannot be replaced", why: why, now: now)
    }

    /// The file with the new content, the rows to carry over into it, and the checks that it must pass.
    package struct Content {
        package var file: String
        package var preserve: [(table: String, rows: String?)] = []
        package var checks: [(sql: String, expect: String)] = []
        package init(file: String) { self.file = file }
    }

    /// The draft of the next release, the directory to pack it in, and the release that a killed command had installed, if any.
    package struct Draft {
        package let path: String
        package let directory: String
        fileprivate let killed: Manifest?
    }

    /// Creates the store if necessary, and calls `body` with the draft of the next release.
    package func withDraft<R>(
        of content: Content, wait seconds: Int, _ orchestrator: Orchestrator, isDry: Bool,
        _ body: (Draft) throws -> R
    ) throws -> R {
        let new = try Files.absolute(content.file)
        guard let facts = try Files.factsThroughLinks(new) else {
            throw refusal("\(content.file) does not exist", "Specify the new database file.")
        }
        if let old = try Files.facts(path), (facts.inode, facts.device) == (old.inode, old.device) {
            throw refusal("\(content.file) is the same file", "Specify the new database file.")
        }
        let lock = try lock(wait: seconds, stop: orchestrator.watcher.stopIfAsked)
        defer { withExtendedLifetime(lock) {} }
        let result = Result {
            try makeStore()
            // The next release's number is known only after recovery.
            if try !isDry && orchestrator.isUnfinished() { _ = try orchestrator.recover(wait: seconds) }
            let killed = try installedByKilledCommand()
            try requireSelectable(content.preserve)
            let work = try WorkDirectory(in: layout.root, named: Self.workName)
            defer { work.remove() }
            let number = try lastNumber() + 1
            let draft = "\(work.path)/\(Self.draftName)"
            try Files.writeNew(Array(self.draft(content, new, number).pretty.utf8), to: draft, mode: 0o600)
            return try body(Draft(path: draft, directory: work.path, killed: killed))
        }
        // Removes a store in which nothing was ever replaced. A failure here does not change the result.
        orchestrator.warning { try Removable.removeUnused(layout) }
        return try result.get()
    }

    /// Throws if a `--preserve` option names a table or column that the file does not have, because the user expects it to
    /// select rows.
    private func requireSelectable(_ preserve: [(table: String, rows: String?)]) throws {
        guard !preserve.isEmpty, try Files.factsThroughLinks(path) != nil else { return }
        let advice = "Correct the option, or leave it out."
        guard try isDatabase() else {
            throw refusal("--preserve selects nothing, because \(name) is empty or not a database", advice)
        }
        try NonInvasiveReader.into(path) { connection in
            for rule in preserve {
                let option = "--preserve \(rule.table)\(rule.rows.map { ":\($0)" } ?? "")"
                switch try RowSelection(table: rule.table, conditions: [rule.rows])
                    .reach(in: connection, isChecked: true)
                {
                case .rows: break
                case .absent:
                    throw refusal(
                        "\(option) selects nothing, because \(name) has no table \"\(rule.table)\"", advice)
                // The update itself refuses a damaged table.
                case .unselectable(_, let cause) where cause.code == .databaseCorrupt: break
                case .unselectable(_, let cause):
                    let message = cause.sqlite?.message
                    // Other errors of SQLite, for instance of a failing disk, are not the option's fault.
                    guard cause.sqlite.map({ $0.resultCode.primary == .error }) ?? true else { throw cause }
                    throw refusal("\(option) cannot select rows: \(message ?? cause.why ?? cause.what)", advice)
                }
            }
        }
    }

    private func isDatabase() throws -> Bool {
        do { return try Connection.header(ofFileAt: path).pageSize > 0 } catch let error as MoultError
            where error.code == .databaseCorrupt
        { return false }
    }

    /// Plans the replacement. The checks of the content are made in a temporary store, because an update makes them only after
    /// its plan. Rows to preserve are carried over into a temporary copy, so that they are counted as in the replacement.
    package func plan(_ request: UpdateRequest, of draft: Draft, _ orchestrator: Orchestrator) throws -> Plan {
        let packed = try read(request)
        if !packed.checks.isEmpty {
            _ = try TrialInstall(checkTime: request.checkTime, shouldStop: orchestrator.watcher.shouldStop)
                .run(request.manifest)
        }
        return try orchestrator.plan(request, deep: packed.databases.contains { !$0.preserve.isEmpty })
    }

    private func read(_ request: UpdateRequest) throws -> Manifest {
        try Manifest(
            parsing: Files.read(request.manifest, limit: Manifest.largest) ?? [], as: .sealed, source: request.manifest)
    }

    /// Installs the packed release. If a killed command had already installed the same release, does nothing.
    package func update(_ request: UpdateRequest, of draft: Draft, _ orchestrator: Orchestrator, wait: Int) throws
        -> Orchestrator.Result
    {
        let packed = try read(request)
        // The user may have put another file in place since, for instance a backup.
        if let killed = draft.killed, killed.databases == packed.databases, killed.checks == packed.checks,
            try ReleaseMarker.digest(in: path) == killed.databases.first?.sha256
        {
            return Orchestrator.Result(generation: try Generation.currentName(layout))
        }
        return try orchestrator.update(request, wait: wait)
    }

    /// Returns the release that a killed command had installed, if any.
    private func installedByKilledCommand() throws -> Manifest? {
        let current = try Generation.currentName(layout)
        for directory in try WorkDirectory.leftovers(of: Self.workName, in: layout.root) {
            for name in try Files.list("\(layout.root)/\(directory)") where name.hasSuffix(".json") {
                let path = "\(layout.root)/\(directory)/\(name)"
                // A partially written manifest cannot have been installed.
                guard let bytes = try Files.read(path, limit: Manifest.largest),
                    let manifest = try? Manifest(parsing: bytes, as: .sealed, source: path),
                    try Generation.name(of: manifest, bytes: bytes) == current
                else { continue }
                return manifest
            }
        }
        return nil
    }

    /// Returns the number of the last replacement, even if its generation was removed.
    private func lastNumber() throws -> Int {
        let releases = try Generation.names(layout)
        let kept = releases.compactMap { Version(Generation.version(of: $0))?.major }.max() ?? 0
        return max(kept, try ReplayGuard.read(layout).sequence)
    }

    private func makeStore() throws {
        if try Files.facts(layout.settings) != nil { return }
        var settings = Settings(product: Self.product)
        // The current content is in the file itself. The replaced content is in adopted generations, to which `keep` does not
        // apply.
        settings.keep = 1
        try Orchestrator.create(layout, settings, wanting: ["product"], mode: 0o700, wait: 0)
    }

    static let draftName = "draft.json"
    private static let workName = "release"

    private func draft(_ content: Content, _ new: String, _ number: Int) -> JSON {
        let rows = content.preserve.map { rule -> JSON in
            .compact(["table": .string(rule.table), "where": rule.rows.map { .string($0) }])
        }
        let checks = content.checks.map { check -> JSON in
            ["on": .string(StoreLayout.onlyDatabase), "sql": .string(check.sql), "expect": .string(check.expect)]
        }
        let draft: JSON = .compact([
            "manifest": 1, "product": .string(Self.product), "version": .string("\(number).0.0"),
            "sequence": .size(number),
            "databases": [
                StoreLayout.onlyDatabase: .compact([
                    "kind": "shared", "path": .string(StoreLayout.onlyDatabase), "source": .string(new),
                    "preserve": rows.isEmpty ? nil : .array(rows),
                ])
            ],
            "checks": checks.isEmpty ? nil : .array(checks),
        ])
        return Manifest.literalDraft(draft)
    }

    /// Takes the lock that allows only one replacement at a time, from numbering the release to the end.
    private func lock(wait seconds: Int, stop: () throws -> Void) throws -> FileLock {
        var backoff = Backoff(.seconds(seconds))
        while true {
            try Files.ensureDirectory(layout.root, mode: 0o700)
            // The previous lock holder may have removed the directory.
            if let lock = try FileLock.take(layout.root, .exclusive, directory: true),
                try lock.facts().isSameFile(Files.facts(layout.root))
            {
                // Another user may have created the directory since the last check.
                try Custody(layout).check()
                try requireOwnStore()
                return lock
            }
            try stop()
            guard backoff.pause() else { break }
        }
        let holders = try LockHolders.of(layout.root).map(\.description).joined(separator: ", ")
        throw MoultError(
            .locked, .busy, what: "\(name) is being replaced",
            why: "the lock on \(layout.root) is held by \(holders.isEmpty ? "another process" : holders)",
            now: "Try again later, or wait for the other process: --wait SECONDS")
    }

    private func newestCopy() throws -> String? {
        nil
    }

    /// Returns the newest copy, if it is not a database and `--undo` therefore refuses it.
    package func copyWithoutUndo() throws -> String? {
        guard let copy = try newestCopy(), try Files.facts(copy)?.size != 0,
            case .unfit = try Fitness.of(copy, judge: { _ in nil })
        else { return nil }
        return copy
    }

    /// Returns the command that puts one of the kept copies next to the file.
    package func command(forCopy copy: String) throws -> [String] { ["cp", copy, try Files.firstFree("\(name).old")] }

    /// Returns the number of kept copies of the file.
    package func copies() throws -> Int { 0 }

    /// Returns when the file got the content of this generation; nil if that was not recorded.
    package func time(of generation: String?) throws -> Timestamp? {
        try generation.flatMap { try Generation.load($0, in: layout).manifest.created }
    }

    /// Returns the names of replaced files in the same directory.
    private func replacedFilesBeside() throws -> [String] {
        let directory = Files.directory(of: path)
        return try Files.list(directory).filter { $0.hasPrefix(".") && $0.hasSuffix(".moult") }.compactMap {
            let layout = try StoreLayout(root: "\(directory)/\($0)")
            return try Generation.currentName(layout) == nil ? nil : layout.onlyFile.map(Files.name)
        }
    }

    /// Throws if the file has not been replaced yet. A first replacement that was interrupted is finished or removed before,
    /// unless this is only a plan.
    package func requireUndoable(_ orchestrator: Orchestrator, isDry: Bool, wait seconds: Int) throws {
        let isThere = try Files.facts(layout.settings) != nil
        if isThere {
            if try Generation.currentName(layout) == nil && !isDry && orchestrator.isUnfinished() {
                _ = try orchestrator.recover(wait: seconds)
            }
            if try Generation.currentName(layout) != nil { return }
            orchestrator.warning { try Removable.removeUnused(layout) }
        }
        let others = try replacedFilesBeside()
        throw MoultError(
            .notReplaceable, .refused, what: "nothing to undo for \(name)",
            why: isThere
                ? "it has not been replaced"
                : "`moult replace` keeps old copies in \(layout.root), which does not exist",
            now: "Specify the file that was replaced."
                + (others.isEmpty
                    ? "" : " In the same directory, there are old copies of \(others.joined(separator: ", "))."))
    }
}

extension MoultError.Code {
    /// `moult replace` cannot replace the file.
    static let notReplaceable = Self(823)
}
