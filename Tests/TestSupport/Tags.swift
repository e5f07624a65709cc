package import Testing

extension Tag {
    /// Tries many cases of one rule, kills at every call, or builds other packages: `make test-all` runs these tests, and `make
    /// test` does not.
    @Tag package static var thorough: Self
    /// Tries a sample of its cases in `make test`, and all of them in `make test-all`: its arguments are `CASES.sampled(SIZE)`.
    @Tag package static var sampled: Self
    /// Waits for locks, or kills a command again and again: `scripts/test` runs each of these tests in a process of its own, and
    /// starts it first.
    @Tag package static var slow: Self
}
