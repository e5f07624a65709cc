internal import MoultBasics
internal import MoultFiles
internal import MoultPublish

/// `moult inspect`: what is in a database, a release, a bundle or a store.
enum InspectVerb {
    static let subject = Argument(
        .file("WHAT"), presence: .optional, "A database, a bundle, a sealed manifest or a store; else the store")
    static let database = Option(
        "database", value: .text("NAME"), repeats: true, "Only this database; may be given several times")

    static let command = Command(
        "inspect", .publishers, "show what is in a database, a release, a bundle or a store",
        discussion: [
            """
            For each database: size, digest, what SQLite says of it, its tables with their rows, what is damaged, and \
            what is not as the manifest says. Every page and every index is checked, as SQLite's integrity_check does. \
            Nothing is changed, and the databases may be in use. With --verbose also the whole schema in the form \
            whose digest manifests have.
            """
        ],
        arguments: [subject], options: [database],
        examples: [
            .init("Look into a database:", "moult inspect food.db"),
            .init("Look into a release and its bundle:", "moult inspect releases/food-2.1.0.json"),
        ],
        exits: [
            .init(.done, "every database is sound and matches the manifest, if one is given"),
            .init(.failure(.failed), "a database is damaged, or is not as the manifest says"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        try call.secluded("look into \(call.value(subject) ?? call.store())") { try inspect(call) }
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
        call.output.print(InspectReport(inspection: inspection, showsSchema: call.output.isVerbose))
        return inspection.isSound ? .done : .failure(.failed)
    }
}
