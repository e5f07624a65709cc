internal import MoultBasics
internal import MoultPublish
internal import MoultRows
internal import MoultSQLite
internal import StepKit

struct InspectReport: Report {
    let inspection: Inspection
    let showsSchema: Bool

    func write(to page: inout Page) {
        if let manifest = inspection.manifest { write(manifest, to: &page) }
        for note in inspection.notes { page.wrapped("\("note:", .warning) \(note)") }
        for (index, entry) in inspection.databases.enumerated() {
            if index > 0 || inspection.manifest != nil { page.line() }
            write(entry, to: &page)
        }
    }

    private func write(_ manifest: Manifest, to page: inout Page) {
        page.line("\("\(manifest.product) \(manifest.version)", .heading)")
        var facts = Table(.left, .left, indent: 2)
        facts.row("\(inspection.kind.rawValue)", "\(inspection.path)")
        facts.row("sequence", "\(manifest.sequence)")
        if let digest = inspection.manifestDigest { facts.row("manifest", "sha256 \(digest)") }
        if let created = manifest.created { facts.row("created", "\(created.text(for: page.terminal))") }
        if let expires = manifest.expires { facts.row("expires", "\(expires.text(for: page.terminal))") }
        let requires = [
            ("app", manifest.requires.app), ("moult", manifest.requires.moult), ("from", manifest.requires.from),
        ].compactMap { name, range in range.map { "\(name) \($0)" } }
        if !requires.isEmpty { facts.row("requires", "\(requires.joined(separator: ", "))") }
        if let bundle = manifest.bundle {
            facts.row("bundle", "\(bundle.file), \(ByteCount(bundle.size)), sha256 \(bundle.sha256)")
        }
        for patch in manifest.patches {
            facts.row("patch", "\(patch.member) from \(patch.from): \(patch.file), \(ByteCount(patch.size))")
        }
        for check in manifest.checks { facts.row("check", "\(check.on): \(check.sql) returns \(check.expect)") }
        for step in manifest.steps { facts.row("step", "\(step.step) \(step.when.rawValue) \(step.phase.rawValue)") }
        page.table(facts)
    }

    private func write(_ entry: Inspection.Entry, to page: inout Page) {
        let kind = entry.declared.map { " (\($0.kind.rawValue)\($0.place == .inPlace ? ", in place" : ""))" } ?? ""
        page.line("\(entry.name, .heading)\(kind)")
        guard let found = entry.found else {
            if let fault = entry.fault { return page.line("  \("\(page.terminal.symbols.cross) \(fault)", .bad)") }
            return page.line("  its file is not available")
        }
        page.table(facts(found, isHere: inspection.hasFile(of: entry)))
        if !found.tables.isEmpty { page.table(tables(found)) }
        for item in found.identity.shape.items where item.kind != "virtual table" {
            page.wrapped("\(item.kind) \(item.name)\(showsSchema ? ": \(item.definition)" : "")", indent: 2)
        }
        if showsSchema {
            page.line()
            for line in found.identity.shape.canonicalText.split(separator: "\n") { page.line("  \(String(line))") }
        }
        for why in found.notChecked { page.wrapped("not checked: \(why)", indent: 2) }
        for finding in found.findings { page.wrapped("\(page.cross) \(finding)", indent: 2) }
    }

    private func facts(_ found: DatabaseInspection, isHere: Bool) -> Table {
        let identity = found.identity
        var facts = Table(.left, .left, indent: 2)
        if isHere { facts.row("file", "\(found.path)") }
        let free = found.freePages > 0 ? ", \(found.freePages) of them free" : ""
        facts.row("size", "\(ByteCount(found.size)), \(identity.pageCount) pages of \(identity.pageSize)\(free)")
        facts.row("sha256", "\(found.sha256)")
        facts.row("application_id", "\(identity.applicationID)")
        facts.row("user_version", "\(identity.userVersion)")
        facts.row("schema", "\(found.schemaDigest)")
        facts.row("form", "\(identity.encoding), \(found.isWAL ? "WAL mode" : "rollback mode")")
        for sidecar in found.sidecars { facts.row("sidecar", "\(sidecar.name), \(ByteCount(sidecar.size))") }
        return facts
    }

    private func tables(_ found: DatabaseInspection) -> Table {
        var table = Table(.left, .right, .left, indent: 2)
        table.header("table", "rows", "columns")
        for entry in found.tables {
            let columns = entry.columns.joined(separator: ", ")
            table.row(
                "\(entry.name)\(entry.isVirtual ? " (virtual)" : "")", "\(entry.rows.map(String.init) ?? "?")",
                "\(entry.obstacle ?? columns)")
        }
        return table
    }

    var json: JSON { inspection.json }
}
