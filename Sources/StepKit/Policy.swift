public import MoultBasics

/// The choices of the operator, or of the app.
public struct Policy: Sendable, Equatable {
    /// The accepted releases.
    public enum Follow: String, Sendable, CaseIterable {
        /// Only upward.
        case newer
        /// Whatever differs from what is installed.
        case match

        /// Whether an older release may be installed.
        public func takesOlder(_ allowDowngrade: Bool) -> Bool { self == .match || allowDowngrade }
    }
    /// The accepted releases.
    public var follow: Follow
    /// Whether an older release is accepted, too.
    public var allowDowngrade: Bool
    /// Whether an older release may be installed, because of `follow` or of `allowDowngrade`.
    public var takesOlder: Bool { follow.takesOlder(allowDowngrade) }
    /// The version of the app, if it is known.
    public var appVersion: Version?
    /// The version of moult.
    public var moultVersion: Version
    /// The databases whose files the release may take over from the user, or from another kind.
    public var takeOver: Set<String> = []
    /// Whether rows that the installed release preserves may stay behind in quarantine.
    public var acceptUnpreserved = false
    /// The directory of caches, where it is not the store.
    public var cacheRoot: String?
    /// How long the check of a database may take.
    public var checkTime = CheckTime()
    /// How deeply this machine checks each file of a release, whatever its publisher has verified; nil if that is enough.
    public var verify: Database.Depth?
    /// Whether each update keeps the file that it finds as it is, as a generation of its own, and not only the first one.
    public var alwaysAdopts = false
    /// The time by which something has expired.
    public var now: Timestamp

    /// Decisions as an operator makes them.
    public init(
        follow: Follow, allowDowngrade: Bool = false, appVersion: Version? = nil, moultVersion: Version,
        cacheRoot: String? = nil, now: Timestamp = .now
    ) {
        self.cacheRoot = cacheRoot
        self.follow = follow
        self.allowDowngrade = allowDowngrade
        self.appVersion = appVersion
        self.moultVersion = moultVersion
        self.now = now
    }
}

/// How much of the processor the check of a database may take, because a hostile one can keep SQLite busy for days.
public struct CheckTime: Sendable, Equatable {
    /// The possible settings of an operator: up to a week.
    public static let range = 1...604_800
    /// Seconds, if the operator has set them; otherwise it depends on the size.
    public var fixed: Int?
    /// Whether a release is tried by its publisher, who gets a quarter, so that slower machines can install it.
    public var isTrial: Bool

    /// As an operator or a publisher has it.
    public init(fixed: Int? = nil, isTrial: Bool = false) { (self.fixed, self.isTrial) = (fixed, isTrial) }

    /// Seconds of the processor: usually 60 for each gigabyte, and 30 at least.
    public func seconds(for size: Int) -> Int {
        let whole = fixed ?? max(30, size / 1_000_000_000 * 60 + size % 1_000_000_000 * 60 / 1_000_000_000)
        return isTrial ? max(1, whole / 4) : whole
    }
}
