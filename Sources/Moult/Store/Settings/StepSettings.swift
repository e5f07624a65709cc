package import MoultBasics
internal import MoultFiles
package import StepKit

/// The operator's settings for an external step: its program and its permissions.
package struct StepSettings: Sendable, Equatable {
    package var name: String
    /// The program; nil for a step that the command or the app contains.
    package var executable: String?
    /// The digest of the trusted program; nil until the operator trusts one.
    package var sha256: String?
    /// Where the step runs, regardless of the manifest; nil to use the manifest.
    package var use: Manifest.StepUse?
    /// The operator's parameters, which override those of the manifest.
    package var with: [JSON.Member] = []
    /// The files and directories that the step may write to when it is applied.
    package var writable: [String] = []
    package var network = Network.none
    /// The time limit in seconds for each message, except for `prepare`, which has `prepareTimeout`.
    package var timeout = 60
    package var prepareTimeout = 3600
    package var isRequired = false
    package var isForbidden = false

    package enum Network: Sendable, Equatable {
        case none
        /// Only Unix sockets, such as `/dev/log`.
        case local
        case all
    }

    package init(name: String, executable: String? = nil) { (self.name, self.executable) = (name, executable) }

    static func read(_ fields: Fields) throws -> [StepSettings] {
        try fields.named("steps").map { name, part in
            if let fault = PlainName.fault(name) { throw fields.fail("steps.\(name)", "\"\(name)\" \(fault)") }
            let step = try StepSettings(name, part)
            try part.refuseUnknown()
            return step
        }
    }

    private init(_ name: String, _ fields: Fields) throws {
        self.init(name: name, executable: try fields.optionalString("executable"))
        if let executable, !executable.isAbsolutePath { throw fields.fail("executable", "must be an absolute path") }
        sha256 = try fields.optionalString("sha256")
        if let sha256, sha256.utf8.count != 64 || !sha256.utf8.allSatisfy(Self.isHex) {
            throw fields.fail("sha256", "must be 64 hexadecimal digits in lower case")
        }
        let before = try fields.word("before", Phase.self)
        let after = try fields.word("after", Phase.self)
        if before != nil, after != nil { throw fields.fail("after", "cannot be combined with \"before\"") }
        let parameters = fields.json("with") ?? .object([])
        guard let members = parameters.members else {
            throw fields.fail("with", "must be an object, but is \(parameters.kind)")
        }
        with = members
        use = (before ?? after).map {
            Manifest.StepUse(step: name, when: before == nil ? .after : .before, phase: $0, with: parameters)
        }
        writable = try fields.optionalStrings("writable") ?? []
        for path in writable
        where !path.isAbsolutePath || path.utf8.count < 2 || path.pathParts().contains(where: { $0 == ".." }) {
            throw fields.fail("writable", "must contain only absolute paths without \"..\", not \"\(path)\"")
        }
        switch fields.json("network") {
        case nil, false: network = .none
        case true: network = .all
        case "local": network = .local
        case let other?: throw fields.fail("network", "must be true, false or \"local\", but is \(other.kind)")
        }
        timeout = try fields.optionalNumber("timeout", in: Settings.timeouts) ?? timeout
        prepareTimeout = try fields.optionalNumber("prepareTimeout", in: Settings.timeouts) ?? prepareTimeout
        isRequired = try fields.optionalBool("required") ?? false
        isForbidden = try fields.optionalBool("forbidden") ?? false
        if isRequired, isForbidden { throw fields.fail("forbidden", "cannot be combined with \"required\"") }
    }

    private static func isHex(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }
}

/// The digests that `moult steps trust` pinned: `.moult/steps.json`. `moult.json` belongs to the operator, and moult does not
/// change it. Each pin therefore records the digest in `moult.json` that it replaced; a different digest there was written
/// later, and is used instead.
package struct TrustedSteps {
    private var pins: [(name: String, sha256: String, overridden: String?)] = []

    package init(_ layout: StoreLayout) {
        do {
            guard let bytes = try Files.read(layout.trustedSteps, limit: 1 << 20) else { return }
            pins = try Fields(record: bytes, source: layout.trustedSteps, .settings).named("trusted").map {
                name, part in (name, try part.string("sha256"), try part.optionalString("overrides"))
            }
        } catch {
            // If the record cannot be read, no pin counts. A step is then refused, with a message that shows how to trust it.
            pins = []
        }
    }

    /// Returns the steps of `moult.json` with the digests in effect.
    func applied(to steps: [StepSettings]) -> [StepSettings] {
        steps.map { step in
            var step = step
            if let pin = pins.first(where: { $0.name == step.name }), pin.overridden == step.sha256 {
                step.sha256 = pin.sha256
            }
            return step
        }
    }

    /// Pins a digest; `written` is the one in `moult.json`.
    mutating func pin(_ name: String, sha256: String, insteadOf written: String?, in layout: StoreLayout) throws {
        pins.removeAll { $0.name == name }
        pins.append((name, sha256, written))
        let members = pins.map { JSON.Member($0.name, .record(["sha256": $0.sha256, "overrides": $0.overridden])) }
        let json: JSON = ["format": 1, "trusted": .object(members)]
        try Files.replace(layout.trustedSteps, with: Array(json.pretty.utf8))
    }
}
