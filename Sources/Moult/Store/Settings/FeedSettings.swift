package import MoultBasics
package import MoultTransport
internal import StepKit

/// The settings for following a feed: `feed` in `moult.json`.
package struct FeedSettings: Sendable, Equatable {
    package var url: Address
    /// Other locations of the same files: groups that are tried in order. The locations in a group have equal priority.
    package var mirrors: [[Address]] = []
    package var channel = Feed.Release.defaultChannel
    /// Seconds after which moult gives up on a server that does not respond or is slower than `minimumRate`.
    package var patience = 30
    /// The slowest acceptable rate of a server, in bytes per second.
    package var minimumRate = 1024
    /// Seconds that one file from one server may take, including all attempts.
    package var fileDeadline = 1800
    /// Seconds that one command may spend on the network.
    package var deadline = 3600
    /// The maximum rate in bytes per second; 0 means no limit.
    package var bandwidth = 0
    /// The maximum size of the downloaded bundles that are kept, in bytes.
    package var cache = 256 << 20

    /// Files that prove to the servers who this client is.
    package var client = ClientFiles()

    package init(url: Address) { self.url = url }

    /// All locations in groups, in the order in which they are tried. The URL, or the group that contains it, is tried first.
    package var groups: [[Address]] {
        guard let own = mirrors.firstIndex(where: { $0.contains(url) }) else { return [[url]] + mirrors }
        return [mirrors[own]] + mirrors[..<own] + mirrors[(own + 1)...]
    }

    package var addresses: [Address] { groups.flatMap(\.self) }

    private static let maxBytes = Settings.maxBytes

    init(_ fields: Fields) throws {
        url = try Self.place(fields.string("url"), fields, "url")
        mirrors = try Self.groups(fields)
        channel = try fields.optionalString("channel") ?? channel
        if let fault = PlainName.databaseFault(channel) { throw fields.fail("channel", "\"\(channel)\" \(fault)") }
        patience = try fields.optionalNumber("patience", in: 1...86_400) ?? patience
        minimumRate = try fields.optionalNumber("minimumRate", in: 1...Self.maxBytes) ?? minimumRate
        fileDeadline = try fields.optionalNumber("fileDeadline", in: Settings.timeouts) ?? fileDeadline
        deadline = try fields.optionalNumber("deadline", in: Settings.timeouts) ?? deadline
        bandwidth = try fields.optionalNumber("bandwidth", in: 0...Self.maxBytes) ?? bandwidth
        cache = try fields.optionalNumber("cache", in: 0...Self.maxBytes) ?? cache
        client.certificate = try fields.absolutePath("certificate")
        client.key = try fields.absolutePath("key")
        client.headers = try fields.absolutePath("headers")
        try fields.refuseUnknown()
    }

    private static func groups(_ fields: Fields) throws -> [[Address]] {
        guard let json = fields.json("mirrors") else { return [] }
        guard let items = json.array else { throw fields.fail("mirrors", "must be a list, but is \(json.kind)") }
        func place(_ json: JSON, _ name: String) throws -> Address {
            guard let text = json.string else { throw fields.fail(name, "must be a string, but is \(json.kind)") }
            return try Self.place(text, fields, name)
        }
        return try items.enumerated().map { index, item in
            guard let group = item.array else { return [try place(item, "mirrors[\(index)]")] }
            return try group.enumerated().map { try place($1, "mirrors[\(index)][\($0)]") }
        }
    }

    private static func place(_ text: String, _ fields: Fields, _ name: String) throws -> Address {
        if text.isEmpty { throw fields.fail(name, "is empty") }
        return Address(text)
    }

    /// The settings as JSON for reports, without secrets.
    package var json: JSON { json { $0.description } }
    /// The settings as JSON for `moult.json`, with secrets.
    var written: JSON { json(\.withSecrets) }

    private func json(_ text: (Address) -> String) -> JSON {
        let usual = FeedSettings(url: url)
        func group(_ places: [Address]) -> JSON {
            places.count == 1 ? .string(text(places[0])) : .array(places.map { .string(text($0)) })
        }
        return .record([
            "url": text(url), "mirrors": mirrors.map(group).unlessEmpty,
            "channel": channel == usual.channel ? nil : channel,
            "patience": patience == usual.patience ? nil : patience,
            "minimumRate": minimumRate == usual.minimumRate ? nil : minimumRate,
            "fileDeadline": fileDeadline == usual.fileDeadline ? nil : fileDeadline,
            "deadline": deadline == usual.deadline ? nil : deadline,
            "bandwidth": bandwidth == usual.bandwidth ? nil : bandwidth, "cache": cache == usual.cache ? nil : cache,
            "certificate": client.certificate, "key": client.key, "headers": client.headers,
        ])
    }
}
