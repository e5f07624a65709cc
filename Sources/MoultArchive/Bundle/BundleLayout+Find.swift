package import MoultFiles

extension BundleLayout {
    /// Returns the layout of a file, if it is a moult bundle: it must have a seek table, and its tar headers must be in their
    /// proper places.
    ///
    /// Nil for every other archive, which the strict reader reads. The layout is only what the file claims, so the caller
    /// compares names and sizes with the manifest. `BundleReader` proves that the headers match the layout to the byte.
    package static func find(in file: borrowing Descriptor) throws -> (layout: BundleLayout, frames: [Frame])? {
        guard let frames = try SeekTable.read(file), frames.count <= 2 * maxFrames else { return nil }
        var members: [TarHeader.Fields] = []
        var (index, offset) = (0, 0)
        while index < frames.count {
            // A frame with the padding of the previous member and then headers, followed by the frames with the content of the
            // last header's member.
            let padding = TarHeader.padding(members.last?.size ?? 0).count
            guard let headers = try headers(in: frames[index], at: offset, of: file, behind: padding) else {
                return nil
            }
            members += headers
            offset += frames[index].packedSize
            index += 1
            var rest = headers.last?.size ?? 0
            while rest > 0, index < frames.count, frames[index].contentSize > 0 {
                rest -= frames[index].contentSize
                offset += frames[index].packedSize
                index += 1
            }
        }
        return layout(members, frames).map { ($0, frames) }
    }

    /// Refuses a bundle unless its members are exactly the declared ones, with these sizes.
    package func check(declared: [String: Int], of path: String) throws {
        try reading(path) {
            var set = try MemberSet(declared)
            for member in members {
                let (name, size) = try set.take(member.name)
                guard member.size == size else {
                    throw ArchiveRefusal.size(of: name, is: "\(member.size)", declared: size)
                }
            }
            try set.checkComplete()
        }
    }

    /// Returns the layout of these members; nil if it does not result in exactly these frames.
    private static func layout(_ members: [TarHeader.Fields], _ frames: [Frame]) -> BundleLayout? {
        let sizes = frames.map(\.contentSize)
        // If no member fills a frame, every larger frame size gives the same layout, so the size of the largest frame is used.
        guard let frameSize = sizes.max(), let modified = members.first?.modified,
            members.allSatisfy({ $0.modified == modified }),
            // The only errors are about invalid names. moult did not make such a bundle, and the strict reader reports the
            // reason.
            let layout = try? BundleLayout(
                members: members.map { ($0.name, $0.size) }, modified: modified, frameSize: frameSize),
            layout.contentSizes == sizes
        else { return nil }
        return layout
    }

    /// Returns the headers in a frame; nil if it has other content or cannot be decoded.
    private static func headers(
        in frame: Frame, at offset: Int, of file: borrowing Descriptor, behind padding: Int
    ) throws -> [TarHeader.Fields]? {
        // Far more than the headers of any usual release need.
        guard frame.contentSize <= 1 << 20, frame.packedSize <= 1 << 20 else { return nil }
        let decoder = try FrameDecoder(packedSize: frame.packedSize, contentSize: frame.contentSize)
        let bytes: UnsafeRawBufferPointer
        do { bytes = try decoder.decode(frame, from: file, at: offset) } catch is ArchiveRefusal { return nil }
        guard bytes.count >= padding, (bytes.count - padding) % TarHeader.blockSize == 0 else { return nil }
        var fields: [TarHeader.Fields] = []
        for start in stride(from: padding, to: bytes.count, by: TarHeader.blockSize) {
            let block = UnsafeRawBufferPointer(rebasing: bytes[start..<start + TarHeader.blockSize])
            // The end of the archive; the layout determines the bytes after it.
            if block.allSatisfy({ $0 == 0 }) { break }
            guard let header = TarHeader.fields(of: block) else { return nil }
            fields.append(header)
        }
        return fields
    }
}
