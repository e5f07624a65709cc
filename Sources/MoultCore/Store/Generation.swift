internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
package import StepKit

/// One installed release's sealed files: a directory that is never changed once it is in its place.
package struct Generation: Sendable {
    package static let manifestName = "manifest.json"
    /// The generation of files that were at their paths before moult; never collected on its own.
    package static let adopted = "0+adopted"

    package let name: String
    package let directory: String
    private let layout: StoreLayout
    package let manifest: Manifest
    /// The manifest as it was signed, byte for byte.
    package let bytes: [UInt8]

    /// The name of a release's generation: its version, and eight digits of its manifest's digest.
    package static func name(of manifest: Manifest, bytes: [UInt8]) throws -> String {
        "\(manifest.version)+\(try SHA256.digest(of: bytes).prefix8)"
    }

    /// Whether a text can be a name of a generation and nothing else: a version, `+`, and what makes it unique.
    static func isName(_ name: String) -> Bool {
        let characters = name.utf8.allSatisfy {
            (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || [43, 45, 46].contains($0)
        }
        return characters && name.contains("+") && !name.hasPrefix(".") && !name.contains("..")
    }

    static func digest(of bytes: [UInt8]) throws -> String { try SHA256.digest(of: bytes).hex }

    package static func load(_ name: String, in layout: StoreLayout) throws -> Generation {
        let directory = layout.generation(name)
        let path = "\(directory)/\(manifestName)"
        do {
            guard let bytes = try Files.read(path, limit: Manifest.largest) else {
                throw MoultError(.generation, what: "\(path) is not there")
            }
            let manifest = try Manifest(parsing: bytes, as: .sealed, source: path)
            return Generation(name: name, directory: directory, layout: layout, manifest: manifest, bytes: bytes)
        } catch let error as MoultError where !Files.isDenied(error) {
            throw MoultError(
                .generation, what: "the manifest of generation \(name) cannot be read",
                why: error.what + (error.why.map { ": \($0)" } ?? ""),
                now: "Bring release \(version(of: name)) in again: moult apply MANIFEST", cause: error)
        }
    }

    /// The name that `current` points at; nil if nothing is installed.
    package static func currentName(_ layout: StoreLayout) throws -> String? {
        guard let target = try Files.target(ofLink: layout.current) else {
            if try Files.facts(layout.current) != nil {
                throw lost(layout, "it is no link", because: "something else was put in its place")
            }
            guard try lastInstalled(layout) != nil else { return nil }
            throw lost(layout, "it is not there", because: "it says which generation is in service")
        }
        guard target.hasPrefix("generations/"), isName(String(target.dropFirst(12))) else {
            throw lost(layout, "it points at \(target)", because: "that is no generation of this store")
        }
        return String(target.dropFirst(12))
    }

    private static func lost(_ layout: StoreLayout, _ what: String, because why: String) -> MoultError {
        MoultError(
            .store, what: "\(layout.current) cannot be used: \(what)", why: why, now: "Put it back with: moult recover")
    }

    /// What the history says was installed last, if it is there and no update is under way; asked only where the pointer
    /// cannot tell.
    private static func lastInstalled(_ layout: StoreLayout) throws -> String? {
        guard try names(layout).contains(where: { isName($0) }), try Transaction.all(layout).isEmpty else { return nil }
        let last = try HistoryReader(layout).first { [.done, .finished].contains($0.outcome) && !$0.to.isEmpty }
        return try last.flatMap { try Files.facts(layout.generation($0.to)) == nil ? nil : $0.to }
    }

    /// Makes the pointer again from the history; gives the generation if it had to be made. Needs the store's lock.
    static func repairPointer(_ layout: StoreLayout) throws -> String? {
        do {
            _ = try currentName(layout)
            return nil
        } catch let error as MoultError where error.code == .store {
            guard let name = try lastInstalled(layout) else { throw error }
            if let facts = try Files.facts(layout.current), facts.kind != .link {
                // Whatever it is, moult did not make it.
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

    package static func current(_ layout: StoreLayout) throws -> Generation? {
        try currentName(layout).map { try load($0, in: layout) }
    }

    /// The installed generation, or what a release that is applied again says of it where its own manifest is damaged.
    static func current(_ layout: StoreLayout, orAs bytes: [UInt8], _ manifest: Manifest) throws -> Generation? {
        guard let name = try currentName(layout) else { return nil }
        do { return try load(name, in: layout) } catch {
            guard !Files.isDenied(error), try Self.name(of: manifest, bytes: bytes) == name else { throw error }
            return Generation(
                name: name, directory: layout.generation(name), layout: layout, manifest: manifest, bytes: bytes)
        }
    }

    /// The version that is installed, also if its manifest is damaged.
    static func installedVersion(_ layout: StoreLayout) throws -> Version? {
        guard let name = try currentName(layout) else { return nil }
        do { return try load(name, in: layout).manifest.version } catch {
            guard !Files.isDenied(error), let version = Version(version(of: name)) else { throw error }
            return version
        }
    }

    /// The version that the name of a generation begins with: what stands before its last `+`.
    package static func version(of name: String) -> String {
        name.lastIndex(of: "+").map { String(name[..<$0]) } ?? name
    }

    /// The bytes of its own files; what it only points at lies elsewhere.
    static func size(_ name: String, _ layout: StoreLayout) throws -> Int {
        let directory = layout.generation(name)
        return try Files.list(directory).reduce(0) { sum, file in
            guard let facts = try Files.facts("\(directory)/\(file)"), facts.kind == .file else { return sum }
            return sum + facts.size
        }
    }

    package static func names(_ layout: StoreLayout) throws -> [String] { try Files.list(layout.generations) }

    /// A database of the release, by its name.
    package func database(_ name: String) throws -> Database {
        if let database = manifest.database(name) { return database }
        throw MoultError(
            .store, what: "release \(manifest.version) has no database \"\(name)\"",
            why: "it has \(manifest.databases.map(\.name).joined(separator: ", "))",
            now: didYouMean(name, among: manifest.databases.map(\.name)))
    }

    package func path(_ member: String) -> String { "\(directory)/\(member)" }

    /// The manifest of a generation; nil where there is none that can be read.
    static func bytes(of name: String, in layout: StoreLayout) throws -> [UInt8]? {
        do { return try Files.read("\(layout.generation(name))/\(manifestName)", limit: Manifest.largest) } catch {
            if Files.isDenied(error) { throw error }
            return nil
        }
    }

    /// The record of the generation's files; nil where it is missing or damaged.
    func sealIfSound() throws -> Seal? {
        do { return try seal() } catch let error as MoultError where !Files.isDenied(error) { return nil }
    }

    package func seal() throws -> Seal {
        let path = path(Seal.fileName)
        guard let bytes = try Files.read(path, limit: 1 << 24) else {
            throw MoultError(.generation, what: "generation \(name) has no seal", why: "\(path) is not there")
        }
        let seal = try Seal(parsing: bytes, source: path)
        return seal.counting(try LinkedFiles(layout).records())
    }

    /// Throws unless every file of the generation has the digest with which it was installed. Only files are read whose
    /// facts do not confirm them.
    ///
    /// With `renewing`, which needs the store's lock, the facts of files that were read are recorded, so that they are not
    /// read again. That needs a manifest whose full digest is known: the generation's name has only 32 bits of it. Either
    /// `release` is the manifest that was just applied, which is signed or comes from the operator, or the seal has the
    /// digest that the manifest had when the generation was made. A seal of an earlier version does not have it; then the
    /// files are verified each time until the release is applied again.
    package func prove(renewing: Bool = false, as release: [UInt8]? = nil) throws {
        let seal = try seal()
        let digest = try SHA256.digest(of: bytes)
        let isNamed = isAdopted || name.hasSuffix("+\(digest.prefix8)")
        guard isNamed, seal.manifest.map({ $0 == digest.hex }) ?? true, release.map({ $0 == bytes }) ?? true else {
            throw damaged(path(Self.manifestName), "was changed after it was installed")
        }
        for database in manifest.databases {
            let path = path(database.member)
            guard let entry = seal.entry(database.member) else {
                throw MoultError(
                    .generation, what: "\(path) was never sealed", why: "the generation's record does not have it")
            }
            switch try entry.standing(of: path) {
            case .confirmed: continue
            case .damaged(let why): throw damaged(path, why)
            case .unconfirmed:
                guard let facts = try entry.verifiedFacts(of: path) else {
                    throw damaged(path, "has another SHA-256 than the release")
                }
                if renewing, seal.manifest != nil || release != nil { try LinkedFiles(layout).add(facts) }
            }
        }
    }

    private var isAdopted: Bool { name.hasPrefix(Self.adopted) }

    private func damaged(_ path: String, _ why: String) -> MoultError {
        let isAdopted = isAdopted
        return MoultError(
            .generation, .refused, what: "\(path) is not what was installed", why: "it \(why)",
            now: isAdopted
                ? "Restore the file from a backup."
                : "Bring release \(manifest.version) in again from its bundle: moult apply MANIFEST")
    }
}

extension Seal.Entry {
    /// Reads the file and returns its facts if it has the digest of the seal; nil if it has another one.
    func verifiedFacts(of path: String) throws -> SealedFacts? {
        // The facts from before: what is written while it is read does not match them.
        guard let facts = try Files.factsThroughLinks(path),
            try SHA256.digest(ofFileAt: path).hex == sha256
        else { return nil }
        return SealedFacts(sha256: sha256, facts)
    }
}
