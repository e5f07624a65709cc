internal import MoultBasics
internal import MoultFiles
internal import StepKit
internal import Synchronization

/// Reports each release once the content of all its databases is there. Use it from one thread; other threads may cancel it.
package final class Follower: Sendable {
    package struct Change: Sendable, Equatable {
        package let generation: String
        package let version: String
        /// The previously reported generation.
        package let previous: String?
        /// The names of the databases whose content the reader may not have seen.
        package let databases: [String]

        /// Returns the changed rows of these databases.
        package func rows(_ layout: StoreLayout, limit: Int) throws -> [DatabaseChanges] {
            try ChangeRecord.changes(of: databases, since: previous, in: generation, layout, limit: limit)
        }
    }

    private let layout: StoreLayout
    private let watch: DirectoryWatch
    private let seen: Mutex<Announcement.Seen>

    /// Reports what is news after `seen`; nil stands for what is announced now.
    package init(_ layout: StoreLayout, since seen: Announcement.Seen? = nil) throws {
        // Throws if the store is missing.
        _ = try Settings.read(layout)
        self.layout = layout
        watch = try DirectoryWatch(layout.hidden)
        self.seen = Mutex(try seen ?? .now(layout))
    }

    /// Blocks until an update is announced, and returns it; nil after cancellation. Updates in quick succession may be reported as one.
    package func next() throws -> Change? {
        repeat {
            if let change = try nextChange() { return change }
        } while try watch.wait()
        return nil
    }

    package func cancel() { watch.cancel() }

    private func nextChange() throws -> Change? {
        let before = seen.withLock { $0 }
        guard let news = try before.news(layout) else {
            if try Files.facts(layout.hidden) != nil { return nil }
            throw MoultError(.store, what: "\(layout.root) is no longer a store", why: "\(layout.hidden) was removed")
        }
        let generation: Generation
        do { generation = try Generation.load(news.generation, in: layout) } catch {
            // If another update is complete by now, that one is reported instead.
            if try Announcement.read(layout) != news { return try nextChange() }
            throw error
        }
        seen.withLock { $0 = .init(generation: news.generation, announced: news) }
        return Change(
            generation: news.generation, version: generation.manifest.version.description,
            previous: before.generation, databases: changed(generation, since: before.generation))
    }

    /// Returns the names of the databases that differ from those of the previous generation. Without that generation, which may have
    /// been removed, all count as changed; in the same generation, those that are not sealed.
    private func changed(_ generation: Generation, since previous: String?) -> [String] {
        if generation.name == previous {
            return generation.manifest.databases.filter { !$0.kind.isSealed }.map(\.name)
        }
        let before = try? previous.map { try Generation.load($0, in: layout).manifest }
        return generation.manifest.changed(since: before)
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
