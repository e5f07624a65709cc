internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// The options of the verbs that follow a feed.
enum FeedOptions {
    static let feed = Option("feed", value: .text("URL"), "Use this feed, not the one in moult.json")
    static let allowUnsigned = Option("allow-unsigned", "Accept an unsigned feed or release this time")

    static let all = [feed, allowUnsigned]
}

extension Call {
    /// Returns the request for a feed that these options describe.
    func feedRequest() throws -> FeedRequest {
        var request = FeedRequest(
            try self.request(), place: value(FeedOptions.feed).map(Self.feedAddress),
            allowUnsigned: has(FeedOptions.allowUnsigned))
        request.downloadsOnly = has(ApplyVerb.downloadOnly)
        return request
    }

    /// Returns the address of a feed, given as a URL or a path.
    static func feedAddress(_ url: String) -> Address {
        Address(url.contains("://") ? url : Feed.file(at: url))
    }

    /// The given feed options, without secrets.
    var feedWords: [String] {
        (value(FeedOptions.feed).map { FeedOptions.feed.words("\(Address($0))") } ?? [])
            + words(of: [FeedOptions.allowUnsigned])
    }

    /// Returns the release to install, as the user specified it.
    func source(_ name: String) throws -> ReleaseSource {
        let source = try ReleaseSource(name) { try watcher().stopIfAsked() }
        if case .version = source { return source }
        if has(FeedOptions.feed) {
            throw wrongUsage(
                "--feed and a release cannot be used together",
                why: "choose one; the argument RELEASE can be a manifest or a feed")
        }
        if case .manifest = source {
            try refuseFeedOptions(with: "a manifest on this machine", why: "feed options apply only to a feed")
        }
        return source
    }

    /// Throws if feed options are given together with a plan or a manifest, to which they do not apply.
    func refuseFeedOptions(with what: String, why: String) throws {
        guard let word = feedWords.first else { return }
        throw wrongUsage("\(word) and \(what) cannot be used together", why: why)
    }
}
