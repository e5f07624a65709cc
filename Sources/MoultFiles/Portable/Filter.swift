/// The seccomp program for a profile: none in this build, which confines no process.
package enum Filter {
    package static func program(_ profile: Profile, landlock: Int, process: Int32) throws -> [UInt64] { [] }
}

extension SystemCallRule {
    /// Returns nil, because only a filter needs the number.
    package static func number(of name: String) -> Int? { nil }
}
