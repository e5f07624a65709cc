import MoultFiles
import TestSupport
import Testing

/// What `moult pack` refuses because no store could use it.
@Suite struct PackLimitsTests {
    private let scratch: Scratch

    init() throws {
        scratch = try Scratch()
        let one =
            #"{"manifest":1,"product":"org.example.x","version":"1.0.0","databases":{"food":{"kind":"reference","build":{"script":"make.sql"}}}}"#
        try scratch.write("make.sql", "CREATE TABLE t(x);")
        try scratch.write("one.json", one)
        try scratch.write("two.json", one.replacing("1.0.0", with: "2.0.0"))
    }

    @Test(arguments: [
        ("9223372036854775807", "rel/x-1.0.0.json: sequence must be less than 2^53, is 9223372036854775807"),
        ("9007199254740992", "rel/x-1.0.0.json: sequence must be less than 2^53, is 9007199254740992"),
        // The next one is counted from it.
        ("9007199254740991", "x-2.0.0.json: sequence must be less than 2^53, is 9007199254740992"),
    ])
    func `a sequence that leaves no room for the next one is refused`(_ sequence: String, _ message: String) throws {
        let ended = try scratch.moult(
            """
            moult pack -q one.json -o rel && sed -i 's/"sequence": 1,/"sequence": \(sequence),/' rel/x-1.0.0.json
            moult pack two.json -o rel; echo $?; ls rel | grep -c 2.0.0
            """)
        #expect(ended.out == "1\n0\n", "\(ended)")
        #expect(ended.err.hasPrefix("moult: error: \(message)\n"), "\(ended)")
    }
}
