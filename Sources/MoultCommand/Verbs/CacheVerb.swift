internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultPublish

/// `moult cache`: checks an app's cache without releases, and recreates it if it does not match.
enum CacheVerb {
    static let file = Argument(.file("FILE"), "The cache, a database that the app can fill again")
    static let schema = Option(
        "schema", value: .file("SCHEMA.sql"), required: "a cache is kept only if it has this schema",
        "The script that creates the schema, as for `moult build`")

    static let command = Command(
        "cache", .operators, "check an app's cache, and replace it if it is damaged or outdated",
        discussion: [
            """
            For apps without releases: run this command before the app opens the cache. FILE is kept if SQLite finds \
            no damage in it and its schema matches the one that the script creates; application_id and user_version \
            must match too if the script sets them. Otherwise a new, empty database replaces FILE.
            """,
            """
            The new content is written into FILE in one transaction of SQLite, while programs may have FILE open. If FILE has \
            a table that the script does not create, its old content is kept: see `moult quarantine FILE`. A file that \
            is not a database is kept with the suffix .old. If a process has FILE locked, nothing changes. For a cache that \
            belongs to a store, use `moult reset`.
            """,
        ], arguments: [file], options: [schema], usesStore: false,
        examples: [
            "Before the app starts:": "moult cache /var/cache/gallery/thumbs.db --schema thumbs.sql",
            "In a script, fill a new cache:":
                "moult cache -q thumbs.db --schema thumbs.sql; [ $? = 2 ] && fetch-images",
        ],
        exits: [
            .done: "the cache is ready", .changes: "the cache is new and empty: the app must fill it again",
            .failure(.refused): "the path belongs to a store, or is not a regular file",
            .failure(.busy): "a process has FILE locked; the message names the process",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let schema = try call.required(schema)
        let file = try call.required(file)
        if let old = try Files.factsThroughLinks(file), try old.isSameFile(Files.factsThroughLinks(schema)) {
            throw call.wrongUsage(
                "FILE and SCHEMA.sql are the same file", why: "a new database would replace the script")
        }
        try Custody.check(cache: file)
        try OutputFile.requireDirectory(of: file)
        let cache = try StandaloneCache(file, .refuse)
        Interruption.watch()
        let outcome = try Files.withScratchDirectory { scratch in
            let template = "\(scratch)/template.db"
            _ = try Interruption.reporting("stopped before anything was changed") {
                try DatabaseBuilder(call.buildOptions()).build(script: schema, output: template)
            }
            return try cache.prepareInPlace(.init(template: template), template: template) {
                try call.replacement(of: ReplacedFile(file), wait: 30)
            }
        }
        switch outcome {
        case .ready:
            call.output.print(json: .record(["cache": file, "state": "ready"])) {
                $0.line("\(StyledText($0.terminal.symbols.tick, .added)) \(file) is ready")
            }
            return .done
        case .recreated(let why, let kept):
            let json = JSON.record(["cache": file, "state": "recreated", "why": why, "kept": kept])
            call.output.print(json: json) { page in
                page.line("\("~", .changed) \(file) is a new, empty cache: \(why)")
                if let kept { page.line("the old file may not be a cache of this app, and is kept: \(kept)") }
            }
            return .changes
        }
    }
}
