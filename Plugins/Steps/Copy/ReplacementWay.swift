internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import StepKit

/// Chooses how a file gets new content, depending on the state of the file; the plan shows the reason.
struct ReplacementWay {
    let path: String
    let forced: Database.Replacement?
    /// Whether the file can only be renamed, because the update moves it.
    var isMoved = false
    let context: PlanContext

    func choose() throws -> (way: Database.Replacement, why: String) {
        if !SystemFeatures.exchangesNames {
            guard forced != .exchange, !isMoved else {
                throw SystemFeatures.unavailable(
                    "cannot \(isMoved ? "move" : "replace") \(path)\(isMoved ? "" : " by exchange")",
                    because: "cannot tell whether another process has a file open")
            }
            return (.live, "this build cannot exchange files")
        }
        if isMoved { return (.exchange, "moved from its old path") }
        if let why = try reasonToKeepFile() { return (.live, why) }
        if let forced { return (forced, forced == .live ? "as the release says" : "only while no process has it open") }
        if let holder = try OpenFiles.holder(of: path) { return (.live, "\(holder) has it open") }
        // No process may have the file open during an exchange. Programs that open it one after another could prevent that
        // forever, whereas SQLite's lock can be taken between two of them.
        return context.isContested ? (.live, "programs keep opening it") : (.exchange, "no process has it open")
    }

    /// Throws if a link is dangling, if a user other than this one or root created it, or if this process runs as root and
    /// another user controls the target of the link.
    static func requireTrustedLink(_ database: Database, _ context: PlanContext) throws {
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

    /// Returns why the file must stay and only its content be replaced; nil if another file may take its place.
    private func reasonToKeepFile() throws -> String? {
        guard let facts = try Files.facts(path) else { return nil }
        if facts.kind == .link { return "the path is a symbolic link, so only the content of its target is replaced" }
        if facts.links > 1 { return "the file has other hard links" }
        if try Files.isMountPoint(path) { return "the file is a mount point" }
        return try Files.reasonAgainstCopyingOwner(of: facts)
    }
}
