internal import Moult
internal import MoultBasics
internal import MoultFiles
internal import MoultPublish

/// The history as an HTML page, which shows what each update spent its time on.
struct HistoryPage {
    let product: String
    let store: String
    /// The entries, newest first.
    let entries: [History.Entry]

    var html: String {
        WholePage(
            title: "\(product): history", style: Self.style,
            header: "<h1>\(product)</h1>\n<p class=paths>store <code>\(store)</code></p>\n",
            main: entries.isEmpty
                ? "<p class=note>this store has no history yet</p>\n" : "\(tiles)\(columns)\(legend)\(sections)"
        ).html
    }

    private var failures: Int { entries.count { $0.isFailure } }

    private var tiles: Markup {
        let times = entries.compactMap(\.milliseconds).sorted()
        func tile(_ value: String, _ what: String, style: String = "") -> Markup {
            "<li class=\"\(style)\"><b>\(value)</b> \(what)</li>\n"
        }
        func time(_ milliseconds: Int?) -> String {
            milliseconds.map { durationText(seconds: Double($0) / 1000) } ?? "-"
        }
        return """
            <ul class=tiles>
            \(tile("\(entries.count)", entries.count == 1 ? "attempt" : "attempts"))\
            \(tile("\(failures)", "failed", style: failures == 0 ? "none" : "removed"))\
            \(tile(time(times.isEmpty ? nil : times[times.count / 2]), "median"))\
            \(tile(time(times.last), "longest"))</ul>

            """
    }

    /// A chart of the duration of each update, oldest on the left, in which unusually long ones stand out.
    private var columns: Markup {
        let longest = max(1, entries.compactMap(\.milliseconds).max() ?? 1)
        let ends = [entries.last, entries.first].map { $0.map { "\($0.time)" } ?? "" }
        let columns = entries.reversed().enumerated().map { index, entry in
            let share = max(1, (entry.milliseconds ?? 0) * 100 / longest)
            let words = "\(entry.time): \(entry.sentence)"
            let kind = Self.kind(of: entry)
            return """
                <a class="k\(plain: kind)\(entry.isFailure ? " removed" : "")" href="#u\(plain: entries.count - 1 - index)" title="\(words)" aria-label="\(words)">\
                <span style="height:\(plain: share)%">\(entry.isFailure ? "×" : "")</span></a>

                """ as Markup
        }
        let kinds = Set(entries.map(Self.kind)).sorted().map { kind in
            let name = kind < Self.kinds.count ? Self.kinds[kind].name : "other commands"
            return "<span><i class=k\(plain: kind)></i>\(name)</span>\n" as Markup
        }
        let failed: Markup = failures > 0 ? "<span><i class=removed></i>× failed</span>\n" : ""
        return """
            <section>
            <h2>Duration of each attempt</h2>
            <p class=axis>\(durationText(seconds: Double(longest) / 1000))</p>
            <div class=columns>
            \(columns)</div>
            <p class=axis><span>0, from \(ends[0])</span><span>to \(ends[1])</span></p>
            <p class=legend>
            \(kinds)\(failed)</p>
            </section>

            """
    }

    /// What the history records, by the beginning of its action; each has its own colour and pattern.
    private static let kinds = [
        (action: "update", name: "updates"), (action: "rollback", name: "rollbacks"), (action: "reset", name: "resets"),
        (action: "restore", name: "restores"),
    ]

    private static func kind(of entry: History.Entry) -> Int {
        kinds.firstIndex { entry.action.hasPrefix($0.action) } ?? kinds.count
    }

    private var legend: Markup {
        var names: [String] = []
        for part in entries.flatMap(\.parts) where !names.contains(part.name) { names.append(part.name) }
        if names.isEmpty { return "" }
        let items = names.map { "<span><i class=\(Self.colour(of: $0))></i>\($0)</span>\n" as Markup }
        return "<p class=legend>\n\(items)</p>\n"
    }

    private var sections: [Markup] { entries.enumerated().map { section($1, number: $0) } }

    private func section(_ entry: History.Entry, number: Int) -> Markup {
        let badge: Markup = entry.isFailure ? "<span class=\"badge removed\">\(entry.outcome.rawValue)</span>" : ""
        let reason: Markup = entry.reason.map { "<p class=note>\($0)</p>\n" } ?? ""
        let remedy: Markup = entry.remedy.map { "<p class=note>\($0)</p>\n" } ?? ""
        return """
            <section id=u\(plain: number)>
            <h2>\(entry.what.replacing(" -> ", with: " → ")) \(badge)</h2>
            <p class=paths><time>\(entry.time.description)</time>, \(entry.ending)</p>
            \(reason)\(remedy)\(bar(entry))\(table(entry))</section>

            """
    }

