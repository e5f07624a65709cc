internal import Moult
internal import MoultBasics
internal import MoultEngine
internal import MoultStore
internal import StepKit

/// `moult apply`: brings a release in, or does a saved plan.
enum ApplyVerb {
    static let release = Argument(
        .source("RELEASE"), presence: .optional,
        "The sealed manifest of a release, or a feed: a path or a URL. Without it, the store's own feed is followed")
    static let create = Option(
        "create",
        "Make the store if it is missing, for the product of RELEASE; with --key, it trusts only that key")
    static let plan = Option("plan", value: .file(), "Do exactly this saved plan, once, instead of RELEASE")

    static let command = Command(
        "apply", .operators, "bring a release in: all of it, or nothing",
        discussion: [
            """
            Everything is unpacked and proven beside the store first. Until that has succeeded nothing visible \
            changes, and Ctrl-C ends it without a trace; what comes then takes a moment, and is undone exactly if it \
            fails. If the release is installed already, nothing of it is written; databases that apps have changed are \
            looked at once, and .moult/checks.json remembers that.
            """,
            """
            A missing store is an error, because the name may be wrong or a disk may not be mounted. With --create it is \
            made, so that the same command installs the first release and each later one. If RELEASE is a feed, the new \
            store follows it from then on.
            """,
        ],
        arguments: [release],
        options: [plan, create, InitVerb.key, UpdateOptions.confirm] + UpdateOptions.all + FeedOptions.all + [
            UpdateOptions.wait, Retry.option, Spread.option,
        ]
            + UpdateOptions.consumers,
        changesStore: true,
        examples: [
            .init("Bring a release in:", "moult apply releases/dailyvalue-2.1.0.json"),
            .init(
                "At each start of an app, the first one too:",
                "moult apply -q --create --store ~/.app --follow match data/app-2.1.0.json"),
            .init(
                "The same from a server, signed with a key that you know:",
                "moult apply --create --key app.pub https://example.org/app/feed.json"),
            .init("From cron, silent when all is well:", "moult apply -q --wait 60 /srv/releases/latest.json"),
            .init("From a service, where an hour without success is a failure:", "moult apply -q --retry 3600"),
            .init("Follow the store's feed, from a timer:", "moult apply -q --wait 60 --spread 600"),
            .init("See the plan, then decide:", "moult apply --confirm releases/dailyvalue-2.1.0.json"),
            .init("Do what was approved:", "moult apply --plan approved.plan"),
        ],
        exits: [
            .init(.done, "it is installed, or was already"),
            .init(.failure(.failed), "it failed before anything was changed"),
            .init(.failure(.refused), "the release is refused; the message says why"),
            .init(.failure(.stale), "the saved plan was used, or no longer fits; the message says what changed"),
            .init(.failure(.undone), "it failed and was undone"),
            .init(
                .failure(.busy), "another update is running, or a process keeps a database open; the message names it"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        if call.has(InitVerb.key), !call.has(create) {
            throw call.wrongUsage("--key needs --create", why: "the keys of a store are in its moult.json")
        }
        if call.has(create), call.value(release) == nil {
            throw call.wrongUsage("--create needs a release or a feed", why: "it says which product the store is for")
        }
        try Spread.wait(call)
        try Retry.run(call) {
            switch (call.value(release), call.value(plan)) {
            case (let name?, nil): try bring(call, name)
            case (nil, let file?): try apply(call, file)
            case (nil, nil): try follow(call, nil)
            case (_?, _?): throw call.wrongUsage("a release and a saved plan cannot both be applied", why: "name one")
            }
        }
        return .done
    }

    private static func bring(_ call: Call, _ name: String) throws {
        Interruption.watch()
        let source = try call.reading(name) { try call.source(name) }
        let isNew = try call.reading(name) { try call.has(create) && makeStore(call, source) }
        if isNew {
            // The error that counts is the one that comes first: the store goes again, however far this got.
            try call.orchestrator().firstInstalling(isNew: true) { try bring(call, name, source) }
        } else {
            try bring(call, name, source)
        }
    }

    private static func bring(_ call: Call, _ name: String, _ source: ReleaseSource) throws {
        switch source {
        case .feed(let feed): try follow(call, feed.address)
        case .webManifest(let manifest):
            try update(call) { orchestrator, announce in
                try orchestrator.update(from: manifest, call.feedRequest(), wait: call.wait, announce: announce)
            }
        case .manifest(let path):
            try update(call) { orchestrator, announce in
                try call.reading(name) {
                    try orchestrator.update(call.request(path), wait: call.wait, announce: announce)
                }
            }
        }
    }

    private static func update(
        _ call: Call, _ body: (Orchestrator, @escaping (Plan) throws -> Void) throws -> Orchestrator.Result
    ) throws {
        let display = UpdateDisplay(call, store: try call.store(), asksBefore: try call.asksBefore())
        display.finish(try body(call.orchestrator(display.watcher), display.announce), storeWords: call.storeWords)
    }

    /// False if the store exists; then it must have the named keys.
    private static func makeStore(_ call: Call, _ source: ReleaseSource) throws -> Bool {
        let store = call.storeToMake
        try Custody(StoreLayout(root: store)).prove()
        let follow = call.value(UpdateOptions.follow).flatMap { Policy.Follow(rawValue: $0) } ?? .newer
        var settings = Settings(product: try source.product, follow: follow)
        settings.keys = try call.keys()
        if case .feed(let feed) = source { settings.feed = FeedSettings(url: feed.address) }
        // The other settings of a store that is there may differ from this command's.
        return try Orchestrator.create(at: store, settings, wanting: call.has(InitVerb.key) ? ["keys"] : [])
    }

    /// Follows the feed that was named as the release, by an option, or in the settings.
    private static func follow(_ call: Call, _ feed: Address?) throws {
        Interruption.watch()
        let display = UpdateDisplay(call, store: try call.store(), asksBefore: try call.asksBefore())
        let request = try call.feedRequest()
        let (look, result) = try call.orchestrator(display.watcher).follow(
            feed.map(request.at) ?? request, wait: call.wait, announce: display.announce)
        if result.plan == nil, call.output.format == .text {
            call.output.print(FeedReport(look: look, storeWords: call.storeWords))
        } else {
            display.finish(result, storeWords: call.storeWords)
        }
    }

    private static func apply(_ call: Call, _ file: String) throws {
        try call.refuseFeedOptions(with: "--plan")
        if let word = call.requestWords.first {
            throw call.wrongUsage(
                "\(word) and --plan cannot both be given", why: "what \(word) says is in the plan already")
        }
        guard let plan = try Plan.saved(in: file) else {
            throw MoultError(
                .stale, what: "no plan at \(file)", why: "no such file",
                now: "Make one with: moult plan --out FILE RELEASE")
        }
        Interruption.watch()
        let display = UpdateDisplay(call, store: nil, asksBefore: try call.asksBefore())
        // The plan says which store it was made for; another one must not be taken because it happens to be here.
        let root = call.value(.store) ?? plan.store
        let result = try Orchestrator(
            root: root, steps: call.steps, watcher: display.watcher, consumers: call.consumerOptions
        ).apply(
            plan, wait: call.wait, announce: display.announce)
        display.finish(result, storeWords: ["--store", root])
    }
}
