internal import MoultBasics
internal import MoultFiles
internal import StepKit
internal import Synchronization

/// The last update whose release is in place with the content of all its databases. An update writes this record after its last
/// commit; `current` switches before that, so the pointer alone does not tell a reader that a writable database has its new content.
/// The undo of an announced update announces the old release under a new ID, or removes the record after a first install.
package struct Announcement: Sendable, Equatable {
    package let generation: String
    /// The update. Another update of the same release changes only this.
    package let transaction: String

    package init(generation: String, transaction: String) {
        (self.generation, self.transaction) = (generation, transaction)
    }

    /// Returns nil if nothing was announced yet, and for a record that a power failure has torn: it also ended all readers.
    package static func read(_ layout: StoreLayout) throws -> Announcement? {
        // Anything else at this path is replaced by the next update.
        guard try Files.facts(layout.announced)?.kind == .file else { return nil }
        guard let bytes = try Files.read(layout.announced, limit: 1 << 12) else { return nil }
        let words = OutsideText.valid(bytes.prefix { $0 != UInt8(ascii: "\n") })?.split(separator: " ").map(String.init)
        guard let words, words.count == 2, Generation.isName(words[0]), Transaction.isID(words[1]) else { return nil }
        return Announcement(generation: words[0], transaction: words[1])
    }

    /// Not synced: recovery writes it again, and a power failure ends all readers.
    package func write(_ layout: StoreLayout) throws {
        if let facts = try Files.facts(layout.announced), facts.kind == .directory {
            // moult did not create this directory, so it is moved away.
            try Files.rename(layout.announced, to: try Files.firstFree("\(layout.root)/moult-announced.old"))
        }
        do {
            try Files.replace(
                layout.announced, with: Array("\(generation) \(transaction)\n".utf8), mode: 0o644, durable: false)
        } catch {
            // The first error is the one to report; the next command that writes removes what is left.
            _ = try? Files.removeStaged(of: layout.announced)
            throw error
        }
    }

    /// What a reader has seen: the generation that it reads, and the last announcement before it began to read.
    package struct Seen: Sendable, Equatable {
        package let generation: String?
        package let announced: Announcement?

        package init(generation: String?, announced: Announcement?) {
            (self.generation, self.announced) = (generation, announced)
        }

        package static func now(_ layout: StoreLayout) throws -> Seen {
            // Throws if the pointer is damaged.
            _ = try Generation.currentName(layout)
            let last = try Announcement.read(layout)
            return Seen(generation: last?.generation, announced: last)
        }

        /// What a reader has seen that knows only the name of its generation. If that is in service, the reader has seen all that is
        /// announced; otherwise, nothing.
        package init(reading generation: String, _ layout: StoreLayout) throws {
            let isCurrent = try Generation.currentName(layout) == generation
            self.init(generation: generation, announced: isCurrent ? try Announcement.read(layout) : nil)
        }

        /// Returns the announcement that the reader has not seen; nil without one, or while an update is not complete.
        func news(_ layout: StoreLayout) throws -> Announcement? {
            let current = try Generation.currentName(layout)
            guard let last = try Announcement.read(layout) else { return nil }
            if last != announced { return last }
            // The reader began in the middle of an update that was then undone.
            return generation != last.generation && current == last.generation ? last : nil
        }
    }
}

/// Reports each release once the content of all its databases is there. Use it from one thread; other threads may cancel it.
package final class Follower: Sendable {
    package struct Change: Sendable, Equatable {
        package let generation: String
        package let version: String
        package let previous: String?
        /// The names of the databases whose content the reader may not have seen.
        package let databases: [String]

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
        repeat { if let change = try nextChange() { return change } } while try watch.wait()
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
        if generation.name == previous { return generation.manifest.databases.filter { !$0.kind.isSealed }.map(\.name) }
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
