package import MoultBasics
internal import MoultFiles
internal import MoultLibc
package import MoultTrust
package import StepKit

package struct Settings: Sendable, Equatable {
    package static let format = 1

    package var product: String
    package var app: Version?
    package var follow: Policy.Follow
    /// A hold written by the operator or an older moult; the store's holds are in `Holds`.
    package var hold: Hold?
    /// The number of generations to keep, including the current one.
    package var keep: Int
    /// Seconds for which a generation is kept after it was created or replaced, because readers without a lease may be
    /// about to open it.
    package var minimumAge: Int
    /// Seconds for which readers may use a release after it was made; nil for any time.
    package var maxAge: Int?
    /// The required signers of releases; nil accepts any release.
    package var keys: TrustedKeys?
    /// The directory of caches, if they are not in the store.
    package var cacheRoot: String?
    package var quarantine = QuarantineBudget()
    package var feed: FeedSettings?
    /// The consumers that are notified before and after databases change, in the order in which they reload.
    package var consumers: [Consumer] = []
    /// The steps that are not built in, and their permissions.
    package var steps: [StepSettings] = []
    /// Seconds for which a finished update waits for readers to leave the previous generation.
    package var waitForReaders = 0
    /// Seconds for which an update waits for programs that have a database locked.
    package var waitForApps = defaultWaitForApps
    static let defaultWaitForApps = 10
    /// CPU seconds for the check of a database; nil to derive them from its size.
    package var checkTimeout: Int?
    /// What happens if the publisher withdraws the installed release; nil to do what the publisher recommends.
    package var onWithdrawn: Feed.OnWithdrawn?
    /// The group of the store in rollouts: `first`, or one that the publisher names.
    package var rollout: String?
    /// When updates are installed; nil for any time.
    package var window: TimeWindow?
    package var report: Address?
    package var monitoring = Monitoring()
    /// The check that is run on each file of a release, even if its publisher's proof would be enough.
    package var verify: Database.Depth?

    /// The range of timeouts: at most a week, which is longer than any operation takes. Without a limit, calculations with the
    /// numbers could overflow.
    static let timeouts = CheckTime.range
    static let maxSeconds = 100 * 365 * 86_400
    static let maxBytes = 1 << 48

    package init(product: String, app: Version? = nil, follow: Policy.Follow = .newer) {
        (self.product, self.app, self.follow) = (product, app, follow)
        (hold, keep, minimumAge) = (nil, 2, 60)
    }

    /// The text of `moult.json`, including the secrets of the feed's URL.
    package var written: JSON {
        .record([
            "moult": Self.format, "product": product, "app": app?.description, "follow": follow.rawValue, "keep": keep,
            "hold": hold?.json, "feed": feed?.written, "keys": keys?.json,
        ])
    }

    /// Reads the settings; comments and trailing commas are allowed, because the file is written by hand.
    package init(parsing bytes: [UInt8], source: String) throws {
        let json = try JSON(parsing: bytes, as: .draft, source: source)
        let fields = try Fields(json) { place, why, now in
            MoultError(.settings, what: "\(source): \(place) \(why)", now: now)
        }
        let format = try fields.integer("moult")
        guard format == Self.format else {
            throw fields.fail("moult", "is format \(format), and this version of moult reads format \(Self.format)")
        }
        // Editors use this field to find the schema of the file.
        _ = try fields.optionalString("$schema")
        self.init(product: try fields.string("product"))
        if let text = try fields.optionalString("app") {
            guard let version = Version(text) else { throw fields.fail("app", "\"\(text)\" is not a SemVer version") }
            app = version
        }
        follow = try fields.word("follow", Policy.Follow.self) ?? follow
        keep = try fields.optionalNumber("keep", in: 1...1_000_000) ?? keep
        minimumAge = try fields.optionalNumber("minimumAge", in: 0...Self.maxSeconds) ?? minimumAge
        maxAge = try fields.optionalNumber("maxAge", in: 1...Self.maxSeconds)
        cacheRoot = try fields.absolutePath("cacheRoot")?.withoutFinalSlashes
        if let part = try fields.optionalObject("hold") {
            hold = try Hold(part, isRecord: false)
            try part.refuseUnknown()
        }
        if let part = try fields.optionalObject("quarantine") { try quarantine.read(part) }
        feed = try fields.optionalObject("feed").map { try FeedSettings($0) }
        if let part = try fields.optionalObject("keys") {
            keys = try TrustedKeys(part)
            try part.refuseUnknown()
        }
        consumers = try Consumer.read(fields)
        waitForReaders = try fields.optionalNumber("waitForReaders", in: 0...Self.timeouts.upperBound) ?? waitForReaders
        waitForApps = try fields.optionalNumber("waitForApps", in: 0...600) ?? waitForApps
        checkTimeout = try fields.optionalNumber("checkTimeout", in: CheckTime.range)
        verify = try fields.word("verify", Database.Depth.self)
        steps = try StepSettings.read(fields)
        onWithdrawn = try fields.word("onWithdrawn", Feed.OnWithdrawn.self)
        rollout = try fields.optionalString("rollout")
        if let rollout, let fault = PlainName.databaseFault(rollout) {
            throw fields.fail("rollout", "\"\(rollout)\" \(fault)")
        }
        if let text = try fields.optionalString("window") {
            guard let window = TimeWindow(text) else {
                throw fields.fail("window", "must be two times of day, such as 02:00-05:00, but is \"\(text)\"")
            }
            self.window = window
        }
        if let text = try fields.optionalString("report") {
            guard ["http://", "https://"].contains(where: text.hasPrefix) else {
                throw fields.fail("report", "must be a URL with http: or https:, but is \"\(Address(text))\"")
            }
            report = Address(text)
        }
        if let part = try fields.optionalObject("monitoring") {
            let range = 0...Self.maxSeconds
            monitoring.criticalAfter = try part.optionalNumber("criticalAfter", in: range) ?? monitoring.criticalAfter
            monitoring.every = try part.optionalNumber("every", in: 1...Self.maxSeconds)
            try part.refuseUnknown()
        }
        try fields.refuseUnknown()
    }

    /// Returns the settings, with the digests that `moult steps trust` pinned.
    package static func read(_ layout: StoreLayout) throws -> Settings {
        var settings = try written(layout)
        if !settings.steps.isEmpty { settings.steps = TrustedSteps(layout).applied(to: settings.steps) }
        return settings
    }

    /// Returns the settings as the operator wrote them.
    package static func written(_ layout: StoreLayout) throws -> Settings {
        guard let bytes = try Files.read(layout.settings, limit: 1 << 20) else {
            if Files.name(of: layout.root) == StoreLayout.hidden(in: "").dropFirst() {
                throw MoultError(
                    .store, what: "\(layout.root) is not a store", why: "it is the directory of moult in a store",
                    now: "Specify the store: \(run: ["--store", Files.directory(of: layout.root)])")
            }
            let initialize = Advice.Command(["moult", "init", layout.root, "--product", "NAME"])
            throw MoultError(
                .store, what: "\(layout.root) is not a store", why: "it has no \(StoreLayout.settingsName)",
                now:
                    "Create one with: \(commandLine: "\(initialize), or with the first release: ", app: "")\(moult: "apply", "--create", "RELEASE")"
            )
        }
        do {
            let settings = try Settings(parsing: bytes, source: layout.settings)
            try StepGrants.check(settings, in: layout)
            return settings
        } catch var error as MoultError {
            let aside = Advice.Command(["mv", layout.settings, try Files.firstFree("\(layout.settings).old")])
            error.now =
                error.now
                ?? "Correct the file. To create a new one with moult init instead, move it away first: \(aside)"
            throw error
        }
    }

    package struct Monitoring: Sendable, Equatable {
        /// Seconds of failed attempts after which the failure is critical.
        package var criticalAfter = 86_400
        /// How many seconds pass at most between two attempts, usually the interval of a timer; nil if none is expected.
        package var every: Int?
    }
}

