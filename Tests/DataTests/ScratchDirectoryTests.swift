import MoultFiles
import MoultLibc
import Testing

@Suite struct ScratchDirectoryTests {
    private struct Failed: Error {}

    @Test func `an error of the body takes precedence over a failure to remove the directory`() throws {
        let faults = Faults(failAt: 1, code: EIO, keepsFailing: true)
        var left: String?
        #expect(throws: Failed.self) {
            try Files.withScratchDirectory { path in
                left = path
                throw Failed()
            }
        }
        #expect(try Files.facts(left ?? "/") == nil)
        #expect(throws: Failed.self) {
            try Faults.$current.withValue(faults) {
                try Files.withScratchDirectory { path in
                    left = path
                    throw Failed()
                }
            }
        }
        #expect(faults.failedCall != nil)
        try Files.removeTree(left ?? "")
    }

    @Test func `a failure to remove the directory is an error`() throws {
        let faults = Faults(failAt: 1, code: EIO, keepsFailing: true)
        var left = ""
        #expect(throws: (any Error).self) {
            try Faults.$current.withValue(faults) { try Files.withScratchDirectory { left = $0 } }
        }
        try Files.removeTree(left)
    }
}
