internal import MoultBasics
internal import MoultFiles
internal import MoultPublish

/// `moult inspect`: shows the contents of a database, a release, a bundle or a store.
enum InspectVerb {
    static let subject = Argument(
        .file("WHAT", orDirectory: true), presence: .optional,
        "A database, a bundle, a manifest or a store (default: the store)")
    static let database = Option("database", value: .text("NAME"), repeats: true, "Only this database")

    static let command = Command(
        "inspect", .publishers, "show the contents of a database, release, bundle or store",
        discussion: [
            """
            For each database, the command prints size, digest, properties, tables with their number of rows, damage, \
            and differences from the manifest. It checks every page and index, as SQLite's integrity_check does. \
            It changes nothing, and the databases may be in use. --verbose adds the whole schema as \
            canonical text, the text from which the schema digest in a manifest is computed.
            """
        ], arguments: [subject], options: [database],
        examples: [
            "Inspect a database:": "moult inspect food.db",
            "Inspect a release and its bundle:": "moult inspect releases/food-2.1.0.json",
        ],
        exits: [
            .done: "every database is undamaged and matches its manifest",
            .failure(.failed): "a database is damaged or does not match its manifest",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        try call.sandboxed("inspect \(call.value(subject) ?? call.store())") { _ in
            if call.value(subject) == nil { try call.reportUnfinished() }
        } body: {
            try inspect(call)
        }
    }

    private static func inspect(_ call: Call) throws -> ExitCode {
        let opened = try call.value(subject).map(call.subject) ?? call.installedSubject()
        try call.confine(to: opened)
        let bar = call.progressBar()
        defer { bar.end() }
        var tables = 0
        let inspection = try Inspection(opened, only: call.values(database)) { database, table in
            try Interruption.check()
            tables += 1
            bar.show(Progress("count \(table) of \(database)", done: tables, unit: .items))
        }
        bar.end()
        call.output.print(
            InspectReport(inspection: inspection, showsSchema: call.output.isVerbose), evenIfQuiet: !inspection.isSound)
        return inspection.isSound ? .done : .failure(.failed)
    }
}
