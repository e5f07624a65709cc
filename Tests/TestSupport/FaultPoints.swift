import MoultLibc

/// The number of system calls that are made to fail, one after the other: MOULT_FAULTS=all uses all of them (`make
/// faults`); otherwise it is a sample, the same in every run.
package enum FaultPoints {
    package static let step = getenv("MOULT_FAULTS").map { String(cString: $0) } == "all" ? 1 : 11
}
