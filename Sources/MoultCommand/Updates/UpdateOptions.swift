internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import StepKit

enum UpdateOptions {
    static let app = Option("app", value: .text("VERSION"), "The app's version, if releases require one")
    static let follow = Option(
        "follow", value: .choice("HOW", of: Policy.Follow.allCases.map(\.rawValue)),
        "`newer` (newer releases) or `match` (any)")
    static let allowDowngrade = Option("allow-downgrade", "Accept an older release or feed this time")
    static let wait = Option(
        "wait", value: .number("SECONDS", in: 0...604_800), "Time to wait for another update (default 0)")

    static let forceAfter = Option(
        "force-after", value: .number("SECONDS", in: 0...86_400), "Kill blocking processes after this time")
    static let waitForReaders = Option(
        "wait-for-readers", value: .number("SECONDS", in: 0...86_400), "Time to wait for readers of the old release")

    static let takeOver = Option(
        "take-over", value: .text("NAME"), repeats: true, "Let the release take over this database's file")
    static let acceptUnpreserved = Option("accept-unpreserved", "Set aside rows that are no longer preserved")

    static let checkTimeout = Option(
        "check-timeout", value: .number("SECONDS", in: CheckTime.range),
        "CPU time per database check (default 60 s/GB)")

    static let dryRun = Option("dry-run", letter: "n", "Show the changes without making them")
    static let confirm = Option("confirm", "Show the plan and ask before applying it")

    static let consumers = [forceAfter, waitForReaders]
    /// The options that affect a plan.
    static let planning = [app, follow, allowDowngrade, takeOver, acceptUnpreserved]
    static let all = planning + [checkTimeout]
}

extension Call {
    func request() throws -> UpdateRequest {
        var request = UpdateRequest(
            follow: value(UpdateOptions.follow).flatMap { Policy.Follow(rawValue: $0) },
            allowDowngrade: has(UpdateOptions.allowDowngrade), app: try version(UpdateOptions.app), consent: consent)
        request.checkTime.fixed = number(UpdateOptions.checkTimeout)
        return request
    }

    var consent: Consent {
        Consent(takeOver: Set(values(UpdateOptions.takeOver)), acceptsUnpreserved: has(UpdateOptions.acceptUnpreserved))
    }

    /// Runs a body that reads the given manifest. If the file is not a manifest, the error says what is expected.
    func reading<R>(_ manifest: String, _ body: () throws -> R) throws -> R {
        do { return try body() } catch var error as MoultError
            where error.now == nil && [.json, .system].contains(error.code) && error.what.contains(manifest)
        {
            error.now = "Specify the manifest of a release. `moult pack` creates it from a draft, next to the bundle."
            throw error
        }
    }

    /// The given options of a request, for a command line that makes the same request.
    var requestWords: [String] { words(of: UpdateOptions.all) }

    func version(_ option: Option) throws -> Version? {
        guard let text = value(option) else { return nil }
        if let version = Version(text) { return version }
        throw wrongUsage("--\(option.name) must be a version such as 3.4.0, not \"\(text)\"")
    }

    /// Returns a watcher that shows progress, warnings and recovered updates, and stops on a signal.
    func watcher(_ bar: ProgressBar? = nil) -> Watcher {
        Watcher(
            tell: { [output] event in
                switch event {
                case .progress(let progress):
                    bar?.show(Progress(progress.what, done: progress.done, of: progress.total))
                case .recovered(let result):
                    output.note(StyledText(result.text))
                    output.warnOfRows(in: result.kept)
                    for set in result.kept where !set.hasUncarriedRows { output.note(StyledText(set.keptText([]))) }
                case .warning(let text): output.warn(text)
                default: break
                }
            }, shouldStop: { Interruption.isRequested })
    }

    var wait: Int { number(UpdateOptions.wait) ?? 0 }

    func orchestrator(_ watcher: Watcher = Watcher()) throws -> Orchestrator {
        try Orchestrator(root: store(), steps: steps, watcher: watcher, consumers: consumerOptions)
    }

    /// How this verb treats processes that have databases open.
    var consumerOptions: ConsumerOptions {
        ConsumerOptions(
            forceAfter: number(UpdateOptions.forceAfter), waitForReaders: number(UpdateOptions.waitForReaders))
    }

    func layout() throws -> StoreLayout { try StoreLayout(root: store()) }

    func snapshot() throws -> StoreSnapshot { StoreSnapshot(try layout()) }

    /// Returns whether `--confirm` was given; throws if moult cannot ask the question, which needs a terminal and text output.
    func asksForConfirmation() throws -> Bool {
        guard has(UpdateOptions.confirm) else { return false }
        guard output.isDialog else {
            throw wrongUsage(
                "--confirm needs a terminal and text output", why: "moult asks the question on the terminal")
        }
        return true
    }

    func feedRequest() throws -> FeedRequest {
        var request = FeedRequest(
            try self.request(), place: value(FeedOptions.feed).map(Self.feedAddress),
            allowUnsigned: has(FeedOptions.allowUnsigned))
        request.downloadsOnly = has(ApplyVerb.downloadOnly)
        return request
    }

    static func feedAddress(_ url: String) -> Address { Address(url.contains("://") ? url : Feed.file(at: url)) }

    /// The given feed options, without secrets.
    var feedWords: [String] {
        (value(FeedOptions.feed).map { FeedOptions.feed.words("\(Address($0))") } ?? [])
            + words(of: [FeedOptions.allowUnsigned])
    }

    func source(_ name: String) throws -> ReleaseSource {
        let source = try ReleaseSource(name) { try watcher().stopIfAsked() }
        if case .version = source { return source }
        if has(FeedOptions.feed) {
            throw wrongUsage(
                "--feed and a release cannot be used together",
                why: "choose one; the argument RELEASE can be a manifest or a feed")
        }
        if case .manifest = source {
            try refuseFeedOptions(with: "a manifest on this machine", why: "feed options apply only to a feed")
        }
        return source
    }

    /// Throws if feed options are given together with a plan or a manifest, to which they do not apply.
    func refuseFeedOptions(with what: String, why: String) throws {
        guard let word = feedWords.first else { return }
        throw wrongUsage("\(word) and \(what) cannot be used together", why: why)
    }
}

extension Plan {
    /// Asks the user at the terminal whether to apply the plan, which is already on the screen; throws unless the answer is
    /// yes.
    func confirm() throws { try StandardInput.confirm("Do this now?", orElse: "the \(title) was cancelled") }
}

enum FeedOptions {
    static let feed = Option("feed", value: .text("URL"), "Use this feed, not the one in moult.json")
    static let allowUnsigned = Option("allow-unsigned", "Accept an unsigned feed or release this time")

    static let all = [feed, allowUnsigned]
}
