package import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import MoultTrust
internal import StepKit

/// What the last command that asked a feed or began an update has brought. Only monitoring reads this record: no decision depends on
/// it, so it is not synced.
package struct Attempt: Sendable, Equatable {
    package struct Failure: Sendable, Equatable {
        package let code: String
        package let what: String
        package let why: String?
        package let advice: String?
    }

    package private(set) var time: Timestamp
    /// The verb: `apply`, `rollback` or `check`.
    package private(set) var command: String
    package private(set) var milliseconds: Int
    /// The bytes that it received from servers.
    package private(set) var bytes = 0
    /// The newest release of the feed, and when this machine gets it.
    package private(set) var rollout: Rollout?
    package private(set) var installed: String?
    package private(set) var failure: Failure?
    /// When an attempt last succeeded.
    package private(set) var lastSuccess: Timestamp?
    /// When the first of the failures after that was.
    package private(set) var failingSince: Timestamp?
    /// How many attempts have failed since the last success.
    package private(set) var failures = 0
    /// The consumers that did not reload after the last update.
    package private(set) var notReloaded: [String] = []

    /// Returns the newest readable record.
    package static func read(_ layout: StoreLayout) -> Attempt? {
        places(layout).compactMap { place in
            // A record that cannot be read is replaced by the next attempt.
            guard let bytes = try? Files.read(place, limit: 1 << 16) else { return nil }
            return (try? JSON(parsing: bytes, source: place)).flatMap { Attempt($0) }
        }.reduce(nil) { newest, next in newest.map { $0.time > next.time } ?? false ? newest : next }
    }

    /// Records how a command ended: in the store, or else, if that cannot be written, in the state directory of this user. Returns the
    /// record; nil if the command counts as no attempt.
    @discardableResult
    static func record(
        _ command: String, _ error: (any Error)?, took: Duration, notReloaded: [String]?, bytes: Int = 0,
        rollout: Rollout? = nil, in layout: StoreLayout
    ) -> Attempt? {
        // The history has a rollback that failed, and the operator who asked for it has the message.
        if let error = error as? MoultError, command == "rollback" || Self.isNoAttempt(error) { return nil }
        let before = read(layout)
        // A check does not show that an update would succeed.
        if command == "check", error == nil, before?.failure != nil, before?.command != "check" { return nil }
        var new = Attempt(
            time: .now, command: command, milliseconds: took.microseconds / 1000, lastSuccess: before?.lastSuccess)
        (new.bytes, new.rollout) = (bytes, rollout ?? before?.rollout)
        // A damaged store has findings of its own.
        new.installed = (try? StoreSnapshot(layout).installedVersion)?.description
        new.notReloaded = notReloaded ?? before?.notReloaded ?? []
        if let error {
            let error = error as? MoultError
            new.failure = Failure(
                code: (error?.code ?? .unexpected).description, what: error?.what ?? "the command failed",
                why: error?.why, advice: error?.now?.description)
            new.failures = (before?.failures ?? 0) + 1
            new.failingSince = before?.failingSince ?? new.time
        } else {
            new.lastSuccess = new.time
        }
        new.write(layout)
        return new
    }

    /// Forgets the consumers that did not reload: the operator has restarted them.
    static func forgetReloads(in layout: StoreLayout) {
        guard var attempt = read(layout), !attempt.notReloaded.isEmpty else { return }
        attempt.notReloaded = []
        attempt.write(layout)
    }

    /// Whether an error shows nothing about the next attempt: the operator stopped this one or holds the release, another process is
    /// making one, or the command was wrong.
    private static func isNoAttempt(_ error: MoultError) -> Bool {
        [.usage, .stale].contains(error.outcome) || [.interrupted, .locked, .noFeed, .held].contains(error.code)
    }

    private func write(_ layout: StoreLayout) {
        for place in Self.places(layout) {
            do {
                if place != layout.attempt { try Files.ensureDirectories(Files.directory(of: place)) }
                try Files.replace(place, with: Array(json.line.utf8), mode: 0o644, durable: false)
                // An older record elsewhere would only confuse an operator who looks for it.
                if place == layout.attempt { for other in Self.places(layout).dropFirst() { try? Files.remove(other) } }
                return
            } catch {
                // The next place is tried. Without any, `status` still reports that the store cannot be written.
                _ = try? Files.removeStaged(of: place)
            }
        }
    }

    private static func places(_ layout: StoreLayout) -> [String] {
        let state =
            geteuid() == 0
            ? "/var/lib/moult"
            : (ProcessEnvironment.word("XDG_STATE_HOME") ?? ProcessEnvironment.word("HOME").map { "\($0)/.local/state" })
                .map { "\($0)/moult" }
        guard let state, state.isAbsolutePath, let name = try? SHA256.digest(of: Array(layout.root.utf8)).hex else {
            return [layout.attempt]
        }
        return [layout.attempt, "\(state)/attempts/\(name).json"]
    }
}