    /// Draws the parts of an entry. The bar's full width is the entry's own duration, independent of other entries.
    private func bar(_ entry: History.Entry) -> Markup {
        if entry.parts.isEmpty { return "" }
        let parts = entry.parts.enumerated().map { index, part in
            let isNewPass = index > 0 && entry.parts[index - 1].pass != part.pass
            return """
                <i class="\(Self.colour(of: part.name))\(isNewPass ? " next" : "")" style="flex-grow:\(plain: max(1, part.microseconds))" \
                title="\(part.pass): \(part.name), \(part.text)"></i>
                """ as Markup
        }
        let longest = entry.parts.sorted { $0.microseconds > $1.microseconds }.prefix(3)
        let words = longest.map { "\($0.name) \($0.text)" }.joined(separator: ", ")
        return "<div class=time aria-hidden=true>\(parts)</div>\n<p class=paths>longest parts: \(words)</p>\n"
    }

    private func table(_ entry: History.Entry) -> Markup {
        if entry.parts.isEmpty { return "" }
        let all = entry.parts.reduce(0) { $0 + $1.microseconds }
        let rows = entry.parts.map { part in
            """
            <tr><td><i class=\(Self.colour(of: part.name))></i> \(part.name)<td>\(part.pass)\
            <td class=n>\(part.text)<td class=n>\(plain: part.microseconds * 100 / max(1, all)) %</tr>

            """ as Markup
        }
        return """
            <details>
            <summary>Parts</summary>
            <table class=parts>
            <thead><tr><th>part<th>pass<th class=n>time<th class=n>share</tr></thead>
            <tbody>
            \(rows)</tbody>
            </table>
            </details>

            """
    }

    /// Returns the colour of a part. Each built-in part has its own colour; external steps share one.
    private static func colour(of part: String) -> String {
        let known = [
            "version-check", "unpack", "delete", "copy", "attach", "verify", "seal", "consumers", "decide",
            "finish", "fetch",
        ]
        return "c\(known.firstIndex(of: part) ?? known.count)"
    }

    /// The style of the charts, in addition to the style of every page.
    static let style: Markup = """
        :root { --c0: #8a94a0; --c1: #0b6bcb; --c2: #b3372f; --c3: #1a7f5a; --c4: #7a5af0; --c5: #c77700; --c6: #5b6f00;
          --c7: #c2388f; --c8: #12838f; --c9: #55606c; --c10: #8f5a3c;
          --c11: #6b7a1f; }
        @media (prefers-color-scheme: dark) { :root { --c0: #7d8590; --c1: #4aa3ff; --c2: #ff7b72; --c3: #3fc492;
          --c4: #a58bff; --c5: #f0a63a; --c6: #a9c23f; --c7: #f778ba; --c8: #46c7d4; --c9: #a3adb8; --c10: #d09a78;
          --c11: #c3cf6e; } }
        .c0 { background: var(--c0); } .c1 { background: var(--c1); } .c2 { background: var(--c2); }
        .c3 { background: var(--c3); } .c4 { background: var(--c4); } .c5 { background: var(--c5); }
        .c6 { background: var(--c6); } .c7 { background: var(--c7); } .c8 { background: var(--c8); }
        .c9 { background: var(--c9); } .c10 { background: var(--c10); } .c11 { background: var(--c11); }
        .columns { display: flex; align-items: flex-end; gap: 2px; height: 9rem; margin-top: .9rem; overflow-x: auto;
          border-bottom: 1px solid var(--line); }
        .columns a { flex: 1 0 6px; max-width: 2.5rem; height: 100%; display: flex; align-items: flex-end;
          text-decoration: none; }
        .columns span { width: 100%; min-height: 2px; border-radius: 3px 3px 0 0; background: var(--p2);
          color: var(--card); text-align: center; overflow: visible; line-height: 1; }
        .columns .k0 span, .legend .k0 { background: var(--c1); }
        .columns .k1 span, .legend .k1 { background: repeating-linear-gradient(45deg, var(--c5) 0 3px, transparent 3px 6px), var(--card);
          border: 1px solid var(--c5); }
        .columns .k2 span, .legend .k2 { background: repeating-linear-gradient(0deg, var(--c4) 0 2px, transparent 2px 4px), var(--card);
          border: 1px solid var(--c4); }
        .columns .k3 span, .legend .k3 { background: repeating-linear-gradient(90deg, var(--c3) 0 2px, transparent 2px 4px), var(--card);
          border: 1px solid var(--c3); }
        .columns .k4 span, .legend .k4 { background: var(--c0); }
        .axis { display: flex; justify-content: space-between; margin: .3rem 0; font-size: .8rem; color: var(--dim); }
        .columns .removed span, .legend .removed { background: var(--removed); border: 0; }
        .time { display: flex; height: 1rem; margin: .8rem 0 .2rem; border-radius: 4px; overflow: hidden; }
        .time i { flex-basis: 0; min-width: 1px; }
        .time .next { margin-left: 4px; }
        .parts { width: auto; min-width: 60%; }
        .parts i { display: inline-block; width: .75em; height: .75em; border-radius: 2px; margin-right: .3em; }
        .legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; font-size: .8rem; color: var(--dim); }
        .legend i { display: inline-block; width: .75em; height: .75em; border-radius: 2px; margin-right: .3em; }
        section { scroll-margin-top: .5rem; }

        """
}

extension History.Entry {
    fileprivate var isFailure: Bool { outcome != .done && outcome != .finished }
}
