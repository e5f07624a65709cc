import Testing

@testable import MoultFiles

struct LevelTests {
    @Test(arguments: [
        (7, true, "Landlock ABI 7, seccomp"), (1, false, "Landlock ABI 1 only: this kernel has no seccomp"),
        (0, true, "seccomp only: this kernel has no Landlock"),
        (0, false, "limits only: this kernel has neither Landlock nor seccomp"),
    ])
    func `the protection level is described`(landlock: Int, hasSeccomp: Bool, words: String) {
        #expect(Guard.Level(landlock: landlock, hasSeccomp: hasSeccomp).description == words)
    }
}
