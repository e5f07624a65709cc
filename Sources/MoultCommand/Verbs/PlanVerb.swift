internal import Moult
internal import MoultBasics

/// `moult plan`: shows what applying a release would do.
enum PlanVerb {
    static let release = Argument(
        .source("RELEASE"), presence: .optional, "Manifest, feed, or version in the store's feed (default: the newest)")
    static let out = Option(
        "output", aliases: ["out"], letter: "o", value: .file(), "Save the plan, for `moult apply --plan FILE`")
    static let deep = Option(
        "deep", "Also unpack the bundle into a temporary directory, and try each row and migration")

    static let command = Command(
        "plan", .operators, "show what applying a release would do, and change nothing",
        discussion: [
            "Each line is one change, with a mark in front (moult help plans). Nothing is written except FILE.",
            """
            With --deep, the command does what `moult apply` does before it decides, with copies of the databases: it \
            checks the release, carries rows over, and runs migrations. It takes as long as an update. What changes in \
            the content of the databases is shown by `moult diff STORE RELEASE`.
            """,
        ], arguments: [release], options: [out, deep] + UpdateOptions.all + FeedOptions.all,
        examples: [
            "See what a release would change:": "moult plan releases/dailyvalue-2.1.0.json",
            "See what following the feed would change:": "moult plan",
            "Also try each row and migration:": "moult plan --deep releases/dailyvalue-2.1.0.json",
            "Save the plan, so that exactly this plan is applied after approval:":
                "moult plan -o approved.plan new.json",
        ],
        exits: [
            .done: "nothing to do", .changes: "the store would change",
            .failure(.refused): "the release is refused; the message says why",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        guard let name = call.value(release) else { return try follow(call, call.feedRequest(), []) }
        let orchestrator = try call.orchestrator()
        switch try call.reading(name, { try call.source(name) }) {
        case .feed(let feed): return try follow(call, call.feedRequest().at(feed), ["\(feed.address)"])
        case .version(let version):
            let plan = try orchestrator.plan(to: version, call.feedRequest(), deep: call.has(deep))
            return try plan.map { try show($0, [name] + call.feedWords, call) } ?? .done
        case .webManifest(let manifest):
            return try show(
                orchestrator.plan(from: manifest, call.feedRequest()), ["\(manifest.address)"] + call.feedWords, call)
        case .manifest(let release):
            let plan = try call.reading(name) { try orchestrator.plan(release, call.request(), deep: call.has(deep)) }
            return try show(plan, [release.path], call)
        }
    }

    /// Shows the plan for the feed's next release, or the state of the feed if it has none.
    private static func follow(_ call: Call, _ request: FeedRequest, _ words: [String]) throws -> ExitCode {
        let (status, plan) = try call.orchestrator().plan(following: request, deep: call.has(deep))
        guard let plan else {
            call.output.print(FeedReport(status: status))
            if let file = call.value(out) {
                call.output.warn("no plan was saved to \(file): the feed has no release to install")
            }
            return .done
        }
        return try show(plan, words + call.feedWords, call)
    }

    private static func show(_ plan: Plan, _ words: [String], _ call: Call) throws -> ExitCode {
        if call.has(deep), plan.manifestPath == nil, plan.origin != nil {
            throw call.wrongUsage(
                "--deep needs a manifest on this machine",
                why: "the bundle of a remote release is downloaded only when it is applied")
        }
        var command = ["moult", "apply"] + words + call.storeWords + call.requestWords
        if let file = call.value(out) {
            if plan.manifestPath == nil, plan.origin == nil {
                throw call.wrongUsage(
                    "--output needs a release of the feed or a manifest",
                    why: "\(plan.to.version) is only kept in the store, which may remove it")
            }
            try plan.save(to: file)
            command = ["moult", "apply", "--plan", file]
        }
        return try call.show(plan, store: call.store(), command: command, in: call.orchestrator())
    }
}
