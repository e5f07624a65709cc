internal import Synchronization

/// Whether this process is at an update between the record of its decision and its end. If the process ends then, the next command
/// finishes or undoes the update.
package enum OpenDecision {
    private static let count = Atomic(0)

    package static var exists: Bool { count.load(ordering: .relaxed) > 0 }

    static func begin() { count.add(1, ordering: .relaxed) }
    static func end() { count.subtract(1, ordering: .relaxed) }
}
