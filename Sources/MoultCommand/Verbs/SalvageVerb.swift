internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite

/// `moult salvage`: writes the readable rows of a damaged database into a new one.
enum SalvageVerb {
    static let file = Argument(.file("FILE"), "The damaged database; it is not changed")
    static let output = Option(
        "output", letter: "o", value: .file(), required: "the rows are written to this file",
        "The new database to write")

    static let command = Command(
        "salvage", .operators, "write the readable rows of a damaged file into a new database",
        discussion: [
            """
            The file may belong to no store. Use a copy or end the programs that write to it; its -wal and -journal are read, \
            too. For a database of a store, use: moult reset DATABASE --keep-readable
            """
        ], arguments: [file], options: [output], usesStore: false,
        examples: ["Read what can be read:": "moult salvage damaged.db -o rows.db"],
        exits: [
            .done: "everything was read",
            .failure(.failed): "rows, tables or indexes are missing in the new file, or nothing could be read",
            .failure(.refused): "the new file exists",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let (file, target) = (try call.required(file), try call.required(output))
        try OutputFile.requireDirectory(of: target)
        Interruption.watch()
        let report = try FileSalvage.run(file, to: target, stop: { try Interruption.check() })
        let written = try Files.facts(target) == nil ? nil : target
        let json = JSON.record(["file": file, "salvaged": written, "salvage": report.json])
        call.output.print(json: json, evenIfQuiet: !report.isWhole) { $0.salvage(report, to: written) }
        return report.isWhole ? .done : .failure(.failed)
    }
}

extension Page {
    mutating func salvage(_ report: Salvage.Report, to file: String?) {
        if let file {
            line("  \(counted(report.rows, "row")) salvaged to \(file)")
            for table in report.tables where !table.isWhole {
                line(
                    "  table \(table.name) is incomplete (\(counted(table.rows, "row"))): \(table.why ?? "it is damaged")"
                )
            }
            for item in report.missing { line("  the \(item.kind) \(item.name) is missing: \(item.why)") }
            if let note = report.note { line("  not everything could be read: \(note)") }
        } else if report.mayBeRepeated {
            line("  nothing was salvaged: \(report.note ?? "the copy failed")")
        } else {
            line("  no rows could be read from the old files\(report.note.map { ": \($0)" } ?? "")")
            for table in report.tables where !table.isWhole {
                line("  table \(table.name): \(table.why ?? "it is damaged")")
            }
        }
    }
}
