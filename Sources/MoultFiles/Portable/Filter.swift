/// The seccomp program for a profile: none in this build, which confines no process.
package enum Filter {
    package static func program(_ profile: Profile, landlock: Int, process: Int32) throws -> [UInt64] { [] }
}

extension SystemCallRule {
    /// Returns the number on this processor, which only a filter needs.
    package static func number(of name: String) -> Int? { nil }
}
