import MoultBasics
import Testing

@Suite struct AdviceTests {
    private let advice: Advice = "To do it: \(moult: "apply", "a b"). Or move it: \(run: ["mv", "x", "it's"], "&& ls")."

    @Test func `the words of a command are quoted for a shell`() {
        #expect(advice.description == #"To do it: moult apply 'a b'. Or move it: mv x 'it'\''s' && ls."#)
        #expect(advice.commands.map(\.verb) == ["apply", nil])
    }

    @Test func `text is never a command, whatever it contains`() {
        let path = "a: moult status x"
        let advice: Advice = "Add it to \(path)/moult.json. Or: \(moult: "status", path)"
        #expect(advice.commands == [.init(["moult", "status", path])])
        #expect(advice.description == "Add it to a: moult status x/moult.json. Or: moult status 'a: moult status x'")
    }

    @Test func `commands can be changed without a change of the text`() {
        let path = "a: moult apply x"
        let advice: Advice = "In \(path): \(moult: "apply", "--", "-x")"
        let added = advice.mapping { .command($0.adding(["--store", "s t"])) }
        #expect(added.description == "In a: moult apply x: moult apply --store 's t' -- -x")
    }

    @Test func `each command of a line runs only if the one before succeeds`() {
        let line = Advice.Command([["mv", "a b", "c"], ["mv", "d", "e f"]])
        #expect("Run: \(line)" as Advice == "Run: \(run: ["mv", "a b", "c"], "&& mv d 'e f'")")
        #expect(line.line == "mv 'a b' c && mv d 'e f'")
    }

    @Test func `a choice has one text for the command line and one for apps`() {
        let advice: Advice = "Wait\(commandLine: ", or: \(moult: "recover")", app: " for it")."
        #expect(advice.description == "Wait, or: moult recover.")
        #expect(advice.commands.count == 1)
        #expect(advice.mapping(isForApp: true) { .command($0) }.description == "Wait for it.")
    }

    @Test func `an error in an advice keeps its commands`() {
        let error = MoultError(.system, what: "a", why: "b", now: "Run: \(moult: "recover")")
        let advice: Advice = "warning: \(error)"
        #expect(advice.description == "warning: \(error)")
        #expect(advice.commands == [.init(["moult", "recover"])])
    }

    @Test func `another process gets the same advice`() throws {
        let bytes = Array(advice.json.line.utf8)
        #expect(Advice(json: try JSON(parsing: bytes, source: "test")) == advice)
        #expect(Advice(json: nil) == nil)
        #expect(Advice(json: .string("Run: moult recover")) == nil)
    }

    /// Part of a command, cut inside its quotes, could be a different command.
    @Test func `long commands stay complete, and long text is shortened`() {
        let word = "s \(String(repeating: "a", count: 148))'\(String(repeating: "b", count: 60)) ;touch x;y"
        let long = String(repeating: "z", count: 500)
        let error = MoultError(.system, what: "no \(long)", now: "Not \(long). Run: \(run: ["mv", word, "b"]).")
        #expect(error.what.count < 300)
        let now = error.now?.description ?? ""
        #expect(now.hasSuffix(". Run: mv \(shellLine([word])) b.") && !now.contains(long), "\(now)")
    }
}
