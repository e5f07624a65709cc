package import MoultBasics
package import StepKit

extension Generation {
    /// A generation and its release, by their names.
    package struct Reference: Sendable, Equatable {
        package var version: Version
        package var generation: String
        package init(version: Version, generation: String) { (self.version, self.generation) = (version, generation) }

        package var json: JSON { ["version": .string(version.description), "generation": .string(generation)] }
    }
}
