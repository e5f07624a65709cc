internal import MoultArchive
internal import MoultBasics
internal import MoultFiles
internal import MoultSandbox
internal import MoultTrust
internal import StepKit

/// Stages in the transaction's directory the members that a plan needs: from files of the store and by patches where possible,
/// and otherwise from the bundle. Nothing is used before its digest is verified.
struct MemberStager {
    let transaction: Transaction
    let store: StoreSnapshot
    let plan: Plan
    let release: Manifest
    let progress: @Sendable (PrepareContext.Progress) throws -> Void

    func stage() throws {
        for reuse in plan.reuse { try stage(reuse) }
        guard let bundle = plan.bundle else { return }
        if let unpacked = bundle.unpacked { return try take(from: unpacked) }
        try Unpacker(
            place: transaction.place(of:), release: release, bundle: bundle.path, members: plan.bundled,
            progress: progress
        )
        .unpack()
    }

    /// Takes the verified files of the bundle from a directory.
    private func take(from directory: String) throws {
        for member in plan.bundled {
            let (file, target) = ("\(directory)/\(member)", try transaction.place(of: member))
            if let content = release.content(of: member), content.size >= SourceSelection.minLinkedSize {
                try LinkedFiles(transaction.layout).take(file, sha256: content.sha256, to: target)
            } else {
                try Files.copy(file, to: target, mode: 0o600)
            }
        }
    }

    private func stage(_ reuse: Plan.Reuse) throws {
        let target = try transaction.place(of: reuse.member)
        let base = reuse.base.map { "\(transaction.layout.generation($0.generation))/\($0.member)" }
        do {
            if let base, reuse.patches.isEmpty { return try take(base, for: reuse, to: target) }
            if let base, let place = reuse.base { try verify(base, place) }
            try patch(reuse, base, to: target)
        } catch let error as MoultError where PatchFault.isCausedByFiles(error) {
            // If patches were used, the next attempt avoids only these. If their base is at fault, that attempt detects it.
            let names = reuse.patches.isEmpty ? reuse.base.map { [$0.description] } ?? [] : reuse.patches.map(\.file)
            throw PatchFault(Set(names), error)
        }
    }

    /// Takes a file with the same content from a generation: by a hard link or shared blocks, or as a copy if it is small.
    private func take(_ base: String, for reuse: Plan.Reuse, to target: String) throws {
        guard let content = release.content(of: reuse.member) else { return }
        // A link would change the metadata of the store's own file.
        if reuse.isLinked(in: release), !transaction.isRehearsal {
            return try LinkedFiles(transaction.layout).take(base, sha256: content.sha256, to: target)
        }
        try Files.copy(base, to: target, mode: 0o600)
        if transaction.isRehearsal, let place = reuse.base { return try verify(base, place) }
        try verify(target, content, "\(base)")
    }

    /// Throws unless the base file has the metadata in its seal, or the digest in the manifest of its generation.
    private func verify(_ path: String, _ base: Plan.Reuse.Base) throws {
        let generation = try store.generation(base.generation)
        guard let content = generation.manifest.content(of: base.member) else { return }
        if try store.seal(of: generation).entry(base.member)?.standing(of: path) == .confirmed { return }
        try verify(path, content, path)
    }

    private func verify(_ path: String, _ content: Manifest.Content, _ name: String) throws {
        let digest = try SHA256.digest(ofFileAt: path).hex
        if digest != content.sha256 { throw unfit(name, digest, content) }
    }

    private func patch(_ reuse: Plan.Reuse, _ base: String?, to target: String) throws {
        var base = base
        for (index, patch) in reuse.patches.enumerated() {
            let isLast = index == reuse.patches.count - 1
            let result = isLast ? target : "\(transaction.directory)/step-\(index)"
            try verify(patch.path, .init(size: patch.size, sha256: patch.sha256), patch.path)
            let counter = ProgressCounter("patch", total: patch.result.size, tell: progress)
            let file = PatchedFile(try Descriptor(result, .create, mode: 0o600))
            let (layout, frames) = try ConfinedArchive(patch.path, stop: { try counter.add(0) })
                .patch(from: base, resultSize: patch.result.size)
            try frames.read(threads: Threads.cores) { index, bytes in
                try file.add(bytes, piece: index, at: layout.pieces[index].offset)
                try counter.add(bytes.count)
            }
            let digest = try file.finish()
            if digest != patch.result.sha256 { throw unfit("the result of \(patch.path)", digest, patch.result) }
            if index > 0, let base { try Files.remove(base) }
            base = result
        }
    }

    private func unfit(_ name: String, _ digest: String, _ content: Manifest.Content) -> MoultError {
        MoultError(
            .digest, what: "\(name) does not match the manifest",
            why: "its SHA-256 is \(digest.prefix(8))…, and the manifest says \(content.sha256.prefix(8))…",
            now: "Use the manifest and the files of the same release.")
    }
}
