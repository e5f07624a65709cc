import CLinux
internal import Synchronization

/// A process that also uses databases on its own, with the same SQLite.
package enum AppProcess {
    /// Makes SQLite keep every descriptor of a file that it still has open (databases.c), also for connections that the app has
    /// opened before or opens itself.
    package static func prepare() throws {
        _ = try ConnectionVFS.registeredName()
        isPrepared
        isThis.store(true, ordering: .relaxed)
    }

    /// Whether this process is an app, and not the command.
    package static var isCurrent: Bool { isThis.load(ordering: .relaxed) }

    private static let isPrepared: Void = moult_note_open_files()
    private static let isThis = Atomic(false)
}
