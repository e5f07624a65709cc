public import MoultBasics

/// The choices of the operator, or of the app.
public struct Policy: Sendable, Equatable {
    /// The accepted releases.
    public enum Follow: String, Sendable, CaseIterable {
        /// Only newer releases.
        case newer
        /// Any release that differs from the installed one.
        case match

        /// Returns whether an older release may be installed.
        public func takesOlder(_ allowDowngrade: Bool) -> Bool { self == .match || allowDowngrade }
    }
    /// The accepted releases.
    public var follow: Follow
    /// Whether an older release is accepted as well.
    public var allowDowngrade: Bool
    /// Whether an older release may be installed, because of `follow` or of `allowDowngrade`.
    public var takesOlder: Bool { follow.takesOlder(allowDowngrade) }
    /// Why the store leaves the installed release, whatever `follow` says, such as `was withdrawn by its publisher`; nil if it does not.
    public var reasonToLeave: String?
    /// The version of the app, if it is known.
    public var appVersion: Version?
    /// The version of moult.
    public var moultVersion: Version
    /// The databases for which the release may take over a file of the user, or of a database of a different kind.
    public var takeOver: Set<String> = []
    /// Whether the update may keep rows only in quarantine if the installed release preserves them and the new one does not.
    public var acceptUnpreserved = false
    /// The directory of caches, if they are not in the store.
    public var cacheRoot: String?
    /// The time limit for checking a database.
    public var checkTime = CheckTime()
    /// The check that this machine runs on each file of a release, even if the publisher has verified it; nil for none.
    public var verify: Database.Depth?
    /// The current time, for checking whether a release has expired.
    public var now: Timestamp

    /// Creates the choices of an operator.
    public init(
        follow: Follow, allowDowngrade: Bool = false, appVersion: Version? = nil, moultVersion: Version,
        cacheRoot: String? = nil, now: Timestamp = .now
    ) {
        (self.follow, self.allowDowngrade, self.cacheRoot) = (follow, allowDowngrade, cacheRoot)
        (self.appVersion, self.moultVersion, self.now) = (appVersion, moultVersion, now)
    }
}

/// The limit on the CPU time for checking a database, because a malicious database can keep SQLite busy for days.
public struct CheckTime: Sendable, Equatable {
    /// The values that an operator can set, in seconds: up to a week.
    public static let range = 1...604_800
    /// The limit in seconds, if the operator has set one; otherwise it depends on the size of the database.
    public var fixed: Int?
    /// Whether this is a trial by the publisher, who gets only a quarter of the time, so that slower machines can still install
    /// the release.
    public var isTrial: Bool

    /// Creates a limit for an operator or a publisher.
    public init(fixed: Int? = nil, isTrial: Bool = false) { (self.fixed, self.isTrial) = (fixed, isTrial) }

    /// Returns the limit for a database of this size, in CPU seconds: by default 60 per gigabyte, and at least 30.
    public func seconds(for size: Int) -> Int {
        let whole = fixed ?? max(30, size / 1_000_000_000 * 60 + size % 1_000_000_000 * 60 / 1_000_000_000)
        return isTrial ? max(1, whole / 4) : whole
    }
}
