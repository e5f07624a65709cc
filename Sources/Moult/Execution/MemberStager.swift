internal import MoultArchive
internal import MoultBasics
internal import MoultFiles
internal import MoultSandbox
internal import MoultTrust
internal import StepKit
internal import Synchronization

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
        ).unpack()
    }

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
        .wrongDigest(
            "\(name) does not match the manifest", digest, content.sha256,
            now: "Use the manifest and the files of the same release.")
    }
}

/// Unpacks from a bundle the members that a plan needs. Nothing is used before its digest is verified.
struct Unpacker {
    let place: @Sendable (String) throws -> String
    let release: Manifest
    let bundle: String
    /// The members to write; everything else in the bundle is only verified.
    let members: [String]
    let progress: @Sendable (PrepareContext.Progress) throws -> Void

    private var wanted: [String: String] {
        let paths = release.databases.map { ($0.bundlePath, $0.member) }
        let others = release.databases.flatMap(\.migrations).map { ($0.member, $0.member) }
        return Dictionary(paths + others) { first, _ in first }.filter { members.contains($0.value) }
    }

    func unpack() throws {
        let expected = Self.expected(of: release)
        let total = expected.reduce(0) { $0 + $1.value.size }
        let counter = MemberStager.ProgressCounter("unpack", total: total, tell: progress)
        let wanted = wanted
        var file: DigestedFile?
        try BackgroundDigest.of(bundle) {
            try ConfinedArchive(bundle, stop: { try counter.add(0) }).read(
                named: release.bundle?.file ?? bundle, members: expected.mapValues(\.size)
            ) { name, part in
                switch part {
                case .begin: file = try DigestedFile(path: wanted[name].map(place))
                case .bytes(let bytes):
                    try file?.write(bytes)
                    try counter.add(bytes.count)
                case .end:
                    try verify(name, digest: file?.finish() ?? "", expected[name]?.sha256)
                    file = nil
                }
            }
        } check: {
            try verifyBundle($0)
        }
    }

    private static func expected(of release: Manifest) -> [String: Manifest.Content] {
        var expected: [String: Manifest.Content] = [:]
        for database in release.databases where database.place == .generation {
            expected[database.bundlePath] = .init(size: database.size, sha256: database.sha256)
            for migration in database.migrations {
                expected[migration.member] = .init(size: migration.size, sha256: migration.sha256)
            }
        }
        return expected
    }

    private func verify(_ member: String, digest: String, _ expected: String?) throws {
        if digest == expected { return }
        throw MoultError.wrongDigest(
            "\(member) in \(bundle) does not match the manifest", digest, expected ?? "nothing",
            now: "Use the manifest and the bundle of the same release.")
    }

    private func verifyBundle(_ digest: String) throws {
        guard let expected = release.bundle?.sha256, digest != expected else { return }
        throw MoultError.wrongDigest(
            "the bundle \(bundle) does not match its manifest", digest, expected, now: "Copy or download it again.")
    }
}

extension MoultError {
    fileprivate static func wrongDigest(_ what: String, _ digest: String, _ expected: String, now: Advice) -> MoultError
    {
        MoultError(
            .digest, what: what,
            why: "its SHA-256 is \(digest.prefix(8))…, and the manifest says \(expected.prefix(8))…", now: now)
    }
}

extension MemberStager {
    /// Counts the progress of several threads, and reports it from one thread at a time.
    final class ProgressCounter: Sendable {
        private let done = Mutex(0)
        private let what: String
        private let total: Int
        private let tell: @Sendable (PrepareContext.Progress) throws -> Void

        init(_ what: String, total: Int, tell: @escaping @Sendable (PrepareContext.Progress) throws -> Void) {
            (self.what, self.total, self.tell) = (what, total, tell)
        }

        func add(_ count: Int) throws {
            try done.withLock { done in
                done += count
                try tell(.init(what, done: done, total: total))
            }
        }
    }
}

extension MemberStager {
    /// The file produced by a patch, and its digest. Several threads write the pieces in any order; one thread at a time passes
    /// them to the digest in file order.
    final class PatchedFile: Sendable {
        private struct State {
            var written: [Int: Range<Int>] = [:]
            var next = 0
            var isDigesting = false
        }

        private let file: Descriptor
        private let state = Mutex(State())
        /// Used only by the thread that has set `isDigesting`.
        private let digest = GrowingDigest()

        init(_ file: consuming Descriptor) { self.file = file }

        func add(_ bytes: UnsafeRawBufferPointer, piece: Int, at offset: Int) throws {
            try file.write(bytes, at: offset)
            // Starts writeback immediately, so that the sync at the end is short.
            try file.startWriteback(at: offset, count: bytes.count)
            state.withLock { $0.written[piece] = offset..<offset + bytes.count }
            while let (number, range) = next() {
                if number == piece {
                    try digest.update(bytes)
                } else {
                    // Another thread wrote this piece and has moved on; the pages of the piece are still in memory.
                    try MappedFile(file, range).withBytes { try digest.update($0) }
                }
                state.withLock { $0.isDigesting = false }
            }
        }

        /// Returns the next piece for this thread to digest; nil if another thread has it, or it does not exist yet.
        private func next() -> (Int, Range<Int>)? {
            state.withLock { state in
                guard !state.isDigesting, let range = state.written.removeValue(forKey: state.next) else { return nil }
                defer { state.next += 1 }
                state.isDigesting = true
                return (state.next, range)
            }
        }

        func finish() throws -> String { try digest.finish() }
    }
}

/// The error for a patch or a base file that does not match its digest; the release is then installed without that file.
package struct PatchFault: Error {
    /// The names of the patches, or the generation and member of the base.
    package let unfit: Set<String>
    package let error: MoultError

    package init(_ unfit: Set<String>, _ error: MoultError) { (self.unfit, self.error) = (unfit, error) }

    /// Returns whether an error while patching is caused by the files, and not by a full disk or a cancellation.
    static func isCausedByFiles(_ error: MoultError) -> Bool {
        (300..<400).contains(error.code.rawValue) || error.code == .digest || (error.cause as? Errno) == .noEntry
    }
}
