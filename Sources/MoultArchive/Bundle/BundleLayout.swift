/// The layout of a moult bundle: a tar archive in which each member's content has its own frames.
///
/// Members, frame size and time determine the layout to the byte, so packing and unpacking use the same layout.
package struct BundleLayout: Hashable, Sendable {
    package struct Member: Hashable, Sendable {
        package let name: String
        package let size: Int
        /// The frames that contain only this member's content; none if the member is empty.
        package let frames: Range<Int>
    }

    /// The content of a frame.
    enum Part: Hashable, Sendable {
        /// Headers and padding of the tar archive.
        case tar([UInt8])
        /// A piece of a member's content.
        case content(member: Int, offset: Int, count: Int)
    }

    package let members: [Member]
    package let frameSize: Int
    package let modified: Int
    /// One part per frame.
    let parts: [Part]

    /// Creates a layout with the members in this order; `modified` is their modification time, in seconds since 1970.
    ///
    /// `frameSize` is the maximum content of a frame; the default is 1 to 4 MiB, or larger to get at most 4,096 frames.
    package init(members: [(name: String, size: Int)], modified: Int, frameSize: Int? = nil) throws {
        try packing { try MemberSet.check(packed: members.map(\.name)) }
        let frameSize = frameSize ?? Self.frameSize(for: members.map(\.size))
        var parts: [Part] = []
        var placed: [Member] = []
        var tar: [UInt8] = []
        for (index, member) in members.enumerated() {
            tar += try packing { try TarHeader.block(name: member.name, size: member.size, modified: modified) }
            // An empty member has no frame; the next header goes into the frame of its header.
            if member.size > 0 {
                parts.append(.tar(tar))
                tar = TarHeader.padding(member.size)
            }
            let first = parts.count
            for offset in stride(from: 0, to: member.size, by: frameSize) {
                parts.append(.content(member: index, offset: offset, count: min(frameSize, member.size - offset)))
            }
            placed.append(Member(name: member.name, size: member.size, frames: first..<parts.count))
        }
        parts.append(.tar(tar + TarHeader.end))
        self.members = placed
        self.frameSize = frameSize
        self.modified = modified
        self.parts = parts
    }

    /// The size of each frame's content.
    package var contentSizes: [Int] {
        parts.map { part in
            switch part {
            case .tar(let bytes): bytes.count
            case .content(_, _, let count): count
            }
        }
    }

    static let maxFrames = 4096

    /// Returns whether members of these sizes need a plausible number of frames: a rough check of untrusted values, before a
    /// layout is created from them.
    package static func isPossible(sizes: [Int], frameSize: Int) -> Bool {
        guard frameSize > 0, sizes.count <= maxFrames else { return false }
        return sizes.reduce(0) { $0 + $1 / frameSize } <= 2 * maxFrames
    }

    private static let mebibyte = 1 << 20

    /// Returns the content size of a frame for members of these sizes, a multiple of 1 MiB. Large frames compress better:
    /// frames of 1 MiB make the file up to 3.5 % larger than a single frame would, frames of 4 MiB less than 1 %. With small
    /// frames, even a small bundle can be decoded in parallel. A very large bundle gets larger frames to limit their number.
    private static func frameSize(for sizes: [Int]) -> Int {
        let total = sizes.reduce(0, +)
        let usual = min(max(total / 16, mebibyte), 4 * mebibyte)
        // Each member needs a frame for its header, and may need one for a remainder that does not fill a frame; the end of the
        // archive needs one more.
        let room = max(1, maxFrames - 2 * sizes.count - 1)
        let needed = (total + room - 1) / room
        return (max(usual, needed) + mebibyte - 1) / mebibyte * mebibyte
    }
}
