package import MoultBasics
internal import MoultFiles
internal import MoultTrust
package import StepKit

/// The sealed files of one installed release: a directory that never changes once it is in place.
package struct Generation: Sendable {
    package static let manifestName = "manifest.json"

    package let name: String
    package let directory: String
    package let manifest: Manifest
    /// The manifest, byte for byte as it was signed.
    package let bytes: [UInt8]

    init(name: String, in layout: StoreLayout, manifest: Manifest, bytes: [UInt8]) {
        (self.name, directory, self.manifest, self.bytes) = (name, layout.generation(name), manifest, bytes)
    }

    /// Returns the name of a release's generation: its version, and eight digits of its manifest's digest.
    package static func name(of manifest: Manifest, bytes: [UInt8]) throws -> String {
        "\(manifest.version)+\(try SHA256.digest(of: bytes).prefix8)"
    }

    /// Returns whether a text is a name that moult gives to generations: a version, `+` and eight hexadecimal digits.
    package static func isName(_ name: String) -> Bool {
        guard let plus = name.lastIndex(of: "+"), Version(String(name[..<plus])) != nil else { return false }
        let digits = name[name.index(after: plus)...].utf8
        return digits.count == 8 && digits.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }

    package static func digest(of bytes: [UInt8]) throws -> String { try SHA256.digest(of: bytes).hex }

    package static func load(_ name: String, in layout: StoreLayout) throws -> Generation {
        let directory = layout.generation(name)
        let path = "\(directory)/\(manifestName)"
        do {
            guard let bytes = try Files.read(path, limit: Manifest.largest) else {
                throw MoultError(.generation, what: "\(path) does not exist")
            }
            let manifest = try Manifest(parsing: bytes, as: .sealed, source: path)
            return Generation(name: name, in: layout, manifest: manifest, bytes: bytes)
        } catch let error as MoultError where !Files.isDenied(error) {
            throw MoultError(
                .generation, what: "the manifest of generation \(name) cannot be read", why: error.problem,
                now: "Install release \(version(of: name)) again: \(moult: "apply", "RELEASE")", cause: error)
        }
    }

    /// Returns the generation that `current` points to; nil if nothing is installed.
    package static func currentName(_ layout: StoreLayout) throws -> String? {
        guard let target = try Files.target(ofLink: layout.current) else {
            if try Files.facts(layout.current) != nil {
                throw lost(layout, "is not a symlink", because: "another file has replaced the link")
            }
            guard try lastInstalled(layout) != nil else { return nil }
            throw lost(layout, "is missing", because: "this link shows which generation is in service")
        }
        guard target.hasPrefix("generations/"), isName(String(target.dropFirst(12))) else {
            throw lost(layout, "points to \(target)", because: "the target is not the name of a generation")
        }
        let name = String(target.dropFirst(12))
        // A missing generation can be restored with its release only if it was the last one installed.
        if try Files.facts(layout.generation(name)) == nil, let last = try lastInstalled(layout), last != name {
            throw lost(
                layout, "points to \(target)", because: "that generation is missing, and \(last) was installed last")
        }
        return name
    }

    private static func lost(_ layout: StoreLayout, _ what: String, because why: String) -> MoultError {
        MoultError(.store, what: "\(layout.current) \(what)", why: why, now: "Restore it with: \(moult: "recover")")
    }

    /// Returns the last installed generation according to the history, if it exists and no update is running; used only if
    /// `current` is missing or damaged.
    private static func lastInstalled(_ layout: StoreLayout) throws -> String? {
        guard try !names(layout).isEmpty, try Transaction.all(layout).isEmpty else { return nil }
        let last = try HistoryReader(layout).first { [.done, .finished].contains($0.outcome) && !$0.to.isEmpty }
        return try last.flatMap { try Files.facts(layout.generation($0.to)) == nil ? nil : $0.to }
    }

    /// Recreates the link `current` from the history, and returns the generation; nil if the link did not have to be recreated.
    /// Needs the store's lock.
    static func repairPointer(_ layout: StoreLayout) throws -> String? {
        do {
            _ = try currentName(layout)
            return nil
        } catch let error as MoultError where error.code == .store {
            guard let name = try lastInstalled(layout) else { throw error }
            if let facts = try Files.facts(layout.current), facts.kind != .link {
                // moult did not create this file, so it is moved away.
                try Files.rename(layout.current, to: try Files.firstFree("\(layout.root)/moult-current.old"))
            }
            let new = "\(layout.current).new"
            try Files.remove(new)
            try Files.symlink(to: StoreLayout.target(of: name), at: new)
            try Files.rename(new, to: layout.current)
            try Files.syncDirectory(layout.hidden)
            return name
        }
    }

    /// Returns the version at the start of a generation's name: the part before the last `+`.
    package static func version(of name: String) -> String {
        name.lastIndex(of: "+").map { String(name[..<$0]) } ?? name
    }

    /// Returns the names of the generations. Files and directories of other programs, such as `lost+found`, are ignored.
    package static func names(_ layout: StoreLayout) throws -> [String] {
        try Files.list(layout.generations).filter { name in
            try isName(name) && Files.facts(layout.generation(name))?.kind == .directory
        }
    }

    package func database(_ name: String) throws -> Database {
        if let database = manifest.database(name) { return database }
        let names = manifest.databases.map(\.name)
        throw MoultError(
            .store, .usage, what: "release \(manifest.version) has no database \"\(name)\"",
            why: itsNames("database", names), now: didYouMean(name, among: names))
    }

    package func path(_ member: String) -> String { "\(directory)/\(member)" }

    /// Returns the seal of the generation, as it was written when the files were sealed.
    package func seal() throws -> Seal {
        let path = path(Seal.fileName)
        guard let bytes = try Files.read(path, limit: 1 << 24) else {
            throw MoultError(
                .generation, what: "generation \(name) has no seal", why: "\(path) does not exist",
                now: "Install release \(Self.version(of: name)) again: \(moult: "apply", "RELEASE")")
        }
        return try Seal(parsing: bytes, source: path)
    }

    func damaged(_ path: String, _ why: String, isInstalled: Bool) -> MoultError {
        // Affects only the advice. A file that stays at the app's path is a link in the generation.
        let isInPlace = (try? Files.facts(path))??.kind == .link
        // A kept release may be older than the installed one.
        let option = isInstalled ? [] : ["--allow-downgrade"]
        return MoultError(
            .generation, .refused, what: "\(path) is not the installed file", why: "it \(why)",
            now: isInPlace
                ? "Install the app's files of release \(manifest.version) again."
                : "Install release \(manifest.version) again from its bundle: \(moult: ["apply", "RELEASE"] + option)")
    }
}

extension Seal.Entry {
    /// Reads the file and returns its metadata if it has the digest in the seal; nil if it differs.
    func verifiedFacts(of path: String) throws -> SealedFacts? {
        // The metadata is read first, so that it does not match if the file is written to while it is read.
        guard let facts = try Files.factsThroughLinks(path),
            try SHA256.digest(ofFileAt: path).hex == sha256
        else { return nil }
        return SealedFacts(sha256: sha256, facts)
    }
}

extension Generation {
    package struct Reference: Sendable, Equatable {
        package var version: Version
        package var generation: String
        package init(version: Version, generation: String) { (self.version, self.generation) = (version, generation) }
        package var json: JSON { .record(["version": version.description, "generation": generation]) }
    }
}
