internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// Finds problems that will affect a store sooner or later, even if it works now. Changes nothing.
package struct StoreEnvironment {
    let store: StoreSnapshot
    let settings: Settings
    var layout: StoreLayout { store.layout }

    package init(_ store: StoreSnapshot) throws {
        self.store = store
        settings = try store.settings
    }

    /// Returns the faults for which root refuses to read this store; nil if it does not refuse.
    package static func custody(of layout: StoreLayout) throws -> [Finding]? {
        let custody = Custody(layout)
        do {
            try custody.check()
            try custody.check(cacheRoot: custody.cacheRoot)
        } catch let error as MoultError where error.code == .custody {
            var findings: [Finding] = []
            // A fault of a directory applies to all files in it.
            for fault in try custody.faults() where !findings.contains(where: { fault.path.isBelow($0.path ?? "") }) {
                findings.append(
                    Finding(
                        .custody, path: fault.path, "it \(fault.why)",
                        why: "root does not use a store that other users can change", advice: custody.advice(fault)))
            }
            return findings
        }
        return nil
    }

    package func examine() throws -> [Finding] {
        var findings: [Finding] = []
        for check in [
            unfinished, pointer, kinds, unreadable, links, settingsFile, product, secrets, history, holds,
            unknownFiles,
            unused, processes, fileSystems, version,
        ] {
            findings += try reportingDenial(check)
        }
        for generation in try generations() { findings += try reportingDenial { try databases(of: generation) } }
        if let current = try currentGeneration() { findings += try reportingDenial { try writable(current) } }
        var unique: [Finding] = []
        for finding in findings where !unique.contains(finding) { unique.append(finding) }
        return unique
    }

    /// Runs a check. If this user is not permitted to read a file, returns that as a finding, so that the other checks still
    /// run.
    func reportingDenial(_ check: () throws -> [Finding]) throws -> [Finding] {
        do { return try check() } catch let error as MoultError where Files.isDenied(error) {
            return [denied(error)]
        }
    }

    func denied(_ error: MoultError) -> Finding {
        Finding(
            .denied, path: layout.root, error.what, why: error.why ?? "permission denied",
            advice: error.now ?? "\(run: ["ls", "-l", layout.root])")
    }

    /// Returns the current generation; nil if it cannot be read, which `unreadable` or `pointer` reports.
    func currentGeneration() throws -> Generation? {
        guard let name = try Files.target(ofLink: layout.current).map(Files.name(of:)) else { return nil }
        return try? store.generation(name)
    }

    /// Returns the readable generations.
    func generations() throws -> [Generation] {
        try Generation.names(layout).compactMap { name in try? store.generation(name) }
    }
}
