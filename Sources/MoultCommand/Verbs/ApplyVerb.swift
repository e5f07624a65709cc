internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultTrust
internal import StepKit

/// `moult apply`: installs a release, or applies a saved plan.
enum ApplyVerb {
    static let release = Argument(
        .source("RELEASE"), presence: .optional, "Manifest, feed or version (default: the feed)")
    static let create = Option("create", "Create the store if it does not exist")
    static let key = Option(
        InitVerb.key.name, value: InitVerb.key.value, repeats: true, "With --create: trust only this key")
    static let downloadOnly = Option("download-only", "Download the files, and install nothing")
    static let plan = Option("plan", value: .file(), "Apply this saved plan instead of RELEASE")

    static let command = Command(
        "apply", .operators, "install a release completely, or not at all",
        discussion: [
            """
            Apps see no change until every file is verified, and Ctrl-C is always safe.
            """
        ], arguments: [release],
        options: [plan, create, key, downloadOnly, UpdateOptions.confirm] + UpdateOptions.all + FeedOptions.all + [
            UpdateOptions.wait, Retry.option, Spread.option,
        ] + UpdateOptions.consumers,
        rules: [.needs(InitVerb.key, create, why: "the keys of a store are in its moult.json")]
            + [plan, create, UpdateOptions.confirm].map {
                Command.Rule.one([downloadOnly, $0], why: "--download-only installs nothing")
            }, changesStore: true,
        examples: [
            "Install a release:": "moult apply releases/dailyvalue-2.1.0.json",
            "Follow the store's feed, from a timer:": "moult apply -q --wait 60 --spread 600",
            "Create the store at the first start of an app, and update it at each start:":
                "moult apply -q --create --store ~/.app --follow match data/app-2.1.0.json",
        ],
        exits: [
            .done: "installed", .failure(.failed): "failed before any change", .failure(.refused): "refused",
            .failure(.stale): "the plan is out of date", .failure(.undone): "failed and undone",
            .failure(.stuck): "stuck",
            .failure(.busy): "an update is running, a database is open, or the feed cannot be reached",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        if call.has(create), let feed = call.value(FeedOptions.feed) {
            throw call.wrongUsage(
                "--create and --feed cannot be used together",
                why: "a store follows the feed that it is created from: "
                    + shellLine(
                        ["moult", "apply", "--create"] + call.storeWords + call.words(of: [InitVerb.key])
                            + ["\(Address(feed))"]))
        }
        if call.has(create), call.value(release) == nil {
            throw call.wrongUsage(
                "--create needs a release or a feed", why: "the release or feed determines the product of the store")
        }
        try Spread.wait(call)
        try Retry.run(call) {
            switch (call.value(release), call.value(plan)) {
            case (let name?, nil): try install(call, name)
            case (nil, let file?): try apply(call, file)
            case (nil, nil): try follow(call, nil)
            case (_?, _?):
                throw call.wrongUsage("a release and a saved plan cannot both be applied", why: "specify only one")
            }
        }
        return .done
    }

    private static func install(_ call: Call, _ name: String) throws {
        Interruption.watch()
        let source: ReleaseSource
        do { source = try call.reading(name) { try call.source(name) } } catch {
            let root = call.has(create) ? call.storeToCreate : try call.namedStore()
            try Orchestrator.recordFailure(of: Address(name), error, in: StoreLayout(root: root))
            throw error
        }
        let isNew = try call.reading(name) { try call.has(create) && makeStore(call, source) }
        if isNew {
            // If the installation fails, the new store is removed again, and the error of the installation is reported.
            do {
                try call.orchestrator().removingStoreOnFailure(isNew: true) { try install(call, name, source) }
            } catch let error as MoultError { throw advised(error, forNewStoreOf: call) }
        } else {
            try install(call, name, source)
        }
    }

    /// Returns the error with advice for a store that does not exist yet: its keys are those on the command line.
    private static func advised(_ error: MoultError, forNewStoreOf call: Call) -> MoultError {
        var error = error
        if error.now == Signature.addKey {
            error.now = "If that key is the publisher's, specify its .pub file with --key."
        }
        if error.code == .unsigned,
            let secret = call.values(InitVerb.key).lazy.compactMap(Keys.secretFile(nextTo:)).first
        {
            error.now = error.now?.replacing(placeholder: "FILE", with: secret)
        }
        return error
    }

    private static func install(_ call: Call, _ name: String, _ source: ReleaseSource) throws {
        switch source {
        case .feed(let feed): try follow(call, feed)
        case .version(let version):
            try update(call) { orchestrator, announce in
                try orchestrator.update(to: version, call.feedRequest(), wait: call.wait, announce: announce)
            }
        case .webManifest(let manifest):
            try update(call) { orchestrator, announce in
                try orchestrator.update(from: manifest, call.feedRequest(), wait: call.wait, announce: announce)
            }
        case .manifest(let release):
            if call.has(downloadOnly) {
                throw call.wrongUsage("--download-only needs a feed", why: "\(name) is on this machine")
            }
            try update(call) { orchestrator, announce in
                try call.reading(name) {
                    try orchestrator.update(release, call.request(), wait: call.wait, announce: announce)
                }
            }
        }
    }

    private static func update(
        _ call: Call, _ body: (Orchestrator, @escaping (Plan) throws -> Void) throws -> Orchestrator.Result
    ) throws {
        let display = UpdateDisplay(call, store: try call.store(), asksForConfirmation: try call.asksForConfirmation())
        display.finish(try body(call.orchestrator(display.watcher), display.announce))
    }

    /// Creates the store, and returns whether it did. An existing store must have the given keys.
    private static func makeStore(_ call: Call, _ source: ReleaseSource) throws -> Bool {
        let store = call.storeToCreate
        try Custody(StoreLayout(root: store)).check()
        let follow = call.value(UpdateOptions.follow).flatMap { Policy.Follow(rawValue: $0) } ?? .newer
        var settings = Settings(product: try source.product, follow: follow)
        settings.keys = try call.keys()
        if settings.keys == nil, let address = try source.webAddress, !call.has(FeedOptions.allowUnsigned),
            try Files.facts(StoreLayout(root: store).settings) == nil
        {
            throw MoultError(
                .distrusted, .refused, what: "\(address) cannot be verified",
                why: "a new store trusts no key unless you specify one",
                now:
                    "Specify the publisher's public key: \(moult: "apply", "--key", "KEY"). To install without a key this time, add --allow-unsigned."
            )
        }
        if case .feed(let feed) = source { settings.feed = FeedSettings(url: feed.address) }
        // The other settings of an existing store may differ from those that this command would write.
        return try Orchestrator.create(
            at: store, settings, wanting: call.has(InitVerb.key) ? ["keys"] : [], wait: call.wait)
    }

    private static func follow(_ call: Call, _ feed: ReleaseSource.Content?) throws {
        Interruption.watch()
        let display = UpdateDisplay(call, store: try call.store(), asksForConfirmation: try call.asksForConfirmation())
        let request = try call.feedRequest()
        let (status, result) = try call.orchestrator(display.watcher).follow(
            feed.map(request.at) ?? request, wait: call.wait, announce: display.announce)
        if call.has(create), result.generation == nil { throw nothingOffered(status) }
        if result.plan == nil, result.downloaded == nil, call.output.format == .text {
            call.output.print(FeedReport(status: status))
        } else {
            let answer = result.plan == nil ? FeedReport(status: status).json : nil
            display.finish(result, feed: answer)
        }
    }

    /// Returns the error for a first install from a feed that has no release for this store: an app would start without its
    /// databases.
    private static func nothingOffered(_ status: Orchestrator.FeedStatus) -> MoultError {
        let skipped = status.choice.skipped.map { "\($0.version): \($0.why)" }
        return MoultError(
            .refused, .refused, what: "nothing was installed: \(status.feed) has no release for this store",
            why: skipped.isEmpty ? nil : skipped.joined(separator: "; "),
            now: "Try again after the publisher has added one, or specify the manifest of a release.")
    }

    private static func apply(_ call: Call, _ file: String) throws {
        let why = "the options are set when the plan is created"
        try call.refuseFeedOptions(with: "--plan", why: why)
        if let word = call.requestWords.first {
            throw call.wrongUsage("\(word) and --plan cannot be used together", why: why)
        }
        guard try Custody.check(plan: file), let plan = try Plan.saved(in: file) else {
            throw MoultError(
                .stale, what: "no plan at \(file)", why: "no such file",
                now: "Create one with: \(moult: "plan", "--output", "FILE", "RELEASE")")
        }
        Interruption.watch()
        // The plan names its store. A store in the current directory must not be used instead.
        let root = call.value(.store) ?? plan.store
        let display = UpdateDisplay(call, store: nil, naming: root, asksForConfirmation: try call.asksForConfirmation())
        try call.check(root)
        let result = try Orchestrator(
            root: root, steps: call.steps, watcher: display.watcher, consumers: call.consumerOptions
        ).apply(plan, wait: call.wait, announce: display.announce)
        display.finish(result)
    }
}
