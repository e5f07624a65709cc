internal import MoultArchive
internal import MoultBasics
internal import MoultFiles

/// The service side: a process started to read one archive, and sandboxed before it reads the first byte.
enum ArchiveService {
    static func serve() throws {
        var input = RequestInput()
        guard let first = try input.next() else { throw input.failed("is missing") }
        let request = try ArchiveRequest(first)
        let memory = try Descriptor.inherited(0, "the memory").mapForWriting(size: request.memory)
        let archive = Descriptor.inherited(1, "the archive")
        try Guard(.archive, reading: .only([]), limits: request.limits).confineThisProcess()
        // From here on, the archive may control this process.
        try ParentChannel.send(["ready": true])
        do { try answer(request, archive, memory, &input) } catch let error as MoultError {
            let why = error.code == .system ? "\(error.what): \(error.why ?? "")" : error.why
            try ParentChannel.send(
                .record([
                    "refused": JSON.record([
                        "code": error.code.rawValue, "why": why ?? error.what, "now": error.now?.description,
                    ])
                ]))
        }
    }

    private static func answer(
        _ request: ArchiveRequest, _ archive: consuming Descriptor, _ memory: UnsafeMutableRawBufferPointer,
        _ input: inout RequestInput
    ) throws {
        switch request.task {
        case .members(let sizes, let name):
            try send(ArchiveReader(archive, kind: ArchiveKind(fileName: name)), sizes, memory, &input)
        case .list:
            var members: [JSON] = []
            try BundleReader(archive).read { member, part in
                if case .begin = part { members.append(.record(["name": member.name, "size": member.size])) }
            }
            try ParentChannel.send(.record(["members": members]))
        case .patch(let size):
            let reader = try PatchReader(
                archive, base: request.baseSize > 0 ? .inherited(2, "the old file") : nil, resultSize: size)
            try serve(reader, memory, &input)
        }
    }

    /// Sends every member in archive order, using the parts of the memory in turn.
    private static func send(
        _ reader: consuming ArchiveReader, _ sizes: [String: Int], _ memory: UnsafeMutableRawBufferPointer,
        _ input: inout RequestInput
    ) throws {
        var (sent, taken, filled) = (0, 0, 0)
        func flush() throws {
            guard filled > 0 else { return }
            try ParentChannel.send(.record(["bytes": filled]))
            (sent, filled) = (sent + 1, 0)
        }
        try reader.read(members: sizes) { name, part in
            switch part {
            case .begin: try ParentChannel.send(.record(["member": name]))
            case .end:
                try flush()
                try ParentChannel.send(["end": true])
            case .bytes(var rest):
                while !rest.isEmpty {
                    if filled == 0, sent - taken == ArchiveRequest.parts {
                        guard try input.next() != nil else { throw input.failed("is missing") }
                        taken += 1
                    }
                    let count = min(rest.count, ArchiveRequest.partSize - filled)
                    let place = sent % ArchiveRequest.parts * ArchiveRequest.partSize + filled
                    UnsafeMutableRawBufferPointer(rebasing: memory[place...])
                        .copyMemory(from: UnsafeRawBufferPointer(rebasing: rest[..<count]))
                    filled += count
                    rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                    if filled == ArchiveRequest.partSize { try flush() }
                }
            }
        }
        try ParentChannel.send(["done": true])
    }

    /// Writes each requested frame to the beginning of the memory.
    private static func serve(
        _ frames: any FrameSource, _ memory: UnsafeMutableRawBufferPointer, _ input: inout RequestInput
    ) throws {
        guard frames.contentSizes.allSatisfy({ $0 <= memory.count }) else {
            throw input.failed("has too little memory")
        }
        let decode = try frames.decoder(into: memory)
        while let request = try input.next() {
            let index = try request.count("frame")
            guard index < frames.contentSizes.count else { throw input.failed("is for frame \(index)") }
            try ParentChannel.send(.record(["bytes": decode(index).count]))
        }
    }

    /// The requests from standard input.
    private struct RequestInput {
        private var channel = ParentChannel(longest: 4 << 20)

        /// Returns the next request; nil at the end.
        mutating func next() throws -> Fields? {
            guard let json = try channel.next() else { return nil }
            return try Fields(json) { place, why, _ in
                MoultError(.archiveProcess, what: "\(place) of the request \(why)")
            }
        }

        func failed(_ why: String) -> MoultError { MoultError(.archiveProcess, what: "the request \(why)") }
    }
}