extension Fields {
    func absolutePath(_ name: String) throws -> String? {
        guard let path = try optionalString(name) else { return nil }
        guard path.isAbsolutePath, path.utf8.count > 1 else {
            throw fail(name, "must be an absolute path, but is \"\(path)\"")
        }
        return path
    }
}

/// The version of this build of moult.
package let moultVersion = Version.moult

extension Settings {
    /// How much the quarantine may hold. Above it only caches are removed, monitoring warns, and an update that would keep more is
    /// refused: everything else stays until the operator removes it.
    package struct QuarantineBudget: Sendable, Equatable {
        package var size = 1 << 34
        package var count = 1000
        /// The age of the oldest set in seconds; nil if any age is fine.
        package var age: Int?

        mutating func read(_ fields: Fields) throws {
            size = try fields.optionalNumber("size", in: 0...Settings.maxBytes) ?? size
            count = try fields.optionalNumber("count", in: 0...1_000_000) ?? count
            age = try fields.optionalNumber("age", in: 1...Settings.maxSeconds)
            try fields.refuseUnknown()
        }

        /// Returns what about these sets is over the budget; nil if nothing is.
        func excess(of sets: [QuarantineShelf.Set], at now: Timestamp = .now) -> String? {
            let bytes = sets.reduce(0) { $0 + $1.size }
            let oldest = sets.map(\.since.seconds).min() ?? now.seconds
            var parts: [String] = []
            if bytes > size { parts.append("it has \(ByteCount(bytes)), and may have \(ByteCount(size))") }
            if sets.count > count { parts.append("it has \(counted(sets.count, "set")), and may have \(count)") }
            if let age, now.seconds - oldest > age {
                let (old, allowed) = (
                    durationText(seconds: Double(now.seconds - oldest)), durationText(seconds: Double(age))
                )
                parts.append("its oldest set has been there for \(old), and may be there for \(allowed)")
            }
            return parts.isEmpty ? nil : parts.joined(separator: "; ")
        }

        static let advice: Advice =
            "List the sets with \(moult: "quarantine"), export what you need (--export FILE SET), and remove sets (--remove SET). Or raise the limits under \"quarantine\" in moult.json."
    }
}

