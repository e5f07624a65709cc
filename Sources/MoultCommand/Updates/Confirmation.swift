internal import Moult
internal import MoultBasics

extension Call {
    /// Returns whether `--confirm` was given; throws if moult cannot ask the question, which needs a terminal and text output.
    func asksForConfirmation() throws -> Bool {
        guard has(UpdateOptions.confirm) else { return false }
        guard output.isDialog else {
            throw wrongUsage(
                "--confirm needs a terminal and text output", why: "moult asks the question on the terminal")
        }
        return true
    }
}

extension Plan {
    /// Asks the user at the terminal whether to apply the plan, which is already on the screen; throws unless the answer is
    /// yes.
    func confirm() throws { try StandardInput.confirm("Do this now?", orElse: "the \(title) was cancelled") }
}
