import MoultBasics
import Testing

@testable import MoultCommand

/// The output and its streams, for users and for programs.
@Suite struct OutputTests {
    private struct Greeting: Report {
        func write(to page: inout Page) { page.line("hello") }
        var json: JSON { ["hello": true] }
    }

    private let deep = MoultError(
        .system, .undone, what: "cannot apply 2.1.0", why: "food.db is damaged", now: "\(moult: "verify")",
        cause: MoultError(.json, what: "cannot read page 7", why: "I/O error", cause: Surprise()))

    private struct Surprise: Error, CustomStringConvertible { var description: String { "the cable is out" } }

    /// Returns the text that the body writes to stdout and stderr.
    private func written(
        _ format: Format, quiet: Bool = false, verbose: Bool = false, _ body: (Output) throws -> Void
    ) throws -> [String] {
        let (out, err) = (try Sink(), try Sink())
        let console = Console(environment: Environment([:]), out: out.descriptor, err: err.descriptor)
        try body(Output(console: console, format: format, isQuiet: quiet, isVerbose: verbose))
        #expect(console.finish() == nil)
        return [out.text, err.text]
    }

    @Test func `a result is printed as text or JSON`() throws {
        #expect(try written(.text) { $0.print(Greeting()) } == ["hello\n", ""])
        #expect(try written(.json) { $0.print(Greeting()) } == [#"{"format":1,"hello":true}"# + "\n", ""])
        #expect(try written(.text, quiet: true) { $0.print(Greeting()) } == ["", ""])
    }

    @Test func `events are lines of JSON`() throws {
        let body = { (output: Output) in
            output.event("progress", ["phase": "copy", "done": 3, "total": nil])
            output.print(Greeting())
        }
        #expect(try written(.text, body) == ["hello\n", ""])
        let lines = [#"{"format":1,"event":"progress","phase":"copy","done":3}"#, #"{"format":1,"hello":true}"#]
        #expect(try written(.json, body) == [lines.map { $0 + "\n" }.joined(), ""])
        #expect(try written(.json, quiet: true, body) == ["", ""])
    }

    @Test func `notes and warnings go to stderr`() throws {
        #expect(try written(.text) { $0.note("unpacked") } == ["", "moult: unpacked\n"])
        #expect(try written(.text, quiet: true) { $0.note("unpacked") } == ["", ""])
        #expect(try written(.text, quiet: true) { $0.warn("old") } == ["", "moult: warning: old\n"])
        let line = #"{"format":1,"event":"warning","message":"old"}"# + "\n"
        #expect(try written(.json) { $0.warn("old") } == [line, ""])
    }

    @Test func `an error is printed with its problem, reason and advice`() throws {
        let text = "moult: error: cannot apply 2.1.0: food.db is damaged\n  Try: moult verify\n"
        #expect(try written(.text) { $0.report(deep) } == ["", text])
        let json =
            #"{"format":1,"error":{"code":"E100","outcome":"undone","exit":5,"what":"cannot apply 2.1.0","#
            + #""why":"food.db is damaged","now":"moult verify"}}"# + "\n"
        #expect(try written(.json) { $0.report(deep) } == [json, ""])
        #expect(ErrorReport(deep).status.rawValue == 5)
    }

    @Test func `advice that is a sentence is printed without a prefix`() throws {
        let error = MoultError(.system, what: "no room", now: "Free 198 MiB.")
        #expect(try written(.text) { $0.report(error) } == ["", "moult: error: no room\n  Free 198 MiB.\n"])
    }

    @Test func `with -v, the causes of an error are printed`() throws {
        let text = """
            moult: error: cannot apply 2.1.0: food.db is damaged
              Try: moult verify
              caused by: cannot read page 7: I/O error
              caused by: the cable is out

            """
        #expect(try written(.text, verbose: true) { $0.report(deep) } == ["", text])
        let json = ErrorReport(deep, isVerbose: true).json
        #expect(
            json["error"]?["causes"]?.array?.compactMap { $0["what"]?.string } == [
                "cannot read page 7", "the cable is out",
            ])
    }

    @Test func `an unexpected error is reported as a failure`() throws {
        #expect(try written(.text) { $0.report(Surprise()) } == ["", "moult: error: the cable is out\n"])
        #expect(ErrorReport(Surprise()).status.rawValue == 1)
    }

    @Test func `names in an error cannot control the terminal`() throws {
        let error = MoultError(.system, what: "no \u{1B}]0;x\u{7}.db")
        #expect(try written(.text) { $0.report(error) } == ["", "moult: error: no \\u{1B}]0;x\\u{7}.db\n"])
    }
}
