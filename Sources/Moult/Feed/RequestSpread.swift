internal import MoultBasics
internal import MoultEngine
internal import MoultFiles
internal import MoultStore
internal import MoultTrust
internal import StepKit

extension Machine {
    /// How many milliseconds a store of this machine waits before its request, of so many seconds.
    ///
    /// Timers of many machines start at the same moment. The pause differs by machine and store, so that they do not ask at
    /// the same moment, and by the feed's serial, so that it is not always the same ones that come last.
    package func pause(within seconds: Int, store: String, serial: Int) throws -> Int {
        let digest = try SHA256.digest(of: Array("\(serial)\n\(id)\n\(store)".utf8))
        let number = digest.bytes.prefix(4).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Int((number * UInt64(1000 * seconds)) >> 32)
    }
}

extension Orchestrator {
    /// The milliseconds that this store waits for its turn; 0 before its first release.
    package func pause(within seconds: Int) throws -> Int {
        guard try StoreSnapshot(layout).installedVersion != nil else { return 0 }
        return try Machine.this().pause(
            within: seconds, store: Files.absolute(layout.root), serial: ReplayGuard.read(layout).serial)
    }
}
