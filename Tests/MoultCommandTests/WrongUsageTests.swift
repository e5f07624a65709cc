import MoultBasics
import Testing

@testable import MoultCommand

/// Invalid command lines, and the exact error messages.
@Suite struct WrongUsageTests {
    struct Case: CustomTestStringConvertible {
        var line: String
        var message: String
        var now: String
        var testDescription: String { "moult \(line)" }

        init(_ line: String, _ message: String, now: String) {
            (self.line, self.message, self.now) = (line, message, now)
        }
    }

    @Test(arguments: [
        Case("-q", "no command given", now: "moult help"),
        Case("stauts", #"unknown command "stauts": did you mean "status"?"#, now: "moult help"),
        Case("install", #"unknown command "install": use `moult apply`"#, now: "moult help"),
        Case("frobnicate", #"unknown command "frobnicate""#, now: "moult help"),
        Case("--out f", #"moult has no option "--out""#, now: "moult help"),
        Case("-x", #"moult has no option "-x""#, now: "moult help"),
        Case("--versoin", #"moult has no option "--versoin": did you mean "--version"?"#, now: "moult help"),
        Case("status --jsn", #"status has no option "--jsn": did you mean "--json"?"#, now: "moult status --help"),
        Case("status --jsn=1", #"status has no option "--jsn": did you mean "--json"?"#, now: "moult status --help"),
        Case("status --out f", #"status has no option "--out""#, now: "moult status --help"),
        Case("status -x", #"status has no option "-x""#, now: "moult status --help"),
        Case("status --version", #"status has no option "--version""#, now: "moult status --help"),
        Case("--version status", #"status has no option "--version""#, now: "moult status --help"),
        Case("--store s shells bash", #"shells has no option "--store""#, now: "moult shells --help"),
        Case("shells bash --store s", #"shells has no option "--store""#, now: "moult shells --help"),
        Case("status -qx", #"status has no option "-x": "-qx" contains it"#, now: "moult status --help"),
        Case("status -store s", #"status has no option "-store": did you mean "--store"?"#, now: "moult status --help"),
        Case("apply -qo", "--out needs a value: write --out FILE", now: "moult apply --help"),
        Case("apply m --out", "--out needs a value: write --out FILE", now: "moult apply --help"),
        Case("apply m -o", "--out needs a value: write --out FILE", now: "moult apply --help"),
        Case("apply m --out=", "--out needs a value: write --out FILE", now: "moult apply --help"),
        Case("apply m --out --json", "--out needs a value: write --out FILE", now: "moult apply --help"),
        Case("--store", "--store needs a value: write --store DIR", now: "moult help"),
        Case(
            "apply m --force=yes", #"--force takes no value: write only the option, without "=""#,
            now: "moult apply --help"),
        Case("apply m -o a --out b", "--out can be given only once", now: "moult apply --help"),
        Case("--store a status --store b", "--store can be given only once", now: "moult status --help"),
        Case("apply m --keep x", #"--keep must be a whole number from 1 to 100, not "x""#, now: "moult apply --help"),
        Case("apply m --keep 0", #"--keep must be a whole number from 1 to 100, not "0""#, now: "moult apply --help"),
        Case(
            "apply m --kind usr", #"--kind must be one of user, cache, not "usr": did you mean "user"?"#,
            now: "moult apply --help"),
        Case("apply", "apply needs the argument MANIFEST", now: "moult apply --help"),
        Case("apply --out f", "apply needs the argument MANIFEST", now: "moult apply --help"),
        Case("apply a b c", #"apply takes only MANIFEST NAME: unexpected argument "c""#, now: "moult apply --help"),
        Case("status x", #"status takes no arguments: unexpected argument "x""#, now: "moult status --help"),
        Case(
            "status -- --json", #"status takes no arguments: unexpected argument "--json""#, now: "moult status --help"),
        Case("shells", "shells needs the argument SHELL", now: "moult shells --help"),
        Case("shells tcsh", #"SHELL must be one of bash, zsh, not "tcsh""#, now: "moult shells --help"),
        Case(
            "shells bsh", #"SHELL must be one of bash, zsh, not "bsh": did you mean "bash"?"#,
            now: "moult shells --help"),
    ])
    func `invalid usage is refused with advice`(_ wrong: Case) throws {
        let words = wrong.line.split(separator: " ").map(String.init)
        let error = try #require(throws: MoultError.self) {
            try LineParser.parse(words, commands: SampleCommands.commands)
        }
        #expect(error.what + (error.why.map { ": \($0)" } ?? "") == wrong.message)
        #expect(error.now?.description == wrong.now)
        #expect(error.outcome == .usage)
        #expect(error.code == .usage)
    }
}
