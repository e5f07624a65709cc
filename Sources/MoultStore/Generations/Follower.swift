internal import MoultBasics
internal import MoultFiles
internal import StepKit
internal import Synchronization

/// Reports each generation that becomes current from now on. Use it from one thread; other threads may cancel it.
package final class Follower: Sendable {
    package struct Change: Sendable, Equatable {
        package let generation: String
        package let version: String
        /// The previously reported generation.
        package let previous: String?
        /// The names of the databases that differ from those of the previous generation.
        package let databases: [String]
    }

    private let layout: StoreLayout
    private let watch: DirectoryWatch
    private let seen: Mutex<String?>

    /// With `since`, installations after that generation are also reported, so that none is missed before the follower
    /// starts.
    package init(_ layout: StoreLayout, since generation: String? = nil) throws {
        // Throws if the store is missing.
        _ = try Settings.read(layout)
        self.layout = layout
        watch = try DirectoryWatch(layout.hidden)
        seen = Mutex(try generation ?? Generation.currentName(layout))
    }

    /// Blocks until the current generation differs from the last reported one, and returns the change; nil after cancellation.
    ///
    /// Switches in quick succession may be reported as one.
    package func next() throws -> Change? {
        repeat {
            if let change = try nextChange() { return change }
        } while try watch.wait()
        return nil
    }

    package func cancel() { watch.cancel() }

    private func nextChange() throws -> Change? {
        let previous = seen.withLock { $0 }
        guard let name = try Generation.currentName(layout), name != previous else {
            if try Files.facts(layout.hidden) != nil { return nil }
            throw MoultError(.store, what: "\(layout.root) is no longer a store", why: "\(layout.hidden) was removed")
        }
        let generation: Generation
        do { generation = try Generation.load(name, in: layout) } catch {
            // If a different generation is current by now, that one is reported instead.
            if try Generation.currentName(layout) != name { return try nextChange() }
            throw error
        }
        seen.withLock { $0 = name }
        // The previous generation may have been removed by now; then all databases count as changed.
        let before = try? previous.map { try Generation.load($0, in: layout).manifest }
        return Change(
            generation: name, version: generation.manifest.version.description, previous: previous,
            databases: generation.manifest.changed(since: before))
    }
}

extension Manifest {
    /// Returns the names of the databases that differ from those of the other release; all names without another release.
    func changed(since other: Manifest?) -> [String] {
        databases.filter { database in
            guard let before = other?.database(database.name) else { return true }
            return before.sha256 != database.sha256 || before.kind != database.kind || before.path != database.path
        }.map(\.name)
    }
}
