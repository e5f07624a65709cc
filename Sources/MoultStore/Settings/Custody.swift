internal import MoultBasics
internal import MoultFiles
internal import MoultLibc

/// The users who can change a store, and so decide which programs run when a command works on it.
///
/// A user who can write `moult.json` names programs; a user who can write `.moult`, or a directory above it, can replace the
/// files that moult checked. For root that would let every such user become root.
package struct Custody {
    /// What another user can change.
    package struct Fault: Sendable, Equatable {
        package let path: String
        package let why: String
        /// The command that ends it; nil if only a decision does.
        package let remedy: [String]?
        /// Who else could run the command; nil if the file is root's.
        package let owner: UInt32?
    }

    private let layout: StoreLayout

    package init(_ layout: StoreLayout) { self.layout = layout }

    /// Where root lists stores of other users, on which commands of root may work.
    package static let trustedStores = "/etc/moult/trusted-stores"

    /// Throws if this process is root's, another user can change the store, and root has not listed it as trusted.
    package func prove() throws {
        guard Self.isRoot, let fault = try faults().first, try !isTrusted() else { return }
        throw MoultError(
            .custody, .refused, what: "root does not use the store \(layout.root): \(fault.path) \(fault.why)",
            why: "a user who can change a store decides which programs run, and could become root", now: advice(fault))
    }

    /// Throws if another user could have written the settings that name programs and keys.
    func proveSettings() throws {
        guard let fault = try Self.fault(ofFile: layout.settings), try !isTrusted() else { return }
        throw MoultError(
            .custody, .refused, what: "\(fault.path) \(fault.why)",
            why: "it names programs that moult runs, or keys that it trusts",
            now: fault.remedy.map { "Change that: \(shellLine($0))" }
                ?? "Run the command as user \(Files.userName(fault.owner ?? 0)).")
    }

    /// The store's directory, if another user made it or can write to it: such a user decides which content an undo brings
    /// back. Nil if root listed the store as trusted. For commands of root, `prove` looks at more.
    package func directoryFault() throws -> Fault? {
        guard !Self.isRoot, let facts = try Files.facts(layout.root) else { return nil }
        if facts.kind == .link {
            return Fault(path: layout.root, why: "is a symbolic link", remedy: ["rm", layout.root], owner: nil)
        }
        return try isTrusted() ? nil : Self.fault(ofFile: layout.root)
    }

    /// The parts that a user other than root can change, from the root directory on down.
    package func faults() throws -> [Fault] {
        var parts = [layout.settings, layout.hidden]
        if try Files.factsThroughLinks(layout.hidden)?.kind == .directory {
            parts += try Files.list(layout.hidden).map { "\(layout.hidden)/\($0)" }
        }
        var faults: [Fault] = []
        // Both may be links, and then the directories count in which they end.
        for fault in try Self.faults(ofPath: layout.settings) + Self.faults(ofPath: layout.hidden)
        where !parts.contains(fault.path) && !faults.contains(fault) { faults.append(fault) }
        // A user who can add a file to these can do harm, so sticky is not enough.
        for path in parts {
            guard let facts = try Files.facts(path) else { continue }
            if let fault = Self.fault(path, facts, allowsSticky: false) { faults.append(fault) }
        }
        return faults
    }

    /// The ways out: another user, another mode, or root's word.
    package func advice(_ fault: Fault) -> String {
        let first =
            if let user = fault.owner.map(Files.userName) {
                "Run the command as user \(user), for instance with sudo -u \(user)."
            } else { "Change that: \(shellLine(fault.remedy ?? ["chmod", "go-w", fault.path]))." }
        return "\(first) If you trust every user who can write there: mkdir -p "
            + "\(Files.directory(of: Self.trustedStores)) && echo \(shellLine([layout.root])) >> \(Self.trustedStores)"
    }

    // MARK: paths

    /// Each directory and link on the way to a path belongs to root, and no one else can rename what is in it.
    private static func faults(ofPath path: String) throws -> [Fault] {
        var faults: [Fault] = []
        var rest = path.split(separator: "/").map(String.init)[...]
        var here = ""
        var links = 0
        func look(_ place: String) throws -> FileFacts? {
            guard let facts = try Files.facts(place.isEmpty ? "/" : place) else { return nil }
            if let fault = fault(place.isEmpty ? "/" : place, facts, allowsSticky: true) { faults.append(fault) }
            return facts
        }
        _ = try look("")
        while let name = rest.popFirst() {
            if name == "." { continue }
            if name == ".." {
                here = here.isEmpty ? "" : Files.directory(of: here)
                if here == "/" { here = "" }
                continue
            }
            let next = "\(here)/\(name)"
            // Missing files will belong to root.
            guard let facts = try look(next) else { break }
            guard facts.kind == .link, let target = try Files.target(ofLink: next) else {
                here = next
                continue
            }
            links += 1
            guard links <= 40 else { break }
            if target.hasPrefix("/") { here = "" }
            rest = (target.split(separator: "/").map(String.init) + rest)[...]
        }
        return faults
    }

    /// In a sticky directory only the owner of a file can rename it, and the directory's own.
    private static func fault(_ path: String, _ facts: FileFacts, allowsSticky: Bool) -> Fault? {
        if facts.owner != 0 {
            return Fault(
                path: path, why: "belongs to user \(Files.userName(facts.owner))", remedy: nil, owner: facts.owner)
        }
        let isSticky = facts.kind == .directory && facts.mode & 0o1000 != 0
        guard facts.kind != .link, facts.mode & 0o022 != 0, !(allowsSticky && isSticky) else { return nil }
        let who = facts.mode & 0o002 != 0 ? "every user" : "its group"
        return Fault(
            path: path, why: "can be written by \(who)",
            remedy: ["chmod", facts.kind == .directory && allowsSticky ? "+t" : "go-w", path], owner: nil)
    }

    /// A file is exclusive if it belongs to root or to this user, and no other user may write to it; a group counts as the
    /// user if it is the user's own.
    private static func fault(ofFile path: String) throws -> Fault? {
        guard let facts = try Files.factsThroughLinks(path) else { return nil }
        guard facts.owner == 0 || facts.owner == geteuid() else {
            return Fault(
                path: path, why: "belongs to user \(Files.userName(facts.owner))", remedy: nil, owner: facts.owner)
        }
        let others: UInt32 = facts.group == getegid() ? 0o002 : 0o022
        if facts.mode & others == 0 { return nil }
        return Fault(
            path: path, why: "can be written by other users", remedy: ["chmod", "go-w", path], owner: nil)
    }

    // MARK: who

    /// Whether this process has root's rights on this machine; root of a container without them is an ordinary user.
    private static var isRoot: Bool {
        guard geteuid() == 0 else { return false }
        // A file that cannot be read says nothing, and then this is root.
        guard let bytes = try? Files.read("\(SystemFeatures.proc)/self/uid_map", limit: 4096) else { return true }
        let first = String(decoding: bytes, as: UTF8.self).split(separator: "\n").first ?? "0 0"
        return first.split(separator: " ").prefix(2) == ["0", "0"]
    }

    private func isTrusted() throws -> Bool {
        let list = Self.trustedStores
        guard let facts = try Files.facts(list) else { return false }
        if let fault = Self.fault(list, facts, allowsSticky: false) {
            throw MoultError(
                .custody, .refused, what: "\(list) \(fault.why)", why: "only root may say which stores are trusted",
                now: "Give it back to root: chown root \(list); chmod 644 \(list)")
        }
        let lines = String(decoding: try Files.read(list, limit: 1 << 20) ?? [], as: UTF8.self).split(separator: "\n")
        let paths = [layout.root, try Files.resolved(layout.root)]
        return lines.contains { line in paths.contains { $0 == line } }
    }
}
