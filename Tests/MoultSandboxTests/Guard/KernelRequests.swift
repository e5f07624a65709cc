import MoultBasics
import MoultFiles

/// The requests of ioctl that the kernel's headers name.
///
/// `ioctls.txt` has those of linux-libc-dev 6.1, each as a compiler computes it; `scripts/ioctls` writes it.
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
