import MoultBasics
import Testing

@Suite struct MoultErrorTests {
    @Test func `the description of an error has its problem, reason and advice on one line`() {
        let error = MoultError(.system, what: "cannot open a.db", why: "no such file", now: "Check the path.")
        #expect("\(error)" == "cannot open a.db: no such file. Check the path.")
    }
}

@Suite struct AdvisedCommandsTests {
    @Test(arguments: [
        ("Do it: moult apply x. Or: moult rollback", "Do it: <apply x>. Or: <rollback>"),
        (
            "To do it: moult apply 'a. b, c/r.json' --force, or wait.",
            "To do it: <apply 'a. b, c/r.json' --force>, or wait."
        ),
        ("To do it: moult apply 'it'\\''s. x' -v. Then go on.", "To do it: <apply 'it'\\''s. x' -v>. Then go on."),
        ("The app's own: moult verify 'b: moult c'.", "The app's own: <verify 'b: moult c'>."),
        ("Nothing is advised.", "Nothing is advised."),
    ])
    func `a command ends at punctuation outside quotes`(_ advice: String, _ expected: String) {
        #expect(AdvisedCommands.replaced(in: advice) { "<\($0)>" } == expected)
    }
}
