package import MoultBasics

extension ReleaseDraft {
    /// Returns the text of a draft for the publisher to edit, with a comment for each field that most drafts have.
    package static func commented(_ draft: JSON, named name: String) -> String {
        var lines = [
            "// The draft of a release. Pack it with: \(shellLine(["moult", "pack", name]))",
            "// For all fields of a draft: moult help draft",
        ]
        var member = ""
        var said: Set<String> = []
        for line in draft.pretty.split(separator: "\n", omittingEmptySubsequences: false) {
            let indent = line.prefix { $0 == " " }
            let words = line.dropFirst(indent.count).split(separator: "\"")
            var comment: String?
            switch (indent.count, words.first.map { String($0) }) {
            case (2, let field?):
                member = field
                comment = ofRelease[field]
            case (6, let field?) where member == "databases":
                comment =
                    ofDatabase[field]
                    ?? (field == "kind" ? words.dropFirst(2).first.flatMap { ofKind[String($0)] } : nil)
            default: break
            }
            if let comment, said.insert(comment).inserted { lines.append("\(indent)// \(comment)") }
            lines.append(String(line))
        }
        return lines.joined(separator: "\n")
    }

    private static let ofRelease = [
        "product": "A store installs releases of one product only.",
        "version":
            "Increase the version for each release, and the sequence, too, if the draft has one: without it, `moult pack` uses the next.",
        "databases": "Each database: its kind, and the file to pack.",
        "checks": "A release is refused if one of these queries returns a different result.",
        "budget": "A release is refused if a table loses or gains more rows than allowed here.",
        "requires": "The versions of the app, moult and the installed release that this release requires.",
        "steps": "Additional steps of each update.",
    ]

    private static let ofDatabase = [
        "source": "The database file, relative to this draft. `moult pack` copies it and does not change it.",
        "path": "The path of the database in the store.",
        "member": "The name of the file in the bundle.",
        "preserve": "The app's rows that survive a release.",
        "verify": "How thoroughly each store checks the file.",
    ]

    private static let ofKind = [
        "reference": "reference: only releases change it. For the other kinds: moult help kinds",
        "shared":
            "shared: the app writes to it, too. \"preserve\" names the rows that survive a release; [] means none.",
        "user": "user: belongs to the user. It is installed once; releases change only its schema, by \"migrations\".",
        "cache": "cache: the app can recreate it. It is replaced when its schema changes.",
    ]
}
