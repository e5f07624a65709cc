import MoultBasics
import MoultFiles

/// The ioctl requests in the kernel's headers.
///
/// `ioctls.txt` has the requests of linux-libc-dev 6.1, with the numbers computed by a compiler;
/// `scripts/ioctls` writes the file.
enum KernelRequests {
    static func all() throws -> [(name: String, request: UInt64)] {
        let path = "\(Files.directory(of: #filePath))/ioctls.txt"
        let text = String(decoding: try Files.read(path, limit: 1 << 20) ?? [], as: UTF8.self)
        return text.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            guard words.count == 2, let request = UInt64(words[0].dropFirst(2), radix: 16) else { return nil }
            return (String(words[1]), request)
        }
    }
}
