import Testing

@testable import MoultCommand

@Suite struct TerminalTests {
    private func terminal(_ variables: [String: String], isTerminal: Bool = true, columns: Int = 132) -> Terminal {
        Terminal(isTerminal: isTerminal, columns: columns, environment: Environment(variables))
    }

    @Test(
        arguments: [
            // The variables, whether the output is a terminal, and whether it has colours.
            (["TERM": "xterm"], true, true),
            (["TERM": "xterm"], false, false),
            (["TERM": "dumb"], true, false),
            ([:], true, false),
            (["TERM": "xterm", "NO_COLOR": "1"], true, false),
            (["TERM": "xterm", "NO_COLOR": ""], true, true),
            (["TERM": "xterm", "CLICOLOR": "0"], true, false),
            (["CLICOLOR_FORCE": "1"], false, true),
            (["CLICOLOR_FORCE": "0"], false, false),
            (["CLICOLOR_FORCE": "1", "NO_COLOR": "1"], true, false),
        ] as [([String: String], Bool, Bool)])
    func `environment variables and the terminal determine whether colours are used`(
        _ variables: [String: String], isTerminal: Bool, isColoured: Bool
    ) {
        #expect(terminal(variables, isTerminal: isTerminal).hasColor == isColoured)
    }

    @Test(
        arguments: [
            (["LANG": "de_DE.UTF-8"], true),
            (["LANG": "C.utf8"], true),
            (["LANG": "C"], false),
            ([:], false),
            (["LANG": "C.UTF-8", "LC_ALL": "C"], false),
            (["LANG": "C", "LC_CTYPE": "C.UTF-8"], true),
            (["LANG": "C.UTF-8", "LC_ALL": ""], true),
        ] as [([String: String], Bool)])
    func `the locale determines whether Unicode symbols are used`(_ variables: [String: String], isUnicode: Bool) {
        #expect(terminal(variables).hasUnicode == isUnicode)
        #expect(terminal(variables).symbols.tick == (isUnicode ? "✓" : "ok"))
    }

    @Test func `the width is that of the terminal unless COLUMNS sets it`() {
        #expect(terminal([:]).width == 132)
        #expect(terminal([:], columns: 0).width == 80)
        #expect(terminal(["COLUMNS": "100"]).width == 100)
        #expect(terminal(["COLUMNS": "wide"]).width == 132)
        #expect(terminal(["COLUMNS": "100"], isTerminal: false).width == nil)
    }

    @Test func `only a terminal that is not dumb can redraw`() {
        #expect(terminal(["TERM": "xterm"]).canRedraw)
        #expect(!terminal(["TERM": "dumb"]).canRedraw)
        #expect(!terminal(["TERM": "xterm"], isTerminal: false).canRedraw)
    }
}
