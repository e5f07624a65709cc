import MoultLibc
import TestSupport
import Testing

@testable import MoultFiles

@Suite struct WriteLeaseTests {
    /// A child that a program forks has copies of the program's descriptors, as `dup` makes them.
    @Test func `a lease ends even if a forked child has a copy of its descriptor`() throws {
        let scratch = try Scratch()
        let path = try scratch.write("file", "content")
        var lease = try WriteLease.take(path)
        try #require(lease != nil)
        let number = try #require(
            try Files.list("/proc/self/fd").first { try Files.target(ofLink: "/proc/self/fd/\($0)") == path })
        let copy = dup(Int32(number) ?? -1)
        defer { close(copy) }
        lease = nil
        let opened = open(path, O_WRONLY | O_NONBLOCK)
        #expect(opened >= 0)
        close(opened)
    }
}
