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
        ("To do it: moult apply 'a'\u{301}. b, c'. Or not.", "To do it: <apply 'a'\u{301}>. b, c'. Or not."),
        ("To do it: moult apply $'a\\'. b, c'. Or not.", "To do it: <apply $'a\\'. b, c'>. Or not."),
        ("To do it: moult apply a\\'. b, c. Or not.", "To do it: <apply a\\'>. b, c. Or not."),
    ])
    func `a command ends at punctuation outside quotes`(_ advice: String, _ expected: String) {
        #expect(AdvisedCommands.replaced(in: advice) { "<\($0)>" } == expected)
    }

    @Test(arguments: [
        ("apply --create RELEASE", ["apply", "--create", "RELEASE"]),
        ("apply 'a RELEASE b' -v", ["apply", "'a RELEASE b'", "-v"]),
        ("apply 'it'\\''s RELEASE' $'a\\' b'", ["apply", "'it'\\''s RELEASE'", "$'a\\' b'"]),
        ("apply 'x'\u{301} RELEASE", ["apply", "'x'\u{301}", "RELEASE"]),
    ])
    func `a command is split at spaces outside quotes`(_ command: String, _ words: [String]) {
        #expect(AdvisedCommands.words(of: command).map(String.init) == words)
    }

    @Test(arguments: ["a.", ".", "a,", "a.b"]) func `the end of a word is not the end of a command`(_ word: String) {
        let command = shellLine(["apply", word])
        let advice = "To do it: moult \(command). Or not."
        #expect(AdvisedCommands.replaced(in: advice) { "<\($0)>" } == "To do it: <\(command)>. Or not.")
    }

    /// Part of a command, cut inside its quotes, could be a different command.
    @Test func `long commands in advice stay complete`() {
        let word = shellLine([
            "s \(String(repeating: "a", count: 148))'\(String(repeating: "b", count: 60)) ;touch x;y'"
        ])
        let long = String(repeating: "z", count: 500)
        let error = MoultError(.system, what: "no \(long)", now: "Not \(long). Run: mv \(word) b. Or: chgrp x \(word).")
        #expect(error.what.count < 300)
        #expect(error.now?.contains(": mv \(word) b. Or: chgrp x \(word).") == true, "\(error.now ?? "")")
        #expect(error.now?.contains(long) == false)
    }
}
