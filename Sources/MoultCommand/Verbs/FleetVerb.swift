internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultPublish

/// `moult fleet`: which of many stores do not update, and why, from the output of `moult status --json` that was collected.
enum FleetVerb {
    static let sources = Argument(
        .file("FILE", orDirectory: true), presence: .several,
        "A file with the output of `moult status --json` on one machine or several, or a directory of such files. The name of a file is that of its machine"
    )
    static let html = Option("html", value: .file(), "Also write an HTML page to FILE")

    static let command = Command(
        "fleet", .operators, "show which of many stores do not update, and why",
        discussion: [
            """
            Collect the status of each store in one file, for example MACHINE.json: a status that a machine could not \
            read is an error in JSON, and belongs into the file, too. The table groups the stores by the code of the \
            error or the kind of finding, the worst first, with what to do once for each group. It also names the stores \
            with an older feed than others of the same product, and files that are older than a day.
            """
        ], arguments: [sources], options: [html], usesStore: false,
        examples: [
            "Collect the status of one machine:": "ssh host1 moult status --json --store /srv/app > fleet/host1.json",
            "Show the stores that need attention:": "moult fleet fleet",
            "Write a page:": "moult fleet fleet --html fleet.html",
        ],
        exits: [
            .done: "no store has a warning", ExitCode(rawValue: 1): "a store has a warning",
            ExitCode(rawValue: 2): "a store has a critical finding, or could not be read",
        ], run: run)

    static func run(_ call: Call) throws -> ExitCode {
        let fleet = try Fleet(in: call.values(sources))
        if let page = call.value(html) { try call.save(Array(fleet.html.utf8), asPage: page) }
        call.output.print(fleet)
        switch fleet.worst {
        case nil, .note: return .done
        case .warning: return ExitCode(rawValue: 1)
        case .critical: return ExitCode(rawValue: 2)
        }
    }
}

struct Fleet {
    struct Member {
        let machine: String
        let store: String
        let what: String
        let since: String?
    }

    /// The stores with the same kind of finding.
    struct Group {
        /// The code of an error, or the kind of a finding.
        let name: String
        let severity: Finding.Severity
        let advice: String?
        var members: [Member] = []

        var what: String? { members.allSatisfy { $0.what == members.first?.what } ? members.first?.what : nil }
    }

    private(set) var count = 0
    var worst: Finding.Severity? { groups.map(\.severity).max() }
    /// Worst first, then those with the most stores.
    private(set) var groups: [Group] = []
    private var names: [String: Int] = [:]
    /// The serials of the feeds that stores have seen, by product.
    private var feeds: [String: [(machine: String, store: String, serial: Int64)]] = [:]

    init(in paths: [String], at now: Timestamp = .now) throws {
        for path in paths {
            let isDirectory = try Files.factsThroughLinks(path)?.kind == .directory
            guard isDirectory else {
                try read(path, now)
                continue
            }
            // Directories in it are not read.
            for file in try Files.list(path).sorted().map({ "\(path)/\($0)" })
            where try Files.factsThroughLinks(file)?.kind == .file { try read(file, now) }
        }
        for (product, stores) in feeds.sorted(by: { $0.key < $1.key }) {
            guard let newest = stores.map(\.serial).max() else { continue }
            for (machine, store, serial) in stores where serial < newest {
                add(
                    "olderFeed", .warning, "Ask the feed on that machine: moult check",
                    Member(
                        machine: machine, store: store,
                        what: "the feed of \(product) has serial \(serial), and other stores have seen \(newest)",
                        since: nil))
            }
        }
        groups.sort { ($0.severity, $0.members.count, $0.name) > ($1.severity, $1.members.count, $1.name) }
    }

    private mutating func add(_ name: String, _ severity: Finding.Severity, _ advice: String?, _ member: Member) {
        // The same finding can be a warning on one machine and critical on another.
        let key = "\(severity.rawValue) \(name)"
        let index = names[key] ?? groups.count
        if index == groups.count { groups.append(Group(name: name, severity: severity, advice: advice)) }
        names[key] = index
        groups[index].members.append(member)
    }

    private mutating func read(_ file: String, _ now: Timestamp) throws {
        var machine = Files.name(of: file)
        if machine.hasSuffix(".json") { machine.removeLast(5) }
        func unreadable(_ why: String) -> Member { Member(machine: machine, store: file, what: why, since: nil) }
        guard let bytes = try Files.read(file, limit: 64 << 20) else {
            throw MoultError(.usage, .usage, what: "no file \(file)", why: "it does not exist")
        }
        let lines = bytes.split(separator: UInt8(ascii: "\n")).filter { !$0.allSatisfy { $0 == 0x20 || $0 == 0x0D } }
        // A status that was printed on a terminal has several lines.
        let texts = lines.count > 1 && lines[0].count < 3 ? [bytes[...]] : lines
        if texts.isEmpty {
            count += 1
            add("unreadable", .critical, Self.collect, unreadable("the file is empty"))
        }
        for text in texts {
            count += 1
            do { try take(JSON(parsing: Array(text), source: file), machine, file, now) } catch {
                add(
                    "unreadable", .critical, Self.collect,
                    unreadable("\((error as? MoultError)?.problem ?? "\(error)")"))
            }
        }
    }

