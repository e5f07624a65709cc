/// A look at the store, with no way to change it.
public protocol StoreView: Sendable {
    /// The store's directory.
    var root: String { get }
    /// The full path of a file of the store; a full path stays as it is.
    func path(_ name: String) -> String
    /// The file at a path of the store, without following links.
    func look(_ path: String) throws -> Found
    /// The digest of the release content by which a shared database at a path is marked; nil without a mark.
    func marker(_ path: String) throws -> String?
    /// Whether a file is at a path, or where a link at it leads.
    func leads(_ path: String) throws -> Bool
    /// The file at the place of a generation: a directory if it is kept.
    func look(forGeneration generation: String) throws -> Found
    /// Whether a path is the stable link to a sealed database.
    func isLinked(_ path: String, to member: String) throws -> Bool
    /// Where a sealed file of a generation lies.
    func path(ofMember member: String, in generation: String) -> String
    /// The database that the newest kept release with any database at a path has there.
    func earlierDatabase(at path: String) throws -> Database?
    /// Whether a kept generation's files are the very ones that were sealed; throws what is wrong with them.
    func proveSeal(of generation: String) throws
}

/// The file at a path.
public enum Found: Sendable, Equatable {
    /// Nothing is there.
    case nothing
    /// A regular file.
    case file(size: Int)
    /// A symbolic link that moult made to a read-only database, and its target.
    case sealedLink(to: String)
    /// Any other symbolic link, and what it points at.
    case link(to: String)
    /// A directory.
    case directory
    /// A device, a pipe, a socket.
    case other
}

extension StoreView {
    /// No mark: for views that look at names only.
    public func marker(_ path: String) throws -> String? { nil }
    /// None: for views of a store without earlier releases.
    public func earlierDatabase(at path: String) throws -> Database? { nil }

    /// For views that look at names only.
    public func leads(_ path: String) throws -> Bool { try look(path) != .nothing }

    /// For stores whose databases are in their own directory.
    public func path(_ name: String) -> String { name.hasPrefix("/") ? name : "\(root)/\(name)" }
}
