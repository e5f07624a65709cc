internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultStore

/// The status of a single file replaced by `moult replace`, in the terms of that verb: files and times.
extension StatusReport {
    /// A kept copy of the file's old content, which can be restored.
    struct Copy {
        let generation: String
        let size: Int
        /// When the content was replaced; nil if that was not recorded.
        let time: Timestamp?
    }

    /// Returns the copies in the store of a single file, newest first; empty in other stores.
    static func copies(in status: Status) throws -> [Copy] {
        if status.file == nil { return [] }
        return []
    }

    func writeFile(to page: inout Page) {
        let (path, file) = (status.file ?? "", status.databases.first)
        let name = Files.name(of: path)
        let current = copies.firstIndex { $0.generation == status.current?.name }
        func time(_ time: Timestamp?) -> String { time.map { "\($0.text(for: page.terminal))" } ?? "an unknown time" }
        if let current {
            page.line("\("\(name): as it was at \(time(copies[current].time)), before it was replaced", .heading)")
        } else {
            page.line("\("\(name): replaced at \(time(status.since))", .heading)")
        }
        var table = Table(.left, .left, indent: 2)
        table.row("file", "\(path)\(file?.size.map { ", \(ByteCount($0))" } ?? "")")
        if let file {
            let note = file.note.map { ": \($0)" } ?? ""
            let style: Style? = file.state.isFault ? .bad : nil
            table.row("content", "\(words(file, page.terminal).plain + note, style)")
        }
        table.row("store", "\(status.root)")
        table.row("guard", "\(status.protection)")
        if let last = status.last { table.row("last", attempt(last, page.terminal)) }
        if let remedy = status.failure?.remedy(of: status.file) { table.row("remedy", "\(remedy)") }
        page.table(table)
        unfinished(&page)
        page.holds(status.holds, storeWords: storeWords)
        for line in remedies { page.line(line) }
        writeCopies(
            &page, older: current.map { Array(copies[($0 + 1)...]) } ?? copies, path,
            isMissing: file?.state == .missing)
    }

    private func writeCopies(_ page: inout Page, older: [Copy], _ path: String, isMissing: Bool) {
        guard !older.isEmpty else { return page.line("no older copy is kept") }
        page.heading("Old copies, each from before a replacement")
        var table = Table(.left, .right, indent: 2)
        for copy in older {
            table.row(
                "\(copy.time.map { "\($0.text(for: page.terminal))" } ?? copy.generation)", "\(ByteCount(copy.size))")
        }
        page.table(table)
        // `--undo` replaces only a file that exists; its error for a missing file has the command that copies the newest copy.
        if isMissing || !status.canRollBack { return }
        // It also refuses a damaged file; the line above has the command that sets it aside.
        let isDamaged = status.databases.first?.state.isFault ?? false
        page.line(
            "\(isDamaged ? "then " : "")restore the newest with: \(shellLine(["moult", "replace", "--undo", path]), .heading)"
        )
    }
}
