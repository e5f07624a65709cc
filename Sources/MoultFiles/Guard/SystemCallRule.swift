/// A system call that a sandboxed process may make, possibly only with certain arguments.
///
/// Several rules for one call are alternatives.
package struct SystemCallRule: Sendable, Hashable {
    /// A condition on an argument: its bits in `mask` must have this value.
    package struct Argument: Sendable, Hashable {
        package let index: Int
        package let mask: UInt64
        package let value: UInt64

        /// For arguments that the kernel treats as 32 bits: it ignores the upper half, and so does the rule.
        package init(_ index: Int, is value: Int, in mask: Int = 0xffff_ffff) {
            self.index = index
            self.mask = UInt64(mask)
            self.value = UInt64(UInt32(truncatingIfNeeded: value)) & self.mask
        }

        /// Returns the condition that an argument, a pointer or a 64-bit number, is 0.
        package static func isZero(_ index: Int) -> Self { Self(wide: index) }

        private init(wide index: Int) { (self.index, mask, value) = (index, .max, 0) }
    }

    package let name: String
    package let arguments: [Argument]

    init(_ name: String, _ arguments: Argument...) { (self.name, self.arguments) = (name, arguments) }
}
