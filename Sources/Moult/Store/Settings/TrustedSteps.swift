internal import MoultBasics
internal import MoultFiles

/// The digests that `moult steps trust` pinned: `.moult/steps.json`. `moult.json` belongs to the operator, and moult does not
/// change it. Each pin therefore records the digest in `moult.json` that it replaced; a different digest there was written
/// later, and is used instead.
package struct TrustedSteps {
    private struct Pin {
        let name: String
        let sha256: String
        let overridden: String?

        var member: JSON.Member {
            .init(name, .record(["sha256": sha256, "overrides": overridden]))
        }
    }

    private var pins: [Pin] = []

    package init(_ layout: StoreLayout) {
        do {
            guard let bytes = try Files.read(layout.trustedSteps, limit: 1 << 20) else { return }
            let fields = try Fields(JSON(parsing: bytes, source: layout.trustedSteps)) { place, why, _ in
                MoultError(.settings, what: "\(layout.trustedSteps): \(place) \(why)")
            }
            pins = try fields.named("trusted").map { name, part in
                Pin(
                    name: name, sha256: try part.string("sha256"),
                    overridden: try part.optionalString("overrides"))
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
        pins.append(Pin(name: name, sha256: sha256, overridden: written))
        let json: JSON = ["format": 1, "trusted": .object(pins.map(\.member))]
        try Files.replace(layout.trustedSteps, with: Array(json.pretty.utf8))
    }
}
