import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// The format in which processes communicate: each message is a line of JSON.
@Suite struct MessageLinesTests {
    /// Bytes arrive in blocks of any size. Splitting the whole text at once gives the expected lines.
    @Test(arguments: 0..<200)
    func `messages are lines, however the input is split into blocks`(seed: Int) throws {
        var random = SeededRandom(seed)
        let text = (0..<Int.random(in: 0...400, using: &random)).map { _ in
            Bool.random(using: &random) ? UInt8.random(in: 0...255, using: &random) : UInt8(ascii: "\n")
        }
        var lines = MessageLines(longest: 1000)
        var found: [[UInt8]] = []
        var rest = text[...]
        while !rest.isEmpty {
            let block = rest.prefix(Int.random(in: 1...50, using: &random))
            rest = rest.dropFirst(block.count)
            lines.add(block)
            // Sometimes several blocks arrive before the lines are read.
            if Bool.random(using: &random) { while let line = try lines.next() { found.append(line) } }
        }
        while let line = try lines.next() { found.append(line) }
        found.append(lines.rest())
        let expected = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { Array($0) }
        #expect(found == expected)
        #expect(lines.rest().isEmpty)
    }

    @Test func `a line may have the maximum length but no more, with or without a line feed`() throws {
        for (count, end, isTooLong) in [(10, "", false), (10, "\n", false), (11, "", true), (11, "\n", true)] {
            var lines = MessageLines(longest: 10)
            lines.add(Array((String(repeating: "x", count: count) + end).utf8))
            var failed = false
            do { _ = try lines.next() } catch { failed = true }
            #expect(failed == isTooLong, "\(count) bytes, \(end.debugDescription)")
        }
    }

    @Test func `a message is one line even if its texts have line feeds`() throws {
        let json: JSON = ["text": "a\nb", "list": ["\r\n"]]
        #expect(json.message.filter { $0 == UInt8(ascii: "\n") }.count == 1 && json.message.last == UInt8(ascii: "\n"))
        #expect(try JSON(parsing: json.message, source: "a test") == json)
    }

    /// `cat` acts as a program that answers each message.
    @Test func `messages are sent to a program and received from it`() throws {
        let child = try Subprocess(Subprocess.Command(["cat"]), input: .pipe)
        var lines = MessageLines(longest: 1 << 20)
        for number in 1...3 {
            let message: JSON = ["number": .size(number), "fill": .string(String(repeating: "é", count: 100_000))]
            child.send(message)
            var line: [UInt8]?
            while line == nil {
                lines.add(try #require(try child.read(patience: 20, stop: {})))
                line = try lines.next()
            }
            #expect(try JSON(parsing: try #require(line), source: "cat") == message)
        }
        child.closeInput()
        #expect(try child.read(patience: 20, stop: {}) == nil && lines.rest().isEmpty)
    }
}
