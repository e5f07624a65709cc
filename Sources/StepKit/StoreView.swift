internal import MoultBasics

/// A read-only view of the store.
public protocol StoreView: Sendable {
    /// The store's directory.
    var root: String { get }
    /// Returns the absolute path of a file in the store; an absolute path is returned unchanged.
    func path(_ name: String) -> String
    /// Returns the kind of file at a path in the store, without following links.
    func look(_ path: String) throws -> Found
    /// Returns the digest in the release marker of the shared database at a path; nil without a marker.
    func marker(_ path: String) throws -> String?
    /// Returns whether a file exists at a path or at the target of a link there.
    func leads(_ path: String) throws -> Bool
    /// Returns the kind of file at the path of a generation: a directory if the generation is kept.
    func look(forGeneration generation: String) throws -> Found
    /// Returns whether a path is the stable link to a read-only database.
    func isLinked(_ path: String, to member: String) throws -> Bool
    /// Returns the path of a sealed file of a generation.
    func path(ofMember member: String, in generation: String) -> String
    /// Returns the databases of the kept releases, those of the newest release first.
    func earlierDatabases() throws -> [Database]
    /// Returns the shared database with this digest in the newest kept release that has it.
    func releasedDatabase(digest: String) throws -> ReleasedDatabase?
    /// Throws if the files of a kept generation are not the ones that were sealed.
    func proveSeal(of generation: String) throws
}

/// A shared database of a kept release. A file has content of that release if its release marker has the digest of this
/// database.
public struct ReleasedDatabase: Sendable {
    /// The generation of the release.
    public let generation: String
    /// The version of the release.
    public let version: Version
    /// The database in the manifest of the release.
    public let database: Database

    /// Creates a database of the release with this version.
    public init(_ database: Database, generation: String, version: Version) {
        (self.database, self.generation, self.version) = (database, generation, version)
    }
}

/// The kind of file at a path.
public enum Found: Sendable, Equatable {
    /// Nothing is there.
    case nothing
    /// A regular file.
    case file(size: Int)
    /// A symbolic link that moult created to a read-only database, and its target.
    case sealedLink(to: String)
    /// Any other symbolic link, and its target.
    case link(to: String)
    /// A directory.
    case directory
    /// A device, a pipe or a socket.
    case other
}

extension StoreView {
    /// Returns nil, for views that know only names.
    public func marker(_ path: String) throws -> String? { nil }
    /// Returns an empty list, for views of a store without earlier releases.
    public func earlierDatabases() throws -> [Database] { [] }
    /// Returns nil, for views of a store without earlier releases.
    public func releasedDatabase(digest: String) throws -> ReleasedDatabase? { nil }

    /// Returns whether `look` finds something, for views that know only names.
    public func leads(_ path: String) throws -> Bool { try look(path) != .nothing }

    /// Returns the path in the store's directory, for stores that have their databases there.
    public func path(_ name: String) -> String { name.isAbsolutePath ? name : "\(root)/\(name)" }
}
