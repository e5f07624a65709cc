internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// The paths that settings let steps write to. No grant includes what determines the programs that moult runs or the databases in
/// service: a step that could change that would have all the rights of the command.
struct StepGrants {
    private let layout: StoreLayout
    /// Paths that a grant must not be or contain, with what is there.
    private var guarded: [(path: String, what: String)]
    private let closed: [(path: String, what: String)]

    private init(_ settings: Settings, _ layout: StoreLayout) {
        self.layout = layout
        let own = [layout.hidden] + (settings.cacheRoot.map { [StoreLayout.hidden(in: $0)] } ?? [])
        closed =
            own.map { ($0, "moult's own files") }
            + [(Files.directory(of: Custody.trustedStores), "the list of trusted stores")]
        guarded = [(layout.settings, "the settings"), (layout.root, "the store")]
        guarded += closed
        guarded += settings.steps.compactMap(\.executable).map { ($0, "the program of a step") }
        guarded += settings.consumers.flatMap { consumer in
            consumer.namedFiles.map { ($0, "a file that names or is a program of the consumer \(consumer.name)") }
        }
    }

    /// Throws if a step may write to a file that only moult or the operator may write to.
    static func check(_ settings: Settings, in layout: StoreLayout) throws {
        if settings.steps.allSatisfy(\.writable.isEmpty) { return }
        let grants = Self(settings, layout)
        for step in settings.steps { for path in step.writable { try grants.check(path, of: step.name) } }
    }

    private func check(_ path: String, of step: String) throws {
        let grant = Place(path)
        for (other, what) in guarded {
            if try Place(other).isAt(orBelow: grant) { throw refused(path, step, other, what, contains: true) }
        }
        for (other, what) in closed {
            if try grant.isAt(orBelow: Place(other)) { throw refused(path, step, other, what, contains: false) }
        }
    }

    private func refused(_ path: String, _ step: String, _ other: String, _ what: String, contains: Bool) -> MoultError
    {
        MoultError(
            .settings, .refused, what: "the step \(step) may not write to \(path)",
            why: contains && path != other
                ? "it contains \(other): \(what)" : contains ? "it is \(what)" : "it is in \(other): \(what)",
            now:
                "In \(layout.settings), let \"writable\" of this step name a directory of its own that contains nothing else, "
                + "or a single file.")
    }

    /// A path with all links resolved, as far as it exists.
    private struct Place {
        /// The path and the directories above it, the path itself first.
        let chain: [String]

        init(_ path: String) {
            var (here, rest) = (path.withoutFinalSlashes, "")
            while true {
                if let found = Files.resolvedIfFound(here) {
                    here = (found == "/" ? "" : found) + rest
                    break
                }
                if here == "/" || here.isEmpty { break }
                rest = "/\(Files.name(of: here))\(rest)"
                here = Files.directory(of: here)
            }
            var chain = [here.isEmpty ? "/" : here]
            while let last = chain.last, last != "/", last != "." { chain.append(Files.directory(of: last)) }
            self.chain = chain
        }

        /// Returns whether this path is another, or is below it. The same file or directory may also have two paths, as with a
        /// hard link or a bind mount.
        func isAt(orBelow other: Place) throws -> Bool {
            guard let top = other.chain.first else { return false }
            if chain.contains(where: { $0.hasBytes(of: top) }) { return true }
            guard let facts = try Files.factsThroughLinks(top) else { return false }
            return try chain.contains { try facts.isSameFile(Files.factsThroughLinks($0)) }
        }
    }
}

extension Consumer {
    /// The files in the settings that determine which program moult runs, or which process gets a signal.
    fileprivate var namedFiles: [String] {
        switch means {
        case .command(let command):
            // An interpreter gets the path of its script as an argument.
            ([command.release, command.reload].compactMap(\.self).flatMap(\.self)).filter(\.isAbsolutePath)
        case .signal(let signal): [signal.pidFile]
        case .unit, .app: []
        }
    }
}
