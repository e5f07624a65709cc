internal import MoultBasics

extension Feed {
    fileprivate static let digestForm = "must be 64 hexadecimal digits in lower case"

    /// Reads a feed whose signature was verified; `source` names it in errors.
    package init(parsing bytes: [UInt8], source: String) throws {
        let fields = try Fields(JSON(parsing: bytes, source: source)) { place, why, now in
            MoultError(
                .feed, .refused, what: "\(source): \(place) \(why)", now: now ?? Self.reportFault)
        }
        let format = try fields.integer("feed")
        guard format == Self.format else {
            throw fields.fail(
                "feed", "is format \(format), and this version of moult reads format \(Self.format)",
                now: format > Self.format ? "Install a newer moult." : nil)
        }
        let product = try fields.string("product")
        if let fault = PlainName.productFault(product) { throw fields.fail("product", "\"\(product)\" \(fault)") }
        let serial = try fields.count("serial")
        guard serial >= 1 else { throw fields.fail("serial", "must be at least 1") }
        let keyList = try fields.optionalCount("keys")
        guard let expires = try fields.optionalTime("expires") else { throw fields.fail("expires", "is missing") }
        // Unknown fields of a newer feed are ignored, unless the feed lists them as critical.
        let critical = Set(try fields.critical())
        let created = try fields.optionalTime("created")
        let previous = try fields.optionalStrings("previous") ?? []
        if let index = previous.firstIndex(where: { !isDigest($0) }) {
            throw fields.fail("previous[\(index)]", Self.digestForm)
        }
        guard fields.json("releases") != nil else { throw fields.fail("releases", "is missing") }
        self.init(
            product: product, serial: serial, created: created, expires: expires,
            releases: try fields.objects("releases") { try Release($0, critical: critical) }, keyList: keyList)
        self.previous = previous
        try Self.refuse(critical, fields)
        try requireDistinct(fields)
    }

    fileprivate static func refuse(_ critical: Set<String>, _ fields: Fields) throws {
        guard !critical.isEmpty, let name = fields.unknown.first(where: critical.contains) else { return }
        throw fields.fail(
            name, "is not known to this version of moult, and the feed says that it is critical",
            now: "Install a newer moult.")
    }

    /// Throws if two releases have the same version. Releases of several lines may have the same sequence.
    private func requireDistinct(_ fields: Fields) throws {
        var versions: Set<Version> = []
        for index in releases.indices where !versions.insert(releases[index].version).inserted {
            throw fields.fail("releases[\(index)].version", "is listed twice: \(releases[index].version)")
        }
    }
}

extension Feed.Release {
    fileprivate init(_ fields: Fields, critical: Set<String>) throws {
        let text = try fields.string("version")
        guard let version = Version(text), text.utf8.count <= 128 else {
            throw fields.fail("version", "\"\(text)\" is not a SemVer version")
        }
        let rollout = try fields.optionalCount("rollout") ?? 100
        guard rollout <= 100 else {
            throw fields.fail("rollout", "must be a percentage of at most 100, but is \(rollout)")
        }
        let channel = try fields.optionalString("channel") ?? Self.defaultChannel
        if let fault = PlainName.databaseFault(channel) { throw fields.fail("channel", "\"\(channel)\" \(fault)") }
        let part = try fields.object("manifest")
        let manifest = try Feed.File(part)
        guard manifest.size <= Manifest.largest else {
            throw part.fail("size", "must be at most \(Manifest.largest), but is \(manifest.size)")
        }
        self.init(
            version: version, sequence: try fields.count("sequence"), channel: channel, manifest: manifest,
            requires: try fields.requires(), rollout: rollout,
            withdrawn: try fields.optionalString("withdrawn"))
        onWithdrawn = try fields.word("onWithdrawn", Feed.OnWithdrawn.self)
        groups = try fields.optionalStrings("groups") ?? []
        recommendedBy = try fields.optionalStrings("recommendedBy") ?? []
        patches = try fields.objects("patches").map { part in
            guard let from = Version(try part.string("from")) else { throw part.fail("from", "is not a version") }
            let file = try part.string("file")
            if let fault = PlainName.fault(file) { throw part.fail("file", "\"\(file)\" \(fault)") }
            return Patch(from: from, file: file)
        }
        try Feed.refuse(critical, fields)
    }
}

extension Feed.File {
    fileprivate init(_ fields: Fields) throws {
        let name = try fields.string("file")
        if let fault = PlainName.fault(name) { throw fields.fail("file", "\"\(name)\" \(fault)") }
        let sha256 = try fields.string("sha256")
        guard isDigest(sha256) else { throw fields.fail("sha256", Feed.digestForm) }
        self.init(name: name, size: try fields.count("size"), sha256: sha256)
    }
}

private func isDigest(_ text: String) -> Bool {
    text.utf8.count == 64 && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
}
