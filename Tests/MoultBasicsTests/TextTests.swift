import MoultBasics
import Testing

@Suite struct TextTests {
    @Test(arguments: ["", "f", "feed", "\"feed\"", "\"fee\"feed\"", "\"feed", "xx\"feed\"", "\"\"feed\"\"", "\"Feed\""])
    func `bytes contain a part where the standard library finds it`(text: String) {
        #expect(contains("\"feed\"", in: Array(text.utf8)) == text.contains("\"feed\""))
        #expect(contains("", in: Array(text.utf8)))
    }
}
