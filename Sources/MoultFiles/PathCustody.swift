internal import MoultBasics
internal import MoultLibc

/// Determines which users can change a file, or the directories and links that lead to it.
package enum PathCustody {
    /// A file or directory that another user can change.
    package struct Fault: Sendable, Equatable {
        package let path: String
        package let why: String
        /// The command that fixes the fault; nil if the operator must choose the remedy.
        package let remedy: [String]?
        /// The user who could run the command instead; nil if the file belongs to root.
        package let owner: UInt32?

        package init(path: String, why: String, remedy: [String]?, owner: UInt32?) {
            (self.path, self.why, self.remedy, self.owner) = (path, why, remedy, owner)
        }
    }

    /// Returns the faults of the directories and links on the way to a path: those that belong neither to root nor to `user`, or
    /// whose entries other users can rename.
    package static func faults(ofPath path: String, for user: UInt32 = 0) throws -> [Fault] {
        var faults: [Fault] = []
        var rest = path.pathParts().map(String.init)[...]
        var here = ""
        var links = 0
        func inspect(_ place: String) throws -> FileFacts? {
            guard let facts = try Files.facts(place.isEmpty ? "/" : place) else { return nil }
            if let fault = fault(place.isEmpty ? "/" : place, facts, allowsSticky: true, for: user) {
                faults.append(fault)
            }
            return facts
        }
        _ = try inspect("")
        while let name = rest.popFirst() {
            if name == "." { continue }
            if name == ".." {
                here = here.isEmpty ? "" : Files.directory(of: here)
                if here == "/" { here = "" }
                continue
            }
            let next = "\(here)/\(name)"
            // A missing file will belong to root when it is created.
            guard let facts = try inspect(next) else { break }
            guard facts.kind == .link, let target = try Files.target(ofLink: next) else {
                here = next
                continue
            }
            links += 1
            guard links <= 40 else { break }
            if target.isAbsolutePath { here = "" }
            rest = (target.pathParts().map(String.init) + rest)[...]
        }
        return faults
    }

    /// Returns the fault of a directory or link, if any. In a sticky directory, only the owner of a file or of the directory
    /// can rename the file.
    package static func fault(
        _ path: String, _ facts: FileFacts, allowsSticky: Bool, for user: UInt32 = 0
    ) -> Fault? {
        if facts.owner != 0, facts.owner != user {
            return Fault(
                path: path, why: "belongs to user \(Files.userName(facts.owner))", remedy: nil, owner: facts.owner)
        }
        let isSticky = facts.kind == .directory && facts.mode & 0o1000 != 0
        guard facts.kind != .link, facts.mode & 0o022 != 0, !(allowsSticky && isSticky) else { return nil }
        // A group whose only member is the user counts as the user.
        if user != 0, facts.mode & 0o002 == 0, Files.isPrivateGroup(facts.group) { return nil }
        let who = facts.mode & 0o002 != 0 ? "every user" : "its group"
        return Fault(
            path: path, why: "is writable by \(who)",
            remedy: ["chmod", facts.kind == .directory && allowsSticky ? "+t" : "go-w", path], owner: nil)
    }

    /// Returns the fault of a file that belongs to neither root nor this user, or to which another user may write; nil
    /// otherwise. A group whose only member is the user counts as the user.
    package static func fault(ofFile path: String, allowsOtherOwner: Bool = false) throws -> Fault? {
        if let link = try Files.facts(path), link.kind == .link, link.owner != 0, link.owner != geteuid() {
            return Fault(
                path: path, why: "is a link of user \(Files.userName(link.owner))", remedy: ["rm", path], owner: nil)
        }
        guard let facts = try Files.factsThroughLinks(path) else { return nil }
        guard facts.owner == 0 || facts.owner == geteuid() || allowsOtherOwner else {
            return Fault(
                path: path, why: "belongs to user \(Files.userName(facts.owner))", remedy: nil, owner: facts.owner)
        }
        // The bits of the group are also the limit for all users in an access control list.
        let isOnlyUser = try Files.isPrivateGroup(facts.group) && !Files.hasAccessList(path)
        if facts.mode & (isOnlyUser ? 0o002 : 0o022) == 0 { return nil }
        return Fault(
            path: path, why: "is writable by other users", remedy: ["chmod", "go-w", path], owner: nil)
    }

    /// Whether this process has root's rights on this machine; root in a container without them counts as an ordinary user.
    package static var isRoot: Bool {
        guard geteuid() == 0 else { return false }
        // If the file cannot be read, assume that this is root.
        guard let bytes = try? Files.read("\(SystemFeatures.proc)/self/uid_map", limit: 4096) else { return true }
        let first = String(decoding: bytes, as: UTF8.self).split(separator: "\n").first ?? "0 0"
        return first.split(separator: " ").prefix(2) == ["0", "0"]
    }

    // MARK: programs

    /// Throws if another user can change a program that this process is about to run, or the script that an interpreter is about
    /// to run. Every program of the operator passes this check: consumers, steps, uploads, credential helpers and hooks.
    /// `Subprocess.run` calls it.
    ///
    /// For root, no other user may be able to change the directories and links on the way to the program either. An ordinary
    /// user's own PATH is trusted. `directory` is the working directory of the program.
    package static func check(program words: [String], path: String? = nil, in directory: String? = nil) throws {
        let places = path?.split(ascii: ":").map { String($0) } ?? ProcessEnvironment.searchPath
        guard let name = words.first, !name.isEmpty, let program = Subprocess.program(name, in: places) else { return }
        var programs = name.containsSlash || isRoot ? [program] : []
        if let script = script(words) { programs.append(script) }
        for program in programs {
            let place = try program.isAbsolutePath ? program : "\(directory ?? Files.absolute("."))/\(program)"
            guard try Files.factsThroughLinks(place)?.kind == .file,
                let fault = try isRoot ? faults(ofPath: place).first : fault(ofFile: place)
            else { continue }
            let user = isRoot ? "root" : "user \(Files.userName(geteuid()))"
            let owner = isRoot ? "root" : Files.userName(geteuid())
            throw MoultError(
                .system, .refused, what: "\(user) does not run \(program): \(fault.path) \(fault.why)",
                why: "a user who can change a program determines what it does with the rights of \(user)",
                now: fault.remedy.map { "To fix this: \(run: $0)" }
                    ?? "If you trust the program: \(run: ["chown", "-h", owner, fault.path]). Or use a copy that only \(user) can change."
            )
        }
    }

    private static let interpreters = [
        "sh", "bash", "dash", "ash", "zsh", "ksh", "env", "python", "perl", "ruby", "node", "php", "lua", "tclsh",
    ]

    /// Returns the path of the script that an interpreter runs; nil if the program is not one, or gets its script as text.
    private static func script(_ words: [String]) -> String? {
        guard let name = words.first.map(Files.name), interpreters.contains(where: { name.hasPrefix($0) }),
            !words.contains("-c"), !words.contains("-e")
        else { return nil }
        return words.dropFirst().first { !$0.hasPrefix("-") && $0.containsSlash }
    }
}
