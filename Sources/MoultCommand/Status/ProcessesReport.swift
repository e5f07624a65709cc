internal import Moult
internal import MoultBasics
internal import MoultFiles

/// The output of `moult status --processes`: the processes that use the store, and the files that each of them has open.
struct ProcessesReport: Report {
    let root: String
    let holders: Holders

    func write(to page: inout Page) {
        if holders.holders.isEmpty {
            page.line(
                holders.unseen > 0
                    ? "no process that this user may inspect is using \(root)" : "no process is using \(root)")
        } else {
            page.table(table(.now))
        }
        guard holders.unseen > 0 else { return }
        page.line(
            "\("this user cannot see the leases and open files of \(counted(holders.unseen, "process", "processes")) of other users; run the command as root", .warning)"
        )
    }

    private func table(_ now: Timestamp) -> Table {
        var table = Table(.right, .left, .left, .left, .left)
        table.header("pid", "started", "does", "holds", "command")
        for holder in holders.holders {
            for (index, use) in holder.uses.enumerated() {
                let started = holder.process.started?.relative(to: now) ?? "-"
                let isFirst = index == 0
                table.row(
                    isFirst ? "\(holder.process.pid)" : "", isFirst ? "\(started)" : "", "\(use.how.rawValue)",
                    "\(use.words)", isFirst ? "\(holder.process.command)" : "")
            }
        }
        return table
    }

    var json: JSON {
        .record([
            "store": root,
            "holders": holders.holders.map { holder in
                JSON.record([
                    "pid": holder.process.pid, "command": holder.process.command,
                    "started": holder.process.started?.description, "uses": holder.uses.map(\.json),
                ])
            }, "unseen": holders.unseen,
        ])
    }
}

extension Holders.Use {
    fileprivate var words: String {
        switch what {
        case .lock: "the store's lock"
        case .generation: "generation \(name)"
        case .database: name + (generation.map { " of \($0)" } ?? "")
        case .gone: "\(name): replaced, still read"
        }
    }

    fileprivate var json: JSON {
        .record(["what": what.rawValue, "name": name, "generation": generation, "path": path, "how": how.rawValue])
    }
}
