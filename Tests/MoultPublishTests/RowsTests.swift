import TestSupport
import Testing

/// The sqlite3 shell and the builder import the same files, with the same rows and the same warnings.
@Suite struct RowsTests {
    @Test(
        arguments: RowCases.csv.map { name, file in
            DifferentialCase(name, "CREATE TABLE t(a, b);\n.import --csv t.csv t\n", ["t.csv": file])
        })
    func `the builder imports the same rows as the shell into an existing table`(_ it: DifferentialCase) throws {
        try #expect(it.byBuilder() == it.byShell())
    }

    /// The same files are imported into a new table, whose columns come from the first row.
    @Test(
        .tags(.sampled),
        arguments: RowCases.csv.filter { !["empty file", "byte order mark alone"].contains($0.0) }.filter {
            // For names that are not UTF-8, see `ShellDifferenceTests`.
            !["not UTF-8", "half a byte order mark", "a third of a byte order mark"].contains($0.0)
        }.map { name, file in
            DifferentialCase(name, ".mode csv\n.import t.csv new\n", ["t.csv": file])
        }.sampled(20))
    func `the builder imports the same rows as the shell into a new table`(_ it: DifferentialCase) throws {
        try #expect(it.byBuilder() == it.byShell())
    }

    @Test(arguments: RowCases.scripts) func `scripts that import rows have the same result as in the shell`(
        _ it: DifferentialCase
    ) throws {
        try #expect(it.byBuilder() == it.byShell())
    }
}
