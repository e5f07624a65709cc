internal import MoultBasics
internal import MoultPublish
internal import StepKit

extension PackChanges {
    /// Writes the changes from the previous release, below the list of packed databases.
    func write(to page: inout Page, bundleSize: Int) {
        page.line()
        page.line("\("changes from \(before)", .heading)")
        for entry in diff.databases {
            if case .compared(let database) = entry {
                for change in database.schema {
                    page.wrapped("\(change.change.sign) \(database.name): \(change.words)", indent: 2)
                }
            }
        }
        diff.writeSummary(to: &page)
        for migration in migrations {
            page.wrapped("\("~", .changed) \(migration.database): stores run \(migration.member)", indent: 2)
        }
        for table in unpreserved {
            page.wrapped(
                "\("!", .warning) \(table.database): rows that apps add to \(table.table) are not preserved", indent: 2)
        }
        if let bundleSizeBefore, bundleSize > 0 {
            let patch = patchSize.map { ", with patches \(ByteCount($0))" } ?? ""
            page.line("  bundle: \(ByteCount(bundleSizeBefore)) -> \(ByteCount(bundleSize))\(patch)")
        }
    }

    var json: JSON {
        .record([
            "from": before.description, "diff": diff.json,
            "migrations": migrations.map { JSON.record(["database": $0.database, "member": $0.member]) },
            "unpreserved": unpreserved.map { JSON.record(["database": $0.database, "table": $0.table]) },
            "bundleSizeBefore": bundleSizeBefore, "patchSize": patchSize, "milliseconds": milliseconds,
        ])
    }
}
