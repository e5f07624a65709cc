package import MoultBasics
package import MoultFiles
internal import MoultLibc

/// Checks which users can change a store, and so determine which programs run when a command uses it. A user who can write to
/// `moult.json` can specify programs; a user who can write to `.moult`, or to a directory above it, can replace the files that
/// moult has checked. If root used such a store, every such user could become root.
package struct Custody {
    package typealias Fault = PathCustody.Fault

    private let layout: StoreLayout

    package init(_ layout: StoreLayout) { self.layout = layout }

    /// The file in which root lists stores of other users that root's commands may use.
    static let trustedStores = "/etc/moult/trusted-stores"

    /// Throws if this process runs as root, another user can change the store, and root has not listed it as trusted.
    package func check() throws {
        guard PathCustody.isRoot, let fault = try storeFaults().first, try !isTrusted() else { return }
        throw MoultError(
            .custody, .refused, what: "root does not use the store \(layout.root): \(fault.path) \(fault.why)",
            why: "a user who can change the store could make root run any program", now: advice(fault))
    }

    /// Throws like `check` if another user can change the directory for caches.
    package func check(cacheRoot: String?) throws {
        guard let cacheRoot, PathCustody.isRoot, let fault = try cacheFaults(cacheRoot).first, try !isTrusted() else {
            return
        }
        throw MoultError(
            .custody, .refused,
            what: "root does not use the directory for caches \(cacheRoot): \(fault.path) \(fault.why)",
            why: "a user who can change that directory determines which files moult replaces there",
            now: "To fix this: \(run: fault.remedy ?? ["chown", "root", fault.path]). "
                + "Or set another \"cacheRoot\" in \(layout.settings).")
    }

    /// Throws if this process runs as root and another user determines which directory the path of a cache leads to.
    package static func check(cache path: String) throws {
        guard PathCustody.isRoot,
            let fault = try PathCustody.faults(ofPath: Files.directory(of: Files.absolute(path))).first
        else { return }
        throw MoultError(
            .custody, .refused, what: "root does not create the cache \(path): \(fault.path) \(fault.why)",
            why: "a user who can change that path determines which file root replaces",
            now: fault.owner.map { "Run the command as user \(Files.userName($0))." }
                ?? "To fix this: \(run: fault.remedy ?? ["chmod", "go-w", fault.path])")
    }

    /// Throws if this process runs as root and another user can change a saved plan; returns false if root has no such file. A
    /// file that appears after the check must not be used.
    package static func check(plan path: String) throws -> Bool {
        guard PathCustody.isRoot else { return true }
        // The owner is read first: another user could remove a file while `faults` runs, and then create it again.
        guard let facts = try Files.factsThroughLinks(path) else { return false }
        let first =
            facts.owner == 0 ? try PathCustody.fault(ofFile: path) : PathCustody.fault(path, facts, allowsSticky: false)
        guard let fault = try first ?? PathCustody.faults(ofPath: Files.absolute(path)).first else { return true }
        throw MoultError(
            .custody, .refused, what: "root does not apply the plan \(path): \(fault.path) \(fault.why)",
            why: "a user who can change the plan determines which release is installed, and with which options",
            now: "Copy the plan to a directory that only root can write to, read the copy, and apply it. To copy it: "
                + "\(run: ["install", "-m", "600", path], "~root/")")
    }

    /// Throws if another user could have written the settings that specify programs and keys.
    func checkSettings(allowsOtherOwner: Bool) throws {
        guard let fault = try PathCustody.fault(ofFile: layout.settings, allowsOtherOwner: allowsOtherOwner),
            try !isTrusted()
        else { return }
        throw MoultError(
            .custody, .refused, what: "\(fault.path) \(fault.why)",
            why:
                "this file names the programs that moult runs, the keys that the store trusts, and the directory for caches",
            now: fault.remedy.map { "To fix this: \(run: $0)" }
                ?? "Run the command as user \(Files.userName(fault.owner ?? 0)).")
    }

    /// Returns the fault of the store's directory if another user owns it or can write to it: such a user determines which content
    /// an undo restores. Nil if root trusts the store, and for root itself, for which `check` checks more.
    func directoryFault() throws -> Fault? {
        guard !PathCustody.isRoot, let facts = try Files.facts(layout.root) else { return nil }
        if facts.kind == .link {
            return Fault(path: layout.root, why: "is a symbolic link", remedy: ["rm", layout.root], owner: nil)
        }
        return try isTrusted() ? nil : PathCustody.fault(ofFile: layout.root)
    }

    /// Returns whether a command that only reads may finish or undo an interrupted update. In a store that another user created
    /// or can write to, that user could have written the journal.
    func allowsRecovery() throws -> Bool {
        if try isTrusted() { return true }
        // In a sticky directory, other users cannot replace the store's own directory.
        let root = try Files.factsThroughLinks(layout.root)
        let isSticky = root.map { $0.mode & 0o1000 != 0 && [0, geteuid()].contains($0.owner) } ?? false
        return try !((isSticky ? [] : [layout.root]) + [layout.hidden, layout.transactions]).contains {
            try PathCustody.fault(ofFile: $0) != nil
        }
    }

    /// The directory for caches that the settings name; nil if they name none. Also nil if the settings are invalid, which
    /// every command that uses them reports.
    package var cacheRoot: String? {
        get throws {
            guard try Files.factsThroughLinks(layout.settings)?.kind == .file else { return nil }
            do { return try Settings.written(layout).cacheRoot } catch let error as MoultError {
                if Files.isDenied(error) { throw error }
                return nil
            }
        }
    }

    /// Returns the parts that a user other than root can change, starting at the root directory.
    package func faults() throws -> [Fault] { try storeFaults() + (cacheRoot.map { try cacheFaults($0) } ?? []) }

    private func storeFaults() throws -> [Fault] {
        var parts = [layout.settings, layout.hidden]
        if try Files.factsThroughLinks(layout.hidden)?.kind == .directory {
            parts += try Files.list(layout.hidden).map { "\(layout.hidden)/\($0)" }
        }
        // Both may be links, so their targets are checked as well.
        return try faults(of: parts, below: [layout.settings, layout.hidden])
    }

    /// Checks moult's own directory next to the caches, which contains the quarantine of the caches.
    private func cacheFaults(_ root: String) throws -> [Fault] {
        try faults(of: [StoreLayout.hidden(in: root)], below: [StoreLayout.hidden(in: root)])
    }

    private func faults(of parts: [String], below paths: [String]) throws -> [Fault] {
        var faults: [Fault] = []
        for fault in try paths.flatMap({ try PathCustody.faults(ofPath: $0) })
        where !parts.contains(fault.path) && !faults.contains(fault) { faults.append(fault) }
        // A user who can add a file to these directories can do harm, so the sticky bit is not enough.
        for path in parts {
            guard let facts = try Files.facts(path) else { continue }
            if let fault = PathCustody.fault(path, facts, allowsSticky: false) { faults.append(fault) }
        }
        return faults
    }

    /// Returns how to fix the fault: run as a different user, change the mode, or have root trust the store.
    package func advice(_ fault: Fault) -> Advice {
        let first: Advice =
            if let user = fault.owner.map(Files.userName) {
                "Run the command as user \(user), for instance with sudo -u \(user)."
            } else { "To fix this: \(run: fault.remedy ?? ["chmod", "go-w", fault.path])." }
        let trust = "&& \(shellLine(["echo", layout.root])) >> \(Self.trustedStores)"
        return "\(first) If you trust every user who can write there: "
            + "\(run: ["mkdir", "-p", Files.directory(of: Self.trustedStores)], trust)"
    }

    // MARK: trust

    private func isTrusted() throws -> Bool {
        let list = Self.trustedStores
        guard let facts = try Files.facts(list) else { return false }
        if let fault = PathCustody.fault(list, facts, allowsSticky: false) {
            throw MoultError(
                .custody, .refused, what: "\(list) \(fault.why)",
                why: "only root may change the list of trusted stores",
                now: "Restore its owner and mode: \(run: ["chown", "root", list], "&& chmod 644 \(list)")")
        }
        // A line that is not valid UTF-8 is the path of no store.
        let lines = (try Files.read(list, limit: 1 << 20) ?? []).split(separator: UInt8(ascii: "\n"))
            .compactMap { OutsideText.valid($0) }
        if lines.contains(where: { $0.hasBytes(of: layout.root) }) { return true }
        let resolved = try Files.resolved(layout.root)
        guard lines.contains(where: { $0.hasBytes(of: resolved) }) else { return false }
        // A link of another user could lead to the trusted store now, and to another store later.
        return try PathCustody.faults(ofPath: layout.root).allSatisfy {
            resolved.hasBytes(of: $0.path) || resolved.isBelow($0.path)
        }
    }
}
