internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import StepKit

/// A symbolic link at the path of a writable database, through which only the content of its target is replaced.
enum TrustedLink {
    /// Throws if a link is dangling, if a user other than this one or root created it, or if this process runs as root and
    /// another user controls the target of the link.
    static func require(_ database: Database, _ context: PlanContext) throws {
        let path = context.store.path(database.path)
        guard let link = try Files.facts(path), link.kind == .link else { return }
        guard try Files.factsThroughLinks(path)?.kind == .file else {
            throw context.missing(database, at: database.path)
        }
        let target = try Files.resolved(path)
        guard geteuid() == 0 else {
            if link.owner == 0 || link.owner == geteuid() { return }
            throw MoultError(
                Template.code, .refused, what: "\(path) is a symbolic link to \(target)",
                why: "user \(link.owner) created the link, and could make this command change another user's file",
                now: "Nothing was changed. If the link is correct, recreate it as the user who runs the command.")
        }
        let deciders = [link, try Files.facts(target), try Files.facts(Files.directory(of: target))].compactMap(\.self)
        guard let other = deciders.first(where: { $0.owner != 0 }) else { return }
        throw MoultError(
            Template.code, .refused, what: "\(path) is a symbolic link to \(target)",
            why: "user \(other.owner) controls the link, the file or its directory, and this command runs as root",
            now:
                "Nothing was changed. Run the command as that user, or make root the owner of the link, the file and its directory."
        )
    }
}
