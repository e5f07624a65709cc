internal import Moult
internal import MoultBasics
internal import MoultEngine
internal import MoultStore
internal import StepKit

/// The options of the verbs that bring a release in, or only say how.
enum UpdateOptions {
    static let app = Option("app", value: .text("VERSION"), "The app's version, if a release requires one")
    static let follow = Option(
        "follow", value: .choice("HOW", of: Policy.Follow.allCases.map(\.rawValue)),
        "Releases to accept: newer, or match for any other version (default: the store's setting)")
    static let allowDowngrade = Option("allow-downgrade", "Accept an older release, too")
    static let wait = Option(
        "wait", value: .number("SECONDS", in: 0...604_800), "Seconds to wait for another update to finish (default 0)")

    static let forceAfter = Option(
        "force-after", value: .number("SECONDS", in: 0...86_400),
        "After so long, go on without consumers that do not let go, and end what still has a file open that is exchanged"
    )
    static let waitForReaders = Option(
        "wait-for-readers", value: .number("SECONDS", in: 0...86_400),
        "How long to wait in the end until readers have moved to the new generation; else as moult.json says")

    static let takeOver = Option(
        "take-over", value: .text("NAME"), repeats: true,
        "Let the release take over the file of a database that has another kind now; the file is kept in quarantine")
    static let acceptUnpreserved = Option(
        "accept-unpreserved",
        "Leave rows behind in quarantine that the installed release preserves and this one does not")

    static let checkTimeout = Option(
        "check-timeout", value: .number("SECONDS", in: CheckTime.range),
        "Seconds of the processor that the check of a database may take; else 60 for each GB, and 30 at least")

    static let confirm = Option("confirm", "Show the plan, and ask at the terminal before it is done")

    static let consumers = [forceAfter, waitForReaders]
    static let all = [app, follow, allowDowngrade, takeOver, acceptUnpreserved, checkTimeout]
}

extension Call {
    /// The request that a manifest and these options make.
    func request(_ manifest: String) throws -> UpdateRequest {
        var request = UpdateRequest(
            manifest: manifest, follow: value(UpdateOptions.follow).flatMap { Policy.Follow(rawValue: $0) },
            allowDowngrade: has(UpdateOptions.allowDowngrade), app: try version(UpdateOptions.app), consent: consent)
        request.checkTime.fixed = number(UpdateOptions.checkTimeout)
        return request
    }

    /// The effects on the app's data that the operator accepts.
    var consent: Consent {
        Consent(
            takeOver: Set(values(UpdateOptions.takeOver)), acceptsUnpreserved: has(UpdateOptions.acceptUnpreserved))
    }

    /// Runs what reads the manifest that was named, and says what that should be where it is something else.
    func reading<R>(_ manifest: String, _ body: () throws -> R) throws -> R {
        do { return try body() } catch var error as MoultError
            where error.now == nil && [.json, .system].contains(error.code) && error.what.contains(manifest)
        {
            error.now = "Name the sealed manifest of a release: moult pack makes it of a draft, beside the bundle."
            throw error
        }
    }

    /// The options of a request as they were given, for a command line that does the same.
    var requestWords: [String] {
        UpdateOptions.all.flatMap { option in
            guard has(option) else { return [String]() }
            return option.value == nil ? ["--\(option.name)"] : values(option).flatMap { ["--\(option.name)", $0] }
        }
    }

    func version(_ option: Option) throws -> Version? {
        guard let text = value(option) else { return nil }
        if let version = Version(text) { return version }
        throw wrongUsage("--\(option.name) is a version such as 3.4.0, not \"\(text)\"")
    }

    var wait: Int { number(UpdateOptions.wait) ?? 0 }

    /// The orchestrator of the store that is meant.
    func orchestrator(_ watcher: Watcher = Watcher()) throws -> Orchestrator {
        try Orchestrator(root: store(), steps: steps, watcher: watcher, consumers: consumerOptions)
    }

    /// How those who have databases open are dealt with, by a verb that has the options for it.
    var consumerOptions: ConsumerOptions {
        ConsumerOptions(
            forceAfter: number(UpdateOptions.forceAfter), waitForReaders: number(UpdateOptions.waitForReaders))
    }

    func layout() throws -> StoreLayout { try StoreLayout(root: store()) }

    /// The records of the chosen store.
    func snapshot() throws -> StoreSnapshot { StoreSnapshot(try layout()) }
}
