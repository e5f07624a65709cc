internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultPublish

/// `moult build`: builds a database from a script.
enum BuildVerb {
    static let script = Argument(.file("SCRIPT"), "A script of SQL and dot commands, as for the sqlite3 shell")
    static let output = Option(
        "output", letter: "o", value: .file(), required: "the database is written to this file",
        "The database to create")
    static let allowOutside = Option("allow-outside", "Let the script read files outside its own directory")
    static let analyze = Option("analyze", "Run ANALYZE at the end")
    static let from = Option(
        "from", value: .file("OLD.db"), "Keep the page layout of this earlier database, so that patches stay small")
    static let applicationID = Option("application-id", value: .text("N"), "The database's application_id")
    static let userVersion = Option("user-version", value: .text("N"), "The database's user_version")

    static let define = Option(
        "define", value: .text("NAME=VALUE"), repeats: true,
        "Set ${NAME} in the script and in the scripts that it reads")

    static let command = Command(
        "build", .publishers, "build a database from a script and CSV files",
        discussion: [
            """
            Paths in the script are relative to its directory. The same inputs produce the same bytes, unless a warning \
            says otherwise. If the build fails, no file is written.
            """
        ], arguments: [script], options: [output, define, allowOutside, analyze, from, applicationID, userVersion],
        usesStore: false,
        examples: [
            "Build main.db:": "moult build make.sql -o main.db",
            "Set a variable in the script:": "moult build make.sql -o main.db --define VERSION=2.1.0",
        ], run: run)

    private static let stopped = "stopped before anything was written"

    static func run(_ call: Call) throws -> ExitCode {
        let output = try call.required(output)
        try refuseStore(output)
        var options = call.buildOptions()
        options.defines = try call.defines(define)
        options.allowOutside = call.has(allowOutside)
        options.analyze = call.has(analyze)
        options.from = call.value(from)
        options.applicationID = try call.int32(applicationID)
        options.userVersion = try call.int32(userVersion)
        let bar = call.progressBar()
        defer { bar.end() }
        Interruption.watch()
        options.progress = {
            try Interruption.check(stopped)
            bar.show(Progress("build: \($0.what)", done: $0.done, of: $0.total))
        }
        let report = try Interruption.reporting(stopped) {
            try DatabaseBuilder(options).build(script: call.required(script), output: output)
        }
        bar.end()
        for why in report.unrepeatable { call.output.warn("a second build may produce different bytes: \(why)") }
        call.output.print(json: report.json) { page in
            for file in report.imports { page.line("  \(file.table): \(counted(file.rows, "row")) from \(file.file)") }
            page.line(
                "\("+", .added) \(report.output)  \(ByteCount(report.size)), built with SQLite \(report.sqliteVersion)")
        }
        return .done
    }

    /// Refuses to overwrite a file in a store: an older build may be replaced, but a file in a store may be the only copy of
    /// user data.
    private static func refuseStore(_ output: String) throws {
        let directory = Files.directory(of: try Files.absolute(output))
        guard try Files.facts(output) != nil, try Files.facts("\(directory)/\(StoreLayout.settingsName)") != nil else {
            return
        }
        throw MoultError(
            .output, .refused, what: "cannot build \(output)", why: "it exists and belongs to a store",
            now: "Build it elsewhere, and install it in the store with a release.")
    }
}

extension Call {
    /// Returns the options of a build that prints warnings and the output of the script, and stops on a signal.
    func buildOptions() -> BuildOptions {
        var options = BuildOptions()
        options.warn = { output.warn("\($0.description)") }
        options.output = { output.say(lines: $0) }
        options.shouldStop = { Interruption.isRequested }
        return options
    }

    fileprivate func int32(_ option: Option) throws -> Int32? {
        guard let text = value(option) else { return nil }
        guard let number = Int32(text) else {
            throw wrongUsage("--\(option.name) needs a 32-bit whole number, not \"\(text)\"")
        }
        return number
    }
}

extension BuildReport {
    fileprivate var json: JSON {
        .record([
            "output": output, "size": size, "sqlite": sqliteVersion, "sqliteSource": sqliteSource, "inputs": inputs,
            "imports": imports.map { JSON.record(["file": $0.file, "table": $0.table, "rows": $0.rows]) },
            "unrepeatable": unrepeatable,
        ])
    }
}
