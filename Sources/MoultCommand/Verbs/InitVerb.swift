internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultTransport
internal import MoultTrust
internal import StepKit

/// `moult init`: creates a store.
enum InitVerb {
    static let directory = Argument(
        .directory(), presence: .optional, "The directory of the store, created if missing (default ./store)")
    static let product = Option(
        "product", value: .text("NAME"), required: "every store belongs to one product",
        "The product of the store, such as org.example.dailyvalue")

    static let key = Option(
        "key", value: .text("KEY"), repeats: true, "Trust only this key: a .pub file, or the key line in it")

    static let feed = Option(
        "feed", value: .text("URL"), "The feed to follow: a path, a directory written by `moult publish`, or a URL")

    static let command = Command(
        "init", .operators, "create a store, the directory for the databases",
        discussion: [
            """
            A store holds the databases of one product. Files already in the directory are left alone. \
            When a release later replaces a file that moult did not create, the old file is kept in \
            quarantine; a file at the path of a user database stays in use. The settings are in \
            moult.json, which you can edit. If the store already exists with these settings, nothing \
            changes, so scripts can run the command every time.
            """
        ], arguments: [directory], options: [product, UpdateOptions.app, UpdateOptions.follow, key, feed],
        changesStore: true,
        examples: [
            "Create ./store:": "moult init --product org.example.dailyvalue",
            "For an app that ships its releases:": "moult init /var/lib/app --product org.example.app --follow match",
        ],
        exits: [
            .done: "the store exists",
            .failure(.refused): "a store with different settings exists; the message names the difference",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let product = try call.product(product) ?? call.required(product)
        if call.value(directory) != nil, call.has(.store) {
            throw call.wrongUsage("the store is specified twice", why: "use DIR or --store, not both")
        }
        let store = try call.value(directory) ?? call.value(.store) ?? call.environment.path("MOULT_STORE") ?? "./store"
        try StoreLocation.requireDirectory(store)
        let follow = call.value(UpdateOptions.follow).flatMap { Policy.Follow(rawValue: $0) } ?? .newer
        var settings = Settings(product: product, app: try call.version(UpdateOptions.app), follow: follow)
        (settings.keys, settings.feed) = (try call.keys(), try call.feedSettings())
        try Custody(StoreLayout(root: store)).check()
        let isNew = try Orchestrator.create(at: store, settings, wanting: ["product"] + call.specifiedSettings)
        if !isNew { settings = try Settings.written(StoreLayout(root: store)) }
        call.output.print(
            InitReport(
                store: store, root: try StoreLayout(root: store).root, settings: settings, isNew: isNew,
                isFoundByDefault: try isDefault(store, call)))
        return .done
    }

    /// Returns whether verbs find this store by default, so that the next command need not specify it.
    private static func isDefault(_ store: String, _ call: Call) throws -> Bool {
        // The only possible error is that the store is missing.
        guard let found = try? StoreLocation.find(option: nil, environment: call.environment) else { return false }
        return try StoreLayout(root: found) == StoreLayout(root: store)
    }

    private struct InitReport: Report {
        /// The store as given by the user, and as an absolute path.
        let store: String
        let root: String
        let settings: Settings
        let isNew: Bool
        let isFoundByDefault: Bool

        func write(to page: inout Page) {
            let follows =
                switch settings.follow {
                case .newer: "accepts newer releases only"
                case .match: "accepts any release"
                }
            page.wrapped(
                "\(isNew ? "+" : "=", isNew ? .added : .dim) \(store): a store for \(settings.product), which \(follows)"
            )
            if let keys = settings.keys {
                page.wrapped(
                    "the store accepts only files signed by \(keys.entries.map(\.key.id.description).joined(separator: " or "))"
                )
            }
            if let feed = settings.feed { page.wrapped("the store follows \(feed.url)") }
            let words =
                ["moult", "apply"] + (settings.feed == nil ? ["RELEASE"] : [])
                + (isFoundByDefault ? [] : ["--store", store])
            page.line("install a release with: \(run: words, .heading)")
        }

        var json: JSON {
            .record([
                "store": root, "created": isNew, "product": settings.product, "app": settings.app?.description,
                "follow": settings.follow.rawValue, "feed": settings.feed?.json, "keys": settings.keys?.json,
            ])
        }
    }
}

extension Call {
    /// Returns the keys that must have signed this store's releases; nil if none are given.
    func keys() throws -> TrustedKeys? {
        let keys = try values(InitVerb.key).map { TrustedKeys.Entry(key: try Keys.public($0)) }
        return keys.isEmpty ? nil : TrustedKeys(keys)
    }

    /// Returns the feed that the store should follow; nil if none is given.
    func feedSettings() throws -> FeedSettings? {
        try value(InitVerb.feed).map { url in
            // An address that cannot be downloaded from is not recorded, especially if it contains a password.
            _ = try Location(url)
            return FeedSettings(url: try Self.feedAddress(url.contains("://") ? url : Files.absolute(url)))
        }
    }

    /// The names of the given settings, which an existing store must already have.
    var specifiedSettings: [String] {
        [(UpdateOptions.app, "app"), (UpdateOptions.follow, "follow"), (InitVerb.key, "keys"), (InitVerb.feed, "feed")]
            .filter { has($0.0) }.map(\.1)
    }
}

extension Call {
    func product(_ option: Option) throws -> String? {
        guard let name = value(option), let fault = PlainName.productFault(name) else { return value(option) }
        throw wrongUsage("--\(option.name) \(fault), not \"\(name)\"")
    }
}