    private static let collect = "Collect the status of that machine again: moult status --json"

    private mutating func take(_ status: JSON, _ machine: String, _ file: String, _ now: Timestamp) throws {
        if let error = status["error"] {
            let what = [error["what"]?.string, error["why"]?.string].compactMap(\.self).joined(separator: ": ")
            let member = Member(machine: machine, store: file, what: what, since: nil)
            return add(error["code"]?.string ?? "error", .critical, error["now"]?.string, member)
        }
        guard let store = status["store"]?.string, let findings = status["findings"]?.array else {
            throw MoultError(.json, what: "\(file) is not the status of a store", why: "it has no \"findings\"")
        }
        func member(_ what: String, since: String? = nil) -> Member {
            Member(machine: machine, store: store, what: what, since: since)
        }
        let attempt = status["attempt"]
        for finding in findings {
            guard let severity = finding["severity"]?.string.flatMap(Finding.Severity.init), severity > .note,
                let kind = finding["kind"]?.string, let what = finding["what"]?.string
            else { continue }
            if kind == Finding.Kind.failure.rawValue, let code = attempt?["code"]?.string {
                let sentence = [attempt?["what"]?.string, attempt?["why"]?.string].compactMap(\.self)
                add(
                    code, severity, attempt?["advice"]?.string,
                    member(sentence.joined(separator: ": "), since: attempt?["failingSince"]?.string))
            } else {
                let path = finding["path"]?.string.map { "\($0): " } ?? ""
                add(kind, severity, finding["advice"]?.string, member(path + what))
            }
        }
        if let taken = status["time"]?.string.flatMap({ Timestamp($0) }), now.seconds - taken.seconds > 86_400 {
            add("oldStatus", .warning, Self.collect, member("the status is from \(taken)", since: taken.description))
        }
        if let product = status["product"]?.string, let serial = status["known"]?["serial"]?.integer {
            feeds[product, default: []].append((machine, store, serial))
        }
    }

    /// The number of stores without a warning.
    var sound: Int { count - Set(groups.flatMap { $0.members.map { "\($0.machine) \($0.store)" } }).count }

    var summary: String { "\(counted(count, "store")): \(sound == count ? "all" : "\(sound)") without a warning" }
}

extension Fleet: Report {
    func write(to page: inout Page) {
        for group in groups {
            let style: Style = group.severity == .critical ? .bad : .warning
            page.wrapped(
                "\(group.name, style) on \(counted(group.members.count, "store")), \(group.severity.rawValue)\(group.what.map { ": \($0)" } ?? "")"
            )
            if let advice = group.advice { page.wrapped("\(advice)", indent: 2) }
            var table = Table(.left, .left, .left, .left, indent: 2)
            for member in group.members {
                table.row(
                    "\(member.machine)", "\(member.store)", "\(member.since.map { "since \($0)" } ?? "")",
                    "\(group.what == nil ? member.what : "")")
            }
            page.table(table)
            page.line()
        }
        page.line("\(summary)")
    }

    var json: JSON {
        .record([
            "stores": count, "sound": sound,
            "groups": groups.map { group in
                JSON.record([
                    "name": group.name, "severity": group.severity.rawValue, "advice": group.advice,
                    "members": group.members.map { member in
                        JSON.record([
                            "machine": member.machine, "store": member.store, "what": member.what,
                            "since": member.since,
                        ])
                    },
                ])
            },
        ])
    }
}

extension Fleet {
    var html: String {
        WholePage(
            title: "Stores that need attention", style: Self.style,
            header: "<h1>Stores that need attention</h1>\n<p class=paths>\(summary)</p>\n",
            main: groups.isEmpty ? "<p class=note>no store has a warning</p>\n" : Markup(groups.map(section))
        ).html
    }

    private func section(_ group: Group) -> Markup {
        let isSame = group.what != nil
        let rows = group.members.map { member in
            """
            <tr><td>\(member.machine)</td><td><code>\(member.store)</code></td><td>\(member.since ?? "")</td>\
            \(isSame ? "" : "<td>\(member.what)</td>" as Markup)</tr>

            """ as Markup
        }
        let isCritical = group.severity == .critical
        return """
            <section>
            <h2><span class="mark \(isCritical ? "critical" : "warned")">\(isCritical ? "critical" : "warning")</span> \
            \(group.name), \(counted(group.members.count, "store"))</h2>
            \(group.what.map { "<p>\($0)</p>\n" as Markup } ?? "")\(group.advice.map { "<p class=note>\($0)</p>\n" as Markup } ?? "")\
            <div class=scroll><table class=fleet>
            <thead><tr><th>machine</th><th>store</th><th>since</th>\(isSame ? "" : "<th>what is wrong</th>" as Markup)</tr></thead>
            <tbody>
            \(rows)</tbody>
            </table></div>
            </section>

            """
    }

    private static let style: Markup = """
        .mark { font-size: .8em; padding: .1em .5em; border-radius: 4px; border: 1px solid; }
        .critical { color: var(--removed); } .warned { color: var(--changed, inherit); }
        .scroll { overflow-x: auto; } .fleet { width: 100%; } .fleet td, .fleet th { text-align: left; vertical-align: top; }
        .fleet td:nth-child(-n+3) { white-space: nowrap; } .fleet td:nth-child(4) { min-width: 16rem; }

        """
}
