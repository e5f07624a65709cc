internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// Takes public files into the directory. Each gets its name when it is complete, so a killed command leaves no part of one.
struct TakenFiles {
    let directory: FeedDirectory
    let work: WorkDirectory
    let place: PublicPlace

    /// Adds a file, unless the directory has it.
    func add(_ name: String, _ bytes: [UInt8]) throws {
        if try Files.facts(directory.file(name)) != nil { return }
        try Files.writeNew(bytes, to: "\(work.path)/\(name)")
        try Files.rename("\(work.path)/\(name)", to: directory.file(name))
    }

    func download(_ file: Feed.File) throws {
        let path = "\(work.path)/\(file.name)"
        try place.download(file, to: path)
        try Files.syncFile(path)
        try Files.rename(path, to: directory.file(file.name))
    }

    /// Adds the signatures of a file, as far as they are public.
    func addSignatures(of name: String, by keys: [PublicKey]) throws {
        let names = ["\(name).minisig"] + keys.map { TrustedKeys.signatureName(of: name, by: $0.id) }
        for name in names where try Files.facts(directory.file(name)) == nil {
            // Some servers return a page for every name.
            guard let bytes = try place.readIfThere(name), (try? Signature(file: bytes, named: name)) != nil else {
                continue
            }
            try add(name, bytes)
        }
    }
}
