internal import Moult
internal import MoultBasics
internal import MoultStore
internal import StepKit

/// `moult check`: asks the feed for a newer release.
enum CheckVerb {
    static let command = Command(
        "check", .operators, "check the feed for a newer release",
        discussion: [
            """
            It installs nothing. If the feed cannot be reached, the command fails: this never counts as "no newer \
            release". For a newer release it makes a plan, so the output says whether moult apply would refuse the \
            release, and which option allows it.
            """
        ],
        options: FeedOptions.all + UpdateOptions.planning,
        examples: [
            .init("Is a newer release available?", "moult check"),
            .init("In a script:", "moult check -q; [ $? = 2 ] && notify-send 'new data'"),
        ],
        exits: [
            .init(.done, "no newer release for this store"), .init(.changes, "a newer release exists"),
            .init(.failure(.refused), "the feed cannot be trusted; the message says why"),
            .init(.failure(.busy), "the feed cannot be reached now"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        var look = try call.orchestrator().check(call.feedRequest(), plans: true)
        look.obstacle = look.obstacle.map(call.pasted)
        let words = ["moult", "apply"] + call.feedWords + call.requestWords + call.storeWords
        call.output.print(FeedReport(look: look, storeWords: call.storeWords, install: words))
        return look.newest == nil ? .done : .changes
    }
}

/// The answer of the feed.
struct FeedReport: Report {
    let look: Orchestrator.FeedLook
    let storeWords: [String]
    /// The command that installs the newest release.
    var install: [String] = []

    func write(to page: inout Page) {
        let installed = look.installed.map { "\($0)" } ?? "nothing"
        if let newest = look.newest {
            page.line("\("\(newest.version) is available", .heading), \(installed) is installed")
            if look.choice.way.count > 1 {
                let between = look.choice.way.dropLast().map { "\($0.version)" }.joined(separator: ", ")
                page.wrapped("the update to it also installs \(between)")
            }
            if let note = look.choice.note { page.wrapped("\(note)") }
        } else {
            page.line(
                look.installed == nil
                    ? "no release for this store" : "no newer release: \(installed) is installed")
        }
        // Releases on hold are reported below.
        for skipped in look.choice.skipped where look.holds.covering(skipped.version).isEmpty {
            page.wrapped("\("=", .dim) \("\(skipped.version)") is skipped: \(skipped.why)")
        }
        if let reason = look.choice.withdrawn {
            page.wrapped(StyledText("\(installed) was withdrawn by its publisher: \(reason)", .warning))
        }
        page.wrapped(
            StyledText(
                "feed \(look.feed), serial \(look.serial), \(look.provenance.words), valid until \(look.expires.text(for: page.terminal))",
                .dim))
        page.holds(look.holds, storeWords: storeWords)
        if let obstacle = look.obstacle {
            let why = obstacle.why.map { ": \($0)" } ?? ""
            page.wrapped(StyledText("moult apply would refuse it: \(obstacle.what)\(why)", .warning))
            if let now = obstacle.now { page.wrapped(StyledText(now), indent: 2) }
        } else if look.newest != nil {
            page.line("install it with: \(shellLine(install), .heading)")
        }
        if look.provenance == .unchecked { page.wrapped(StyledText(FeedReport.keyHint, .dim)) }
    }

    static let keyHint =
        "to check signatures, put the publisher's public key into \"keys\" of moult.json: moult help settings"

    var json: JSON {
        .compact([
            "feed": .string(look.feed), "serial": .size(look.serial), "expires": .string(look.expires.description),
            "trust": .string(look.provenance.words), "installed": .optional(look.installed?.description),
            "newest": .optional(look.newest?.version.description),
            "way": .array(look.choice.way.map { .string($0.version.description) }),
            "passed": .array(
                look.choice.skipped.map { ["version": .string($0.version.description), "why": .string($0.why)] }),
            "holds": look.holds.json,
            "obstacle": look.obstacle.map { ErrorReport($0).json["error"] ?? .null },
            "note": .optional(look.choice.note), "withdrawn": .optional(look.choice.withdrawn),
        ])
    }
}
