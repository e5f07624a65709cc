internal import MoultBasics
internal import MoultCore
internal import MoultFiles
internal import StepKit

/// `moult status`: what is installed, and whether it is as it should be.
enum StatusVerb {
    static let command = Command(
        "status", .operators, "show what is installed, and what is kept",
        discussion: [
            """
            A sealed database is known again by its inode, size and time of change, without reading it; to read and \
            check the files use moult verify --deep.
            """
        ],
        examples: [
            .init("Look at the store that is here:", "moult status"),
            .init("For a program:", "moult status --json --store /var/lib/app"),
        ],
        run: run)

    static func run(_ call: Call) throws -> ExitCode {
        call.output.print(StatusReport(status: try Status(of: call.layout()), storeWords: call.storeWords))
        return .done
    }
}

private struct StatusReport: Report {
    let status: Status
    let storeWords: [String]

    func write(to page: inout Page) {
        page.line("\(status.product + version, .heading)")
        page.table(facts(page.terminal))
        for sentence in status.unfinished.sentences { page.wrapped("\(sentence, .warning)") }
        if status.current == nil {
            page.line("bring a release in with: \(shellLine(["moult", "apply", "MANIFEST"] + storeWords), .heading)")
        }
        if !status.unfinished.isEmpty, status.unfinished.workers.isEmpty {
            page.line("settle it with: \(shellLine(["moult", "recover"] + storeWords), .heading)")
        }
        if let hold = status.hold { page.hold(hold, storeWords: storeWords) }
        if !status.databases.isEmpty {
            page.heading("Databases")
            page.table(databases(page.terminal))
        }
        if !status.generations.isEmpty {
            page.heading("Generations")
            page.table(generations)
        }
    }

    private var version: String {
        status.current.map { " \(Generation.version(of: $0.name))" } ?? ": nothing is installed"
    }

    private func facts(_ terminal: Terminal) -> Table {
        var table = Table(.left, .left, indent: 2)
        table.row("store", "\(status.root)")
        table.row("follows", "\(status.follow.rawValue)\(status.app.map { ", app \($0)" } ?? "")")
        if let feed = status.feed { table.row("feed", "\(feed)") }
        if !status.trusted.isEmpty { table.row("trusts", "\(status.trusted.joined(separator: ", "))") }
        if let since = status.since { table.row("since", "\(since.text(for: terminal))") }
        if let last = status.last {
            let reason = last.reason.map { ": \($0)" } ?? ""
            table.row("last", "\(last.sentence), \(last.time.text(for: terminal))\(reason)")
        }
        return table
    }

    private func databases(_ terminal: Terminal) -> Table {
        var table = Table(.left(gap: 1), .left, .left, .right, .left, indent: 2)
        for file in status.databases {
            table.row(
                file.state.isSound ? "\(terminal.symbols.tick, .good)" : "\(terminal.symbols.cross, .bad)",
                "\(file.name)", "\(file.kind.rawValue)", "\(file.size.map { "\(ByteCount($0))" } ?? "-")",
                "\(file.state.words)\(file.note.map { ": \($0)" } ?? "")")
        }
        return table
    }

    private var generations: Table {
        var table = Table(.left, .right, .left, indent: 2)
        for generation in status.generations.reversed() {
            let holders = generation.holders.map(\.description).joined(separator: ", ")
            table.row(
                "\(generation.name)", "\(ByteCount(generation.size))",
                (generation.isCurrent ? "in service" : "kept") + (holders.isEmpty ? "" : "; read by \(holders)"))
        }
        return table
    }

    var json: JSON {
        .compact([
            "store": .string(status.root), "product": .string(status.product),
            "app": .optional(status.app?.description), "follow": .string(status.follow.rawValue),
            "version": .optional(status.current.map { Generation.version(of: $0.name) }),
            "generation": .optional(status.current?.name), "since": .optional(status.since?.description),
            "hold": status.hold?.json, "feed": .optional(status.feed),
            "trusted": status.trusted.isEmpty ? nil : .array(status.trusted.map { .string($0) }),
            "unfinished": .array(status.unfinished.updates.map { .string($0) }),
            "workers": .array(status.unfinished.workers.map { .size(Int($0.pid)) }),
            "databases": .array(
                status.databases.map {
                    .compact([
                        "name": .string($0.name), "kind": .string($0.kind.rawValue), "path": .string($0.path),
                        "size": $0.size.map { .size($0) }, "state": .string($0.state.rawValue),
                        "note": .optional($0.note),
                    ])
                }),
            "generations": .array(
                status.generations.map { generation in
                    [
                        "name": .string(generation.name), "version": .string(Generation.version(of: generation.name)),
                        "size": .size(generation.size), "current": .bool(generation.isCurrent),
                        "holders": .array(
                            generation.holders.map { ["pid": .size(Int($0.pid)), "command": .string($0.command)] }),
                    ]
                }),
            "last": status.last?.json,
        ])
    }
}

extension Status.File.State {
    fileprivate var isSound: Bool { self == .sound || self == .living }

    fileprivate var words: String {
        switch self {
        case .sound: "sealed, as it was proven"
        case .living: "there, the app writes to it"
        case .missing: "missing"
        case .changed: "changed"
        }
    }
}
