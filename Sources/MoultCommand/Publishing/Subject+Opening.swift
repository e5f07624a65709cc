internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultPublish
internal import StepKit

extension Call {
    /// Opens the subject that an argument specifies: a store, or a file of any kind that contains databases.
    func subject(_ path: String) throws -> Subject {
        if try Files.factsThroughLinks(path)?.kind == .directory {
            try check(path)
            return try installed(StoreLayout(root: path), path)
        }
        let bar = progressBar()
        defer { bar.end() }
        return try Subject.open(path) { done, total in
            try Interruption.check()
            bar.show(Progress("unpack \(Files.name(of: path))", done: done, of: total))
        }
    }

    /// Returns the installed release of the chosen store.
    func installedSubject() throws -> Subject { try installed(layout(), store()) }

    private func installed(_ layout: StoreLayout, _ path: String) throws -> Subject {
        guard try Files.facts(layout.settings) != nil else {
            guard try Files.factsThroughLinks(path) != nil else {
                throw MoultError(.store, what: "no store at \(path)", why: "no such directory", now: Subject.kinds)
            }
            throw MoultError(
                .store, what: "\(path) is a directory but not a store", why: "\(layout.settings) does not exist",
                now: Subject.kinds)
        }
        guard let lease = try Lease.take(layout) else {
            throw MoultError(
                .store, what: "nothing is installed in \(layout.root)", why: "no release has been installed yet",
                now: "Install one: \(moult: "apply", "RELEASE")")
        }
        let store = StoreSnapshot(layout)
        let generation = try store.generation(lease.generation)
        let assessment = try Assessment(of: generation, in: store)
        let parts = try generation.manifest.databases.map { database in
            func ifThere(_ path: String) throws -> String? {
                try Files.factsThroughLinks(path)?.kind == .file ? path : nil
            }
            if database.kind.isSealed {
                return Subject.Part(
                    name: database.name, path: try ifThere(generation.path(database.member)), declared: database)
            }
            return Subject.Part(
                name: database.name, path: try ifThere(store.place(of: database)), declared: database,
                fault: try assessment.state(of: database, .glance).fault?.what)
        }
        return Subject(
            .store, path, manifest: generation.manifest, bytes: generation.bytes, parts: parts, keeping: lease)
    }
}

extension Interruption {
    /// Throws if the user or the system asked the process to end.
    static func check(_ what: String = "stopped") throws {
        guard isRequested else { return }
        throw MoultError(.interrupted, what: what, why: name.map { "moult received \($0)" })
    }

    /// Runs a long operation. After a request to stop, any error is reported as an interruption, because stopped code fails in
    /// various ways.
    static func reporting<Result>(_ what: String, _ body: () throws -> Result) throws -> Result {
        do { return try body() } catch {
            try check(what)
            throw error
        }
    }
}
