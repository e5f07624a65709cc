package import MoultBasics
internal import StepKit

/// Which feed a store follows, and how: `feed` in `moult.json`.
package struct FeedSettings: Sendable, Equatable {
    /// The feed itself: a path or a URL.
    package var url: String
    /// Where the same files lie, too; tried in order.
    package var mirrors: [String] = []
    package var channel = Feed.Release.usualChannel
    /// Seconds without a byte after which a server is given up.
    package var patience = 30
    /// Bytes in a second; 0 has no bound.
    package var bandwidth = 0
    /// How many bytes of fetched bundles are kept.
    package var cache = 256 << 20

    package init(url: String) { self.url = url }

    private static let most = 1 << 48

    init(_ fields: Fields) throws {
        url = try Self.place(fields.string("url"), fields, "url")
        mirrors = try (fields.optionalStrings("mirrors") ?? []).enumerated().map {
            try Self.place($1, fields, "mirrors[\($0)]")
        }
        channel = try fields.optionalString("channel") ?? channel
        if let fault = PlainName.databaseFault(channel) { throw fields.fail("channel", "\"\(channel)\" \(fault)") }
        patience = try Self.number(fields, "patience", 1...86_400) ?? patience
        bandwidth = try Self.number(fields, "bandwidth", 0...Self.most) ?? bandwidth
        cache = try Self.number(fields, "cache", 0...Self.most) ?? cache
        try fields.refuseUnknown()
    }

    private static func place(_ text: String, _ fields: Fields, _ name: String) throws -> String {
        if text.isEmpty { throw fields.fail(name, "is empty") }
        return text
    }

    private static func number(_ fields: Fields, _ name: String, _ range: ClosedRange<Int>) throws -> Int? {
        guard let number = try fields.optionalInteger(name) else { return nil }
        guard range.contains(number) else {
            throw fields.fail(name, "must be from \(range.lowerBound) to \(range.upperBound), is \(number)")
        }
        return number
    }

    package var json: JSON {
        let usual = FeedSettings(url: url)
        return .compact([
            "url": .string(url), "mirrors": mirrors.isEmpty ? nil : .array(mirrors.map { .string($0) }),
            "channel": channel == usual.channel ? nil : .string(channel),
            "patience": patience == usual.patience ? nil : .size(patience),
            "bandwidth": bandwidth == usual.bandwidth ? nil : .size(bandwidth),
            "cache": cache == usual.cache ? nil : .size(cache),
        ])
    }
}
