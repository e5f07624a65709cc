package import MoultArchive
internal import MoultBasics
internal import MoultFiles

/// An untrusted archive, read by a sandboxed process that receives the open file, cannot open others, and sends names and
/// bytes.
///
/// This process checks the names and sizes as if the archive had taken over the sandboxed process, and callers do not use the
/// content until its digest is verified. If no process can be started (`Validator.here`), or an older moult is installed
/// alongside an app, this process reads bundles made by moult itself, and refuses every other archive.
package struct ConfinedArchive: Sendable {
    private let path: String
    private let place: Validator
    private let patience: Int
    private let stop: @Sendable () throws -> Void

    /// `stop` is polled several times a second, from any thread, and may throw to cancel. Reading fails if the process does not
    /// respond for `patience` seconds.
    package init(
        _ path: String, by place: Validator? = nil, patience: Int = 120,
        stop: @escaping @Sendable () throws -> Void = {}
    ) throws {
        (self.path, self.patience, self.stop) = (path, patience, stop)
        self.place = try place ?? .available()
    }

    private var settings: ArchiveProcess.Settings? {
        guard case .process(let program) = place else { return nil }
        return .init(path: path, program: program, patience: patience, stop: stop)
    }

    /// Runs `confined` if an installed program supports such requests, and `here` otherwise.
    private func confinedOrHere<Result>(
        _ confined: (ArchiveProcess.Settings) throws -> Result, here: () throws -> Result
    ) throws -> Result {
        if let settings { do { return try confined(settings) } catch is ArchiveProcess.NotSupported {} }
        return try here()
    }
}

extension ConfinedArchive {
    /// Reads a whole archive, whose format follows from its name; `members` has the size of each declared member.
    package func read(
        named name: String, members: [String: Int], onMember: (String, ArchiveReader.Part) throws -> Void
    ) throws {
        _ = try ArchiveKind(fileName: name)
        let file = try SharedFile(path)
        let process: ArchiveProcess? = try confinedOrHere { settings in
            let process = try ArchiveProcess(
                settings,
                ArchiveRequest(
                    task: .members(members, archive: name), memory: ArchiveRequest.parts * ArchiveRequest.partSize),
                [file])
            try process.waitUntilReady()
            return process
        } here: {
            nil
        }
        guard let process else { return try readHere(name, members, onMember) }
        try receive(from: process, members, onMember)
    }

    /// Reads a bundle made by moult. libarchive reads all other archives, but never in the process of an app.
    private func readHere(
        _ name: String, _ members: [String: Int], _ onMember: (String, ArchiveReader.Part) throws -> Void
    ) throws {
        let foreign = MoultError(
            .archiveProcess, what: "cannot unpack \(path)",
            why: "`moult pack` did not make it, and other archives are read only by an installed moult, in a sandbox",
            now: "Install the command of this version of moult, or use a release that `moult pack` made as .tar.zst.")
        guard try ArchiveKind(fileName: name) == .tar(.zstd) else { throw foreign }
        var expected = try ExpectedMembers(members, of: path)
        do {
            try BundleReader(Descriptor(path, .read)).read { member, part in
                switch part {
                case .begin: try onMember(expected.begin(member.name), .begin)
                case .bytes(let bytes):
                    try expected.add(bytes.count)
                    try onMember(expected.current ?? "", part)
                case .end: try onMember(expected.end(), .end)
                }
            }
        } catch let error as MoultError where error.code == .archiveKind { throw foreign }
        try expected.checkComplete()
    }

    private func receive(
        from process: ArchiveProcess, _ members: [String: Int], _ onMember: (String, ArchiveReader.Part) throws -> Void
    ) throws {
        var expected = try ExpectedMembers(members, of: path)
        let buffer = OwnBuffer(size: ArchiveRequest.partSize)
        var part = 0
        while true {
            let message = try process.next()
            if let count = try message.optionalCount("bytes") {
                guard let name = expected.current, count > 0, count <= ArchiveRequest.partSize else {
                    throw process.invalid("\(count) bytes outside a member")
                }
                try expected.add(count)
                let content = UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[..<count])
                try process.copy(into: content, at: part % ArchiveRequest.parts * ArchiveRequest.partSize)
                part += 1
                process.send(["taken": true])
                try onMember(name, .bytes(UnsafeRawBufferPointer(content)))
            } else if let name = try message.optionalString("member") {
                guard expected.current == nil else { throw process.invalid("a member inside a member") }
                try onMember(expected.begin(name), .begin)
            } else if try message.optionalBool("end") == true {
                guard expected.current != nil else { throw process.invalid("the end of a member that did not begin") }
                try onMember(expected.end(), .end)
            } else {
                guard try message.optionalBool("done") == true, expected.current == nil else {
                    throw process.invalid("the reply has no known field")
                }
                return try expected.checkComplete()
            }
        }
    }
}

extension ConfinedArchive {
    /// Returns the members and their sizes in a bundle that `moult pack` made as .tar.zst. The caller must not trust them.
    package func members() throws -> [(name: String, size: Int)] {
        let file = try SharedFile(path)
        return try confinedOrHere { settings in
            let message = try ArchiveProcess(settings, ArchiveRequest(task: .list, memory: 1), [file]).next()
            return try message.objects("members").map { (try $0.string("name"), try $0.count("size")) }
        } here: {
            var members: [(name: String, size: Int)] = []
            try BundleReader(Descriptor(path, .read)).read { member, part in
                if case .begin = part { members.append((member.name, member.size)) }
            }
            return members
        }
    }

    /// Opens a patch that produces a file of this size from a base; the frames are the pieces of `PatchLayout`.
    package func patch(from base: String?, resultSize: Int) throws -> (layout: PatchLayout, frames: any FrameSource) {
        let file = try SharedFile(path)
        let old = try base.map { try SharedFile($0) }
        let baseSize = try old?.descriptor.facts().size ?? 0
        let layout = PatchLayout(baseSize: baseSize, resultSize: resultSize)
        let frames: any FrameSource = try confinedOrHere { settings in
            @Sendable func start() throws -> ArchiveProcess {
                let request = ArchiveRequest(
                    task: .patch(resultSize: resultSize), memory: layout.contentSizes.max() ?? 1, baseSize: baseSize)
                return try ArchiveProcess(settings, request, [file] + (old.map { [$0] } ?? []))
            }
            let first = try start()
            try first.waitUntilReady()
            return ConfinedFrames(
                contentSizes: layout.contentSizes, maxThreads: PatchReader.maxThreads(for: layout), first: first,
                start: start)
        } here: {
            try PatchReader(
                Descriptor(path, .read), base: base.map { try Descriptor($0, .read) }, resultSize: resultSize)
        }
        return (layout, frames)
    }
}
