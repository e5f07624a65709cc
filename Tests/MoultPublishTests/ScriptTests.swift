import Testing

/// The sqlite3 shell and the builder run the same scripts, with the same databases and output as results.
@Suite struct ScriptTests {
    @Test(arguments: ScriptCases.all) func `a script runs as in the SQLite shell`(_ it: DifferentialCase) throws {
        try #expect(it.byBuilder() == it.byShell())
    }
}
