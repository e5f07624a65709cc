package import MoultBasics
internal import StepKit

extension Plan {
    package struct Call: Sendable, Equatable {
        package var consumer: String
        package var by: String
        /// Whether the consumer is first asked to release the databases; otherwise it is only asked to reload them.
        package var isReleased: Bool
        package var databases: [Database]

        package struct Database: Sendable, Equatable {
            package var name: String
            package var kind: String
            /// The path of the database's file in the store; a full path for a cache stored outside the store.
            package var path: String
        }

        package var text: String {
            "\(consumer) (\(by)): \(isReleased ? "release and reload" : "reload") for \(databases.map(\.name).joined(separator: ", "))"
        }

        /// Returns whether this is a call to the given consumer. A consumer in the app may have the same name as one in the
        /// settings.
        func isOf(_ other: Consumer) -> Bool { consumer == other.name && by == other.by }

        package var json: JSON {
            .record([
                "consumer": consumer, "by": by, "release": isReleased,
                "databases": databases.map { JSON.record(["name": $0.name, "kind": $0.kind, "path": $0.path]) },
            ])
        }

    }

    /// Returns the consumers to call: those with a changed database, in order of registration.
    func calls(of consumers: [Consumer], from installed: Manifest?, to release: Manifest) -> [Call] {
        let changed = changedDatabases(from: installed, to: release)
        return consumers.compactMap { consumer in
            let mine = changed.filter { consumer.isConcerned(with: $0) }
            if mine.isEmpty { return nil }
            let databases = mine.compactMap { name in
                (release.database(name) ?? installed?.database(name)).map { database in
                    Call.Database(name: name, kind: database.kind.rawValue, path: path(of: database))
                }
            }
            return Call(
                consumer: consumer.name, by: consumer.by, isReleased: mine.contains { requiresRelease($0) },
                databases: databases)
        }
    }

    /// Returns the path of a database: relative to the store, or absolute if caches are in a separate directory.
    func path(of database: Database) -> String {
        guard database.kind.isDisposable, let root = request.cacheRoot else { return database.path }
        return "\(root)/\(database.path)"
    }

    /// Returns the databases whose content changes, or that are added or removed. A read-only file whose content is the same in
    /// the new generation does not count.
    private func changedDatabases(from installed: Manifest?, to release: Manifest) -> [String] {
        var names: [String] = []
        for effect in effects where effect.changesStore {
            guard let name = effect.database, !names.contains(name), isChange(effect, name, installed, release) else {
                continue
            }
            names.append(name)
        }
        return names
    }

    private func isChange(_ effect: Effect, _ name: String, _ installed: Manifest?, _ release: Manifest) -> Bool {
        switch effect.change {
        case .retire, .seal, .linkInPlace, .restore:
            guard let before = installed?.database(name), let after = release.database(name) else { return true }
            // A repair replaces the files of the same generation, and processes may have the damaged ones open.
            return before.sha256 != after.sha256 || before.path != after.path || from?.generation == to.generation
        case .keepTemplate: return false
        default: return true
        }
    }

    /// Returns whether processes must close a database, because the plan moves, replaces or migrates its file.
    func requiresRelease(_ database: String) -> Bool {
        effects.contains { $0.database == database && $0.change.traits.takesOutOfUse }
    }
}

extension Plan.Call {
    init(_ fields: Fields) throws {
        self.init(
            consumer: try fields.string("consumer"), by: try fields.string("by"),
            isReleased: try fields.optionalBool("release") ?? false,
            databases: try fields.objects("databases").map {
                Database(name: try $0.string("name"), kind: try $0.string("kind"), path: try $0.string("path"))
            })
    }
}

extension Plan {
    /// The files that no other process may have open when the plan is applied.
    var exclusivePaths: [String] { effects.map(\.change.traits).filter { $0.handling == .setAside }.flatMap(\.paths) }
}
