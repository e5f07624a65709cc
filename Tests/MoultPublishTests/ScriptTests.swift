import Testing

/// Scripts run by the sqlite3 shell and by the builder: same database, same output.
@Suite struct ScriptTests {
    @Test(arguments: ScriptCases.all) func `a script runs as in the SQLite shell`(_ it: DifferentialCase) throws {
        try #expect(it.byBuilder() == it.byShell())
    }
}
