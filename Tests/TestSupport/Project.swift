import MoultBasics
import MoultFiles
import MoultLibc

/// The project's directory.
package enum Project {
    /// The directory above this file that contains `Package.swift`.
    package static let root = {
        var path = Files.directory(of: #filePath)
        while access("\(path)/Package.swift", F_OK) != 0 {
            precondition(path != "/", "no directory above \(#filePath) contains Package.swift")
            path = Files.directory(of: path)
        }
        return path
    }()

    /// Returns the content of a file of the project.
    package static func text(_ name: String) throws -> String {
        guard let bytes = try Files.read("\(root)/\(name)", limit: 1 << 20) else {
            throw MoultError(.system, what: "\(root)/\(name) is not there")
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
