internal import MoultBasics
internal import MoultFiles

extension StoreLayout {
    /// Throws unless a reset of a writable database can move its files: it renames them between these directories after its
    /// decision, and no rename leads from one mounted file system to another.
    func requireOneFileSystem(moving path: String) throws {
        let root = Files.directory(of: file(path))
        let others = path.isAbsolutePath ? [Self.hidden(in: root)] : [hidden, generations, transactions]
        for directory in others + [quarantine(of: path)] {
            // A missing directory is created on the file system of the one above it.
            guard let facts = try Files.factsThroughLinks(directory), let base = try Files.factsThroughLinks(root),
                // A bind mount has the device of the file system that it shows.
                try facts.device != base.device
                    || MountedFileSystem.of(directory)?.mountPoint != MountedFileSystem.of(root)?.mountPoint
            else { continue }
            throw MoultError(
                .refused, .refused, what: "\(file(path)) cannot be set aside",
                why: "\(directory) is on another file system than \(root), so files cannot be moved between them",
                now: "Nothing was changed. Unmount that directory, or replace it with one on the file system of "
                    + "\(root).")
        }
    }
}
