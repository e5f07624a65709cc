internal import MoultBasics

/// Lets a caller stop loops that read, copy or compare whole files. A file can have a hole of terabytes, which takes hours to read.
package enum LongRead {
    @TaskLocal private static var isStopped: (@Sendable () -> Bool)?

    /// Runs the body. Its loops throw once `isStopped` returns true.
    package static func stopping<R>(if isStopped: @escaping @Sendable () -> Bool, _ body: () throws -> R) rethrows -> R
    {
        try $isStopped.withValue(isStopped, operation: body)
    }

    /// Throws if the caller wants to stop. Each of these loops calls this for every block.
    package static func check(_ path: String) throws {
        guard isStopped?() == true else { return }
        throw MoultError(.interrupted, what: "the reading of \(path) was stopped", now: "Run the command again.")
    }
}
