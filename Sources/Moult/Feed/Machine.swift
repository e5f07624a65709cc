internal import MoultFiles
internal import MoultTrust
package import StepKit

/// Which machine this is, for releases that go to a share of all machines first.
package struct Machine: Sendable, Equatable {
    let id: String

    package init(id: String) { self.id = id }

    /// This machine, by MOULT_MACHINE_ID or the id that systemd gave it; else by its name.
    package static func this() throws -> Machine {
        if let id = Subprocess.ownEnvironment["MOULT_MACHINE_ID"], !id.isEmpty { return Machine(id: id) }
        for path in ["/etc/machine-id", "/etc/hostname"] {
            let text = String(decoding: try Files.read(path, limit: 4096) ?? [], as: UTF8.self)
            if let line = text.split(whereSeparator: \.isWhitespace).first { return Machine(id: String(line)) }
        }
        return Machine(id: "")
    }

    /// Where this machine stands for a release, from 0 to below 100, with two decimals: always the same, and for each
    /// release another, so that it is not the same machines that are first every time.
    package func place(for version: Version, of product: String) throws -> Double {
        let digest = try SHA256.digest(of: Array("\(product)\n\(version)\n\(id)".utf8))
        let number = digest.bytes.prefix(4).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Double((number * 10_000) >> 32) / 100
    }
}
