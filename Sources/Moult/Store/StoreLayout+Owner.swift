internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import StepKit

extension StoreLayout {
    /// Returns the store that manages a path, and the command that repairs it; nil for any other path.
    package static func owner(of path: String) throws -> (store: String, repair: [String])? {
        // The directory may be missing; creating the file reports that.
        guard try Files.factsThroughLinks(Files.directory(of: path)) != nil else { return nil }
        let directory = try Files.resolved(Files.directory(of: path))
        let place = "\(directory == "/" ? "" : directory)/\(Files.name(of: path))"
        var root = directory
        while true {
            let layout = try StoreLayout(root: root)
            if try layout.isOfOwner(), let command = try layout.command(for: place) { return (root, command) }
            if root == "/" { return nil }
            root = Files.directory(of: root)
        }
    }

    /// Returns whether the directory has a store. In a directory such as /tmp, any user could pretend that a store manages the
    /// files below it, so there the store must belong to root, to this user, or to the owner of the directory.
    private func isOfOwner() throws -> Bool {
        guard let settings = try Files.facts(settings) else { return false }
        guard let directory = try Files.factsThroughLinks(root), directory.mode & 0o002 != 0 else { return true }
        let users = [0, geteuid(), directory.owner]
        return try users.contains(settings.owner) && Files.facts(hidden).map { users.contains($0.owner) } ?? true
    }

    private func command(for place: String) throws -> [String]? {
        let apply = ["moult", "apply", "RELEASE"]
        if place.isBelow(hidden) || place == hidden || own.contains(place) || place == settings { return apply }
        let store = StoreSnapshot(self)
        guard let generation = try store.installed else { return nil }
        let database = try generation.manifest.databases.first { database in
            let file = try store.place(of: database)
            let directory = Files.directory(of: file)
            guard try Files.factsThroughLinks(directory) != nil else { return false }
            return "\(try Files.resolved(directory))/\(Files.name(of: file))" == place
        }
        return database.map { $0.kind.isSealed ? apply : Advice.resetCommand(for: $0) }
    }
}
