package import MoultBasics
internal import StepKit

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
