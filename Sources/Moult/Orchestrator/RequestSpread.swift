internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

extension Machine {
    /// Returns the delay before this store's request, in milliseconds, within the given number of seconds.
    ///
    /// Timers start at the same moment on many machines. The delay depends on machine and store, so that their requests are
    /// spread out, and on the feed's serial, so that the last machines are not always the same.
    package func pause(within seconds: Int, store: String, serial: Int) throws -> Int {
        let digest = try SHA256.digest(of: Array("\(serial)\n\(id)\n\(store)".utf8))
        let number = digest.bytes.prefix(4).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Int((number * UInt64(1000 * seconds)) >> 32)
    }
}

extension Orchestrator {
    /// Returns the delay for this store in milliseconds; 0 before its first release.
    package func pause(within seconds: Int) throws -> Int {
        guard try StoreSnapshot(layout).installedVersion != nil else { return 0 }
        return try Machine.this().pause(
            within: seconds, store: Files.absolute(layout.root), serial: ReplayGuard.read(layout).serial)
    }
}
