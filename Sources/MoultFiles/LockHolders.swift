/// Who holds a `flock`, from the kernel's table of locks.
package enum LockHolders {
    package static func of(_ path: String) throws -> [ProcessFacts] {
        guard let facts = try Files.factsThroughLinks(path) else { return [] }
        var pids: [Int32] = []
        for lock in try KernelLocks.read().held(on: facts, at: path)
        where lock.kind == .flock && !pids.contains(lock.pid) {
            pids.append(lock.pid)
        }
        return pids.map { ProcessFacts(pid: $0) }
    }
}
