internal import MoultBasics
internal import MoultLibc

extension Files {
    /// Returns the absolute path of a file with all symlinks resolved; the file itself need not exist.
    ///
    /// A symlink that belongs to another user is followed only if its target belongs to the same user or does not exist:
    /// otherwise that user could choose which of this user's files is opened. Linux applies a similar rule in directories such
    /// as /tmp.
    package static func resolvedForOpening(_ path: String) throws -> String {
        var rest = try absolute(path).split(separator: "/").map(String.init)[...]
        var here = ""
        var links = 0
        while let name = rest.popFirst() {
            if name == "." { continue }
            if name == ".." {
                here = here.isEmpty || directory(of: here) == "/" ? "" : directory(of: here)
                continue
            }
            let next = "\(here)/\(name)"
            guard let facts = try facts(next) else { return ([next] + rest).joined(separator: "/") }
            guard facts.kind == .link, let target = try target(ofLink: next) else {
                here = next
                continue
            }
            links += 1
            guard links <= 40 else {
                throw MoultError(
                    .system, what: "cannot open \(path)", why: "it leads through more than 40 symbolic links")
            }
            try requireTrusted(link: next, facts, to: target, opening: path)
            if target.hasPrefix("/") { here = "" }
            rest = (target.split(separator: "/").map(String.init) + rest)[...]
        }
        return here.isEmpty ? "/" : here
    }

    private static func requireTrusted(link: String, _ facts: FileFacts, to target: String, opening path: String) throws
    {
        if facts.owner == 0 || facts.owner == geteuid() { return }
        guard let owner = try factsThroughLinks(link)?.owner, owner != facts.owner else { return }
        throw MoultError(
            .system, .refused, what: "cannot open \(path)",
            why: "the symbolic link \(link) belongs to user \(userName(facts.owner)), but its target belongs to user "
                + "\(userName(owner))",
            now: "Find out which program created the link, then move it away: "
                + shellLine(["mv", link, "\(link).old"]))
    }
}
