import MoultFiles
import TestSupport

extension Scratch {
    /// Returns the requests that a server has written to its file `log`, in order, each as its fields.
    func requestLog() throws -> [[String]] {
        String(decoding: try Files.read(path("log"), limit: 1 << 24) ?? [], as: UTF8.self).split(separator: "\n").map {
            $0.split(separator: "\t", omittingEmptySubsequences: false).map { String($0) }
        }
    }
}
