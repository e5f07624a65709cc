import MoultBasics
import MoultFiles
import MoultPublish
import TestSupport
import Testing

/// The differences in `docs/publish.md` are tested with the shell and with a build.
@Suite struct ShellDifferenceTests {
    /// Prints the database as SQL, with its journal mode as the last line.
    private static let dump = "sqlite3 \"$1\" .dump && echo \"-- $(sqlite3 \"$1\" 'PRAGMA journal_mode')\""

    private func dump(_ database: String, in scratch: Scratch) throws -> [UInt8] {
        try Shell.must(["sh", "-ec", "{ \(Self.dump); } > dump", "sh", database], in: scratch.path)
        return try scratch.bytes("dump")
    }

    @Test(arguments: Difference.all) func `build differs from the shell only as documented`(_ it: Difference) throws {
        let scratch = try Scratch()
        try scratch.file("in/s.sql", it.script.all)
        for (name, bytes) in it.files { try scratch.file("in/\(name)", bytes.all) }
        // Unless the case depends on the working directory of the shell, the shell runs in the directory of the script.
        let start = it.files.keys.contains { $0.hasPrefix("../") } ? "." : "in"
        _ = try Shell.run(
            ["sh", "-c", "sqlite3 \(scratch.path("shell.db")) < \(scratch.path("in/s.sql"))"], in: scratch.path(start))
        let lines = try dump("shell.db", in: scratch).split(separator: 0x0A)
        #expect(lines.contains(it.shell.all[...]), "\(lines.map { String(decoding: $0, as: UTF8.self) })")

        var options = BuildOptions()
        options.environment = ["SOURCE_DATE_EPOCH": "0"]
        let builder = DatabaseBuilder(options)
        switch it.ours {
        case .refused(let part):
            let error = #expect(throws: MoultError.self) {
                try builder.build(script: scratch.path("in/s.sql"), output: scratch.path("ours.db"))
            }
            #expect(error?.description.contains(part) == true, "\(error?.description ?? "")")
            #expect(try Files.facts(scratch.path("ours.db")) == nil)
        case .dump(let sql):
            _ = try builder.build(script: scratch.path("in/s.sql"), output: scratch.path("ours.db"))
            let ours = try dump("ours.db", in: scratch)
            #expect(!ours.split(separator: 0x0A).contains(it.shell.all[...]))
            let made = String(decoding: ours, as: UTF8.self).split(separator: "\n")
            for line in sql.split(separator: "\n") { #expect(made.contains(line), "\(line) is not in \(made)") }
        }
    }

    /// The page has the same differences in the same order.
    @Test func `the page lists all differences from the shell`() throws {
        let text = try Project.text("docs/publish.md")
        let table = try #require(text.split(separator: "| difference |").last?.split(separator: "\n\n").first)
        let names = table.split(separator: "\n").dropFirst(2).compactMap { line in
            line.hasPrefix("| ") ? line.split(separator: " | ").first.map { String($0.dropFirst(2)) } : nil
        }
        #expect(names == Difference.all.map(\.name))
    }
}
