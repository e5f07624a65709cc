import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

@Suite struct StoreLockTests {
    /// `connect()` tries to take the lock, and finishes an interrupted update if it gets it.
    @Test func `an attempt to take the lock does not unpin the update of another thread`() throws {
        let scratch = try Scratch()
        let layout = try StoreLayout(root: scratch.path("store"))
        try Files.ensureDirectory(layout.root)
        try Files.ensureDirectory(layout.hidden)
        try Files.writeNew([], to: "\(layout.hidden)/mark")
        let lock = try StoreLock.take(layout)
        #expect(try StoreLock.takeIfFree(layout) == nil)
        // Another user puts another directory in its place.
        try Shell.must(["mv", layout.hidden, scratch.path("old")])
        try Shell.must(["mkdir", layout.hidden])
        #expect(try Files.facts("\(layout.hidden)/mark") != nil)
        withExtendedLifetime(lock) {}
    }

    @Test func `a released lock can be taken again`() throws {
        let scratch = try Scratch()
        let layout = try StoreLayout(root: scratch.path("store"))
        try Files.ensureDirectory(layout.root)
        try Files.ensureDirectory(layout.hidden)
        for _ in 0..<3 { #expect(try StoreLock.takeIfFree(layout) != nil) }
    }
}
