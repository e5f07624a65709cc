import MoultLibc
import Testing

/// An unnamed file that receives everything written to a descriptor.
final class Sink {
    private let file: UnsafeMutablePointer<FILE>
    let descriptor: Int32

    init() throws {
        file = try #require(tmpfile())
        descriptor = fileno(file)
    }

    deinit { fclose(file) }

    var text: String {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = pread(descriptor, &bytes, bytes.count, 0)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }
}
