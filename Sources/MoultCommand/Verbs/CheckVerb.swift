internal import Moult
internal import MoultBasics
internal import MoultTransport
internal import StepKit

/// `moult check`: queries the feed for a newer release.
enum CheckVerb {
    static let command = Command(
        "check", .operators, "check the feed for a newer release",
        discussion: [
            """
            The command installs nothing. If the feed cannot be reached, the command fails: this never counts as "no \
            newer release". If a newer release exists, the command also makes a plan, so the output says whether \
            `moult apply` would refuse the release, and which option would allow it.
            """
        ], options: FeedOptions.all + UpdateOptions.planning,
        examples: [
            "Is a newer release available?": "moult check",
            "In a script:": "moult check -q; [ $? = 2 ] && notify-send 'new data'",
        ],
        exits: [
            .done: "no newer release for this store", .changes: "a newer release exists",
            .failure(.refused): "the feed cannot be trusted, or the data is older than maxAge; the message says why",
            .failure(.busy): "the feed cannot be reached now",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        var status = try call.orchestrator().check(call.feedRequest(), plans: true)
        status.obstacle = status.obstacle.map(call.pasted)
        try call.reportUnfinished()
        let words = ["moult", "apply"] + call.feedWords + call.requestWords + call.storeWords
        call.output.print(FeedReport(status: status, install: words))
        if status.newest != nil { return .changes }
        return status.oldData == nil ? .done : .failure(.refused)
    }
}

struct FeedReport: Report {
    let status: Orchestrator.FeedStatus
    var install: [String] = []

    func write(to page: inout Page) {
        let installed = status.installed.map { "\($0)" } ?? "nothing"
        if let newest = status.newest {
            if status.obstacle?.code == .notThere {
                page.line("\(status.choice.unreadable, .heading); \(installed) is installed")
            } else {
                page.line("\("\(newest.version) is available", .heading), \(installed) is installed")
            }
            if status.choice.way.count > 1 {
                let between = status.choice.way.dropLast().map { "\($0.version)" }.joined(separator: ", ")
                page.wrapped("the update to \(newest.version) also installs \(between)")
            }
            if let note = status.choice.note { page.wrapped("\(note)") }
        } else {
            page.line(
                status.installed == nil ? "no release for this store" : "no newer release: \(installed) is installed")
        }
        // Releases that a hold names are reported below.
        for skipped in status.choice.skipped where !status.holds.names(skipped.version) {
            page.wrapped("\("=", .dim) \("\(skipped.version)") is skipped: \(skipped.why)")
        }
        if let reason = status.choice.withdrawn {
            page.wrapped(StyledText("\(installed) was withdrawn by its publisher: \(reason)", .warning))
        }
        if let old = status.oldData { page.wrapped(StyledText("\(old.sentence), and \(old.reason)", .warning)) }
        page.wrapped(
            StyledText(
                "feed \(status.feed), serial \(status.serial), \(status.provenance.words), valid until \(status.expires.text(for: page.terminal))",
                .dim))
        page.holds(status.holds)
        if let obstacle = status.obstacle {
            let why = obstacle.why.map { ": \($0)" } ?? ""
            page.wrapped(StyledText("`moult apply` would refuse this release: \(obstacle.what)\(why)", .warning))
            if let now = obstacle.now { page.wrapped(StyledText(now), indent: 2) }
        } else if status.newest != nil {
            page.line("install it with: \(run: install, .heading)")
        }
        if status.provenance == .unchecked { page.wrapped("\(FeedReport.keyHint, .dim)") }
    }

    static let keyHint: Advice =
        "to check signatures, put the publisher's public key into \"keys\" of moult.json: \(moult: "help", "settings")"

    var json: JSON {
        .record([
            "feed": status.feed, "serial": status.serial, "expires": status.expires.description,
            "trust": status.provenance.words, "installed": status.installed?.description,
            "available": status.newest?.version.description, "way": status.choice.way.map(\.version.description),
            "skipped": status.choice.skipped.map { JSON.record(["version": $0.version.description, "why": $0.why]) },
            "holds": status.holds.json, "obstacle": status.obstacle.flatMap { ErrorReport($0).json["error"] },
            "note": status.choice.note, "withdrawn": status.choice.withdrawn,
            "onWithdrawn": status.choice.onWithdrawn?.rawValue,
            "tooOld": status.oldData.map { "\($0.sentence), and \($0.reason)" },
        ])
    }
}
