import TestSupport
import Testing

/// The suggestion for a misspelt option.
@Suite struct MisspeltOptionTests {
    @Test(arguments: [
        ("rollback --forse", "--force"), ("apply --wiat 60", "--wait"), ("replace a b --chekc x=1", "--check"),
        ("apply --fore", "--force-after"), ("rollback --fore", "--force"),
        ("apply --alow-downgrade", "--allow-downgrade"), ("apply -version", "--version"),
    ])
    func `the suggestion is the most similar option`(line: String, option: String) throws {
        let ended = try Scratch().moult("moult \(line)")
        #expect(ended.status == 64 && ended.err.contains("did you mean \"\(option)\"?"), "\(ended)")
    }

    @Test func `the error for a letter names the letter and its word`() throws {
        let ended = try Scratch().moult("moult status -qx")
        #expect(ended.status == 64 && ended.err.contains("no option \"-x\": \"-qx\" contains it"), "\(ended)")
    }
}
