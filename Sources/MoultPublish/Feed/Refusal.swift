internal import MoultBasics

/// Returns the error for a change to a feed that stores would refuse, or that would lose a change of another publisher.
func refusal(_ what: String, _ why: String, _ now: Advice? = nil) -> MoultError {
    MoultError(.publishing, .refused, what: what, why: why, now: now)
}
