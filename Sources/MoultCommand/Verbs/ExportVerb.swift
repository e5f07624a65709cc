internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// `moult export`: copies a release with its feed and signatures, for use without a network.
enum ExportVerb {
    static let version = Argument(.text("VERSION"), "The version of a release in the feed")
    static let directory = Argument(.directory(), "The directory for the copy, created if missing")

    static let command = Command(
        "export", .operators, "copy a release with its signatures, for use without a network",
        discussion: [
            """
            The command copies the feed, the signatures, the manifest and the bundle. A store that installs from the \
            copy runs the same checks as over the network, so the feed must not have expired.
            """
        ], arguments: [version, directory], options: FeedOptions.all + [UpdateOptions.wait],
        examples: [
            "Copy a release to a USB stick:": "moult export 2.1.0 /media/stick/dailyvalue",
            "Install it from there:": "moult apply --feed /media/stick/dailyvalue/feed.json",
        ], exits: [.failure(.refused): "the release does not exist or is not trusted"], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let text = try call.required(version)
        guard let wanted = Version(text) else {
            throw call.wrongUsage("VERSION must be a version such as 2.1.0, not \"\(text)\"")
        }
        let target = try call.required(directory)
        let bar = call.progressBar()
        let files = try call.orchestrator(call.watcher(bar)).export(
            wanted, to: target, call.feedRequest(), wait: call.wait)
        bar.end()
        let json = JSON.record(["directory": target, "version": wanted.description, "files": files])
        call.output.print(json: json) { page in
            for file in files { page.line("\("+", .added) \(target)/\(file)") }
            let apply = ["moult", "apply", "--feed", "\(target)/feed.json"]
            // That machine has another store.
            page.line("install it from there with: \(shellLine(apply), .heading)")
        }
        return .done
    }
}
