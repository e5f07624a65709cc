import MoultBasics
import Testing

@testable import MoultCommand

@Suite struct TerminalTextTests {
    @Test(arguments: [
        ("", 0), ("food", 4), ("Käse", 4), ("e\u{301}", 1), ("食品", 4), ("ｆ", 2), ("한국", 4), ("🥕", 2), ("🇩🇪", 2),
        ("✓", 1), ("❤\u{FE0F}", 2), ("━", 1),
        // Displayed as \u{1B}
        ("\u{1B}", 6), ("a\nb", 4), ("\u{200B}", 8),
    ])
    func `the display width of a text counts the columns of a terminal`(_ text: String, columns: Int) {
        #expect(displayWidth(text) == columns)
    }

    @Test(arguments: [
        ("plain", "plain"), ("Käse", "Käse"), ("a\u{1B}[2Jb", "a\\u{1B}[2Jb"), ("a\r\nb", "a\\u{D}\\nb"),
        ("\u{9B}31m", "\\u{9B}31m"), ("bd.\u{202E}txt", "bd.\\u{202E}txt"), ("a\tb", "a\\tb"), ("\u{7F}", "\\u{7F}"),
    ])
    func `control characters are made visible`(_ text: String, shown: String) {
        #expect(visible(text) == shown)
    }

    @Test func `styles become escapes only on terminals with colour`() {
        let text: StyledText = "\("+", .added) copy \("food")"
        #expect(text.plain == "+ copy food")
        #expect(text.rendered(for: Terminal()) == "+ copy food")
        #expect(text.rendered(for: Terminal(width: 80, hasColor: true)) == "\u{1B}[32m+\u{1B}[0m copy food")
        #expect(text.width == 11)
    }

    @Test func `wrapping breaks at spaces and keeps styles`() {
        let text: StyledText = "one \("two three", .bad) four"
        #expect(text.wrapped(to: 7).map(\.plain) == ["one two", "three", "four"])
        #expect(text.wrapped(to: 13).map(\.plain) == ["one two three", "four"])
        let colour = Terminal(width: 80, hasColor: true)
        #expect(text.wrapped(to: 13)[0].rendered(for: colour) == "one \u{1B}[1;31mtwo three\u{1B}[0m")
        #expect(text.wrapped(to: 7)[1].rendered(for: colour) == "\u{1B}[1;31mthree\u{1B}[0m")
    }

    @Test func `a long word is not broken`() {
        #expect(
            StyledText("at /a/very/long/path now").wrapped(to: 8).map(\.plain) == ["at", "/a/very/long/path", "now"])
        #expect(StyledText("").wrapped(to: 8).map(\.plain) == [""])
    }

    @Test func `a command is not broken, and text that looks like one is`() {
        let text: StyledText = "To do it: \(run: ["moult", "apply", "a b", "--store", "c"]). Or wait."
        #expect(
            text.wrapped(to: 9).map(\.plain) == ["To do it:", "moult apply 'a b' --store c.", "Or wait."])
        let advice: Advice = "Move it away: \(run: ["mv", "a b", "c"])"
        #expect(StyledText(advice).wrapped(to: 9).map(\.plain) == ["Move it", "away:", "mv 'a b' c"])
        #expect(StyledText("in a: moult status x").wrapped(to: 9).map(\.plain) == ["in a:", "moult", "status x"])
    }

    @Test func `an ellipsis in a command stays on a terminal without Unicode`() {
        let text: StyledText = "it is cut… \(run: ["mv", "a…", "b"])"
        var page = Page(for: Terminal(hasUnicode: false))
        page.diagnostic(text)
        #expect(page.text == "it is cut... mv 'a…' b\n")
    }

    @Test func `a command in an error ends its line on a terminal, without a full stop`() {
        let error = MoultError(
            .system, what: "a", why: "b",
            now: "To do it: \(moult: "apply", "a b.json", "--store", "c"). To undo it: \(moult: "rollback"). Or wait.")
        let report = ErrorReport(error)
        let lines = report.text(for: Terminal(width: 30)).split(separator: "\n").map {
            $0.drop { $0 == " " }.description
        }
        #expect(lines.contains("moult apply 'a b.json' --store c"), "\(lines)")
        #expect(lines.contains("To undo it: moult rollback") && lines.last == "Or wait.", "\(lines)")
        #expect(report.text(for: Terminal()).contains("\(error.now?.description ?? "")\n"))
    }

    @Test func `tables align by display width`() {
        var table = Table(.left, .right, .left, indent: 2)
        table.header("NAME", "SIZE", "STATE")
        table.row("食品", "1 KiB", "good")
        table.row("food", "198 MiB", "also good")
        #expect(
            table.lines(width: nil).map(\.plain) == [
                "  NAME     SIZE  STATE",
                "  食品    1 KiB  good",
                "  food  198 MiB  also good",
            ])
    }

    @Test func `the last column of a table is wrapped within the column`() {
        var table = Table(.left, .left(gap: 1), .left)
        table.row("-", "delete", "out of service, kept for rollback")
        #expect(
            table.lines(width: 32).map(\.plain) == [
                "-  delete out of service, kept",
                "          for rollback",
            ])
        #expect(table.lines(width: nil).count == 1)
    }

    @Test func `a cell that does not fit into the rest of a line goes to a line of its own`() {
        var table = Table(.left, .right, .left)
        table.header("Set", "Rows", "Since")
        table.row("20261127205331-thumbs", "3", "2026-11-27T20:53:31Z")
        #expect(
            table.lines(width: 40).map(\.plain) == [
                "Set                    Rows  Since",
                "20261127205331-thumbs     3",
                "    2026-11-27T20:53:31Z",
            ])
        #expect(
            table.lines(width: nil).map(\.plain) == [
                "Set                    Rows  Since",
                "20261127205331-thumbs     3  2026-11-27T20:53:31Z",
            ])
        var narrow = Table(.left, .left, .left)
        narrow.row("aaaaaaaaaa", "bbbbbbbbbb", "cc")
        narrow.row("", "b", "c")
        #expect(narrow.lines(width: 15).map(\.plain) == ["aaaaaaaaaa", "    bbbbbbbbbb", "    cc", "    b", "    c"])
        var empty = Table(.left, .left, .left)
        empty.row("aaaaaaaaaa", "bb", "")
        empty.row("aa", "", "cc")
        #expect(empty.lines(width: 11).map(\.plain) == ["aaaaaaaaaa", "    bb", "aa", "    cc"])
        #expect(empty.lines(width: nil).map(\.plain) == ["aaaaaaaaaa  bb", "aa              cc"])
        // Help indents options that have no letter.
        var options = Table(.left, .left)
        options.row("    --product NAME", "The product")
        #expect(options.lines(width: 25).map(\.plain) == ["    --product NAME", "        The product"])
    }

    @Test func `a command in a table is not broken`() {
        var table = Table(.left, .left, indent: 2)
        table.row("fix", "to repair: \(run: ["moult", "apply", "a.json", "--store", "b"])")
        #expect(
            table.lines(width: 34).map(\.plain) == [
                "  fix", "      to repair:", "      moult apply a.json --store b",
            ])
    }

    @Test func `a row with fewer cells has no trailing spaces`() {
        var table = Table(.left, .left, .left)
        table.row("a", "bb")
        table.row("aaa", "b", "c")
        #expect(table.lines(width: nil).map(\.plain) == ["a    bb", "aaa  b   c"])
    }
}
