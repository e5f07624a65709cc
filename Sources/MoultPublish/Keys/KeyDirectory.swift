internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// A directory with the key lists of a publisher: that of the feed, or one on the machine with the root key.
struct KeyDirectory {
    let path: String

    /// Returns the newest list; nil if the directory has none. Each list must be signed by root keys of the previous one.
    func newest() throws -> KeyList? { try all().last }

    func all() throws -> [KeyList] {
        var lists: [KeyList] = []
        // Expiry is not checked, because keys that have expired since were valid when they signed a list.
        while let next = try list(after: lists.last, at: Timestamp(seconds: 0)) { lists.append(next) }
        return lists
    }

    private func list(after before: KeyList?, at now: Timestamp) throws -> KeyList? {
        let path = "\(self.path)/\(KeyList.fileName((before?.serial ?? 0) + 1))"
        return try Files.facts(path) == nil ? nil : try Self.read(path, after: before, at: now).list
    }

    /// Returns a signed list from a file, which must be the one after `before`, and the files that stores need to verify it.
    static func read(
        _ path: String, after before: KeyList?, at now: Timestamp
    ) throws -> (list: KeyList, files: [(name: String, bytes: [UInt8])]) {
        guard let bytes = try Files.read(path, limit: KeyList.largest) else {
            throw MoultError(.publishing, what: "no key list at \(path)", why: "no such file")
        }
        var list: KeyList
        do { list = try KeyList(parsing: bytes, source: path) } catch var error as MoultError {
            // A list of a newer version needs a newer moult.
            if error.code != .feed || error.now == KeyList.reportFault { error.now = restore(path) }
            throw error
        }
        let serial = (before?.serial ?? 0) + 1
        if list.serial != serial, Files.name(of: path) == KeyList.fileName(serial) {
            throw refusal("\(path) is not key list \(serial)", "its serial is \(list.serial)", restore(path))
        }
        do { return (list, try verify(&list, bytes, path, after: before, at: now)) } catch let error as MoultError {
            throw error.code == .unsigned ? try explain(error, list, bytes, path, after: before) : error
        }
    }

    /// Returns the error for a list without enough valid signatures. Signing a list that was changed would also sign the change,
    /// so the advice is to restore the list if a signature does not match, or if the list is already public.
    private static func explain(
        _ error: MoultError, _ list: KeyList, _ bytes: [UInt8], _ path: String, after before: KeyList?
    ) throws -> MoultError {
        var error = error
        let keys = (list.roles.root.entries + (before?.roles.root.entries ?? [])).map(\.key)
        let wrong = try SignatureFiles.beside(path).first { SignatureFiles.isWrong($0, of: bytes, by: keys) }
        if let wrong {
            error.what = "\(path) was changed after it was signed"
            error.why = "the signature \(wrong.0) does not match"
        }
        let isPublic = try Files.facts("\(Files.directory(of: path))/\(Feed.fileName)") != nil
        if wrong != nil || isPublic { error.now = restore(path) }
        return error
    }

    private static func restore(_ path: String) -> Advice {
        "Restore it and its signatures from a copy that you trust, such as the directory of `moult trust`: "
            + "\(run: ["cp"], "\(shellLine(["COPY/\(Files.name(of: path))"]))* \(shellLine(["\(Files.directory(of: path))/"]))")"
    }

    /// Checks the serial and the signatures of a list, and returns its files.
    private static func verify(
        _ list: inout KeyList, _ bytes: [UInt8], _ path: String, after before: KeyList?, at now: Timestamp
    ) throws -> [(name: String, bytes: [UInt8])] {
        let serial = (before?.serial ?? 0) + 1
        guard Files.name(of: path) == KeyList.fileName(serial) else {
            let first = "\(Files.directory(of: path))/\(KeyList.fileName(serial))"
            let isThere = try list.serial > serial && Files.facts(first) != nil
            throw refusal(
                "\(path) is not the next key list",
                "its serial is \(list.serial), and the next key list is \(KeyList.fileName(serial))",
                isThere
                    ? "Publish the lists in order, starting with: \(moult: "publish", "DIRECTORY", "--trust", first, "--key", "FILE")"
                    : "Create the next list with: \(moult: "trust", Files.directory(of: path), "--key", "ROOT.key")")
        }
        let find = { (name: String) in try Files.read(name, limit: 1 << 14) }
        if let before {
            let next = try KeyList(
                verifying: bytes, serial: serial, product: before.product, after: before.roles, named: path, at: now,
                find: find)
            guard let next else {
                throw MoultError(
                    .unsigned, .refused, what: "\(path) is not signed by the keys of list \(before.serial)",
                    why: "the list needs \(before.roles.root.need)",
                    now: "Sign it: \(moult: "sign", path, "--key", "ROOT.key")")
            }
            list = next
        } else {
            try list.requireOwnSignatures(bytes, named: path, at: now, find: find)
        }
        // Signatures first: stores would ignore a list without them.
        return try SignatureFiles.beside(path) + [(Files.name(of: path), bytes)]
    }
}
