import MoultLibc

/// How many of the system calls are made to fail, one after the other: MOULT_FAULTS=all takes each of them (`make faults`),
/// else it is a sample, the same in every run.
package enum FaultPoints {
    package static let step = getenv("MOULT_FAULTS").map { String(cString: $0) } == "all" ? 1 : 11
}
