import MoultLibc

/// The distance between the system calls that are made to fail. MOULT_FAULTS=all uses all calls (`make faults`);
/// otherwise this is a sample, which is the same in every run.
package enum FaultPoints {
    package static let step = getenv("MOULT_FAULTS").map { String(cString: $0) } == "all" ? 1 : 11
}