/// The time of day in which updates are installed, in the time zone of this machine.
package struct TimeWindow: Sendable, Equatable, CustomStringConvertible {
    /// Minutes after midnight. A window whose end is not after its start extends over midnight.
    private let start: Int
    private let end: Int
    package let description: String

    /// Reads text such as `02:00-05:00`.
    package init?(_ text: String) {
        let times = text.split(separator: "-", omittingEmptySubsequences: false).map { time -> Int? in
            let parts = time.split(separator: ":", omittingEmptySubsequences: false)
            let isTime = parts.count == 2 && parts.allSatisfy { $0.utf8.count == 2 && $0.allSatisfy(\.isWholeNumber) }
            guard isTime, let hour = Int(parts[0]), let minute = Int(parts[1]), hour < 24, minute < 60 else {
                return nil
            }
            return hour * 60 + minute
        }
        guard times.count == 2, let start = times[0], let end = times[1] else { return nil }
        (self.start, self.end, description) = (start, end, text)
    }

    package func isOpen(at now: Timestamp = .now) -> Bool {
        var time = time_t(now.seconds)
        var parts = tm()
        // Without a local time, updates would never be installed.
        guard localtime_r(&time, &parts) != nil else { return true }
        return contains(minute: Int(parts.tm_hour) * 60 + Int(parts.tm_min))
    }

    package func contains(minute: Int) -> Bool {
        start < end ? (start..<end).contains(minute) : minute >= start || minute < end
    }
}
