package import MoultBasics

extension SystemFeatures {
    /// Returns the error for an operation that needs a Linux feature which the portable build does not use.
    package static func unavailable(_ what: String, because why: String) -> MoultError {
        MoultError(
            .portableBuild, .refused, what: what, why: "this build of moult \(why)",
            now: "Use a build for Linux.")
    }

    static func requireExchange(_ one: String, _ other: String) throws {
        if exchangesNames { return }
        throw unavailable("cannot exchange \(one) and \(other)", because: "cannot exchange two files in one step")
    }
}
