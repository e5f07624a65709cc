import MoultBasics
import Testing

@Suite struct TextTests {
    @Test(arguments: [
        (0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (87_867_032, "83.8 MiB"), (198 << 20, "198 MiB"),
        (1_073_741_823, "1.00 GiB"), (79 << 30, "79.0 GiB"),
    ])
    func `byte counts are shown with a unit`(_ count: Int, _ text: String) {
        #expect(ByteCount(count).description == text)
    }

    @Test func `the nearest word is suggested`() {
        #expect(didYouMean("databses", among: ["databases", "deltas"]) == "Did you mean \"databases\"?")
        #expect(didYouMean("xyz", among: ["databases", "deltas"]) == nil)
    }

    @Test(arguments: ["", "f", "feed", "\"feed\"", "\"fee\"feed\"", "\"feed", "xx\"feed\"", "\"\"feed\"\"", "\"Feed\""])
    func `byte search agrees with the standard library`(text: String) {
        #expect(contains("\"feed\"", in: Array(text.utf8)) == text.contains("\"feed\""))
        #expect(contains("", in: Array(text.utf8)))
    }
}