extension Attempt {
    package var json: JSON {
        .record([
            "time": time.description, "command": command, "milliseconds": milliseconds, "bytes": bytes,
            "rollout": rollout?.json, "installed": installed, "code": failure?.code, "what": failure?.what,
            "why": failure?.why, "advice": failure?.advice, "lastSuccess": lastSuccess?.description,
            "failingSince": failingSince?.description, "failures": failures, "notReloaded": notReloaded.unlessEmpty,
        ])
    }

    private init?(_ json: JSON) {
        func time(_ name: String) -> Timestamp? { json[name]?.string.flatMap { Timestamp($0) } }
        guard let ended = time("time"), let command = json["command"]?.string else { return nil }
        self.init(time: ended, command: command, milliseconds: Int(json["milliseconds"]?.integer ?? 0))
        bytes = Int(json["bytes"]?.integer ?? 0)
        rollout = json["rollout"].flatMap { Rollout($0) }
        installed = json["installed"]?.string
        if let code = json["code"]?.string, let what = json["what"]?.string {
            failure = Failure(code: code, what: what, why: json["why"]?.string, advice: json["advice"]?.string)
        }
        (lastSuccess, failingSince) = (time("lastSuccess"), time("failingSince"))
        failures = Int(json["failures"]?.integer ?? 0)
        notReloaded = json["notReloaded"]?.array?.compactMap(\.string) ?? []
    }

    /// What monitoring should know. A failure is a warning at once, and critical if the store has followed its feed in vain for as long
    /// as the settings say; so is a feed that was not asked for three intervals.
    func findings(_ settings: Settings.Monitoring, followsFeed: Bool, at now: Timestamp) -> [Finding] {
        var all: [Finding] = []
        if let failure {
            let since = failingSince ?? time
            let isOld = followsFeed && now.seconds - since.seconds >= settings.criticalAfter
            let what = failure.what + (failure.why.map { ": \($0)" } ?? "")
            let begin =
                failures > 1
                ? "\(failures) attempts to update have failed since" : "the last attempt to update failed at"
            all.add(
                .failure, isOld ? .critical : .warning, "\(begin) \(since): \(failure.code) \(what)",
                advice: failure.advice.map { Advice($0) })
        }
        if let every = settings.every, followsFeed, now.seconds - time.seconds > 3 * every {
            all.add(
                .missedRuns, .critical, "the feed was not asked since \(time)",
                why: "an update is expected every \(durationText(seconds: Double(every)))",
                advice: "Check the timer, then run: \(moult: "apply")")
        }
        for name in notReloaded {
            all.add(
                .consumer, .warning, "the consumer \(name) did not reload after the last update",
                why: "it may still read the earlier release",
                advice: "Restart that program, then run: \(moult: "recover")")
        }
        return all
    }
}

/// The place of this machine in the rollout of a release.
package struct Rollout: Sendable, Equatable {
    package let version: String
    /// The percentage from which on this machine is included, with two decimals.
    package let position: Double

    init(_ version: Version, position: Double) { (self.version, self.position) = (version.description, position) }

    init?(_ json: JSON) {
        guard let version = json["version"]?.string else { return nil }
        self.version = version
        switch json["position"] {
        case .number(let value): position = value
        case .integer(let value): position = Double(value)
        default: return nil
        }
    }

    package var json: JSON { .record(["version": version, "position": position]) }
}
