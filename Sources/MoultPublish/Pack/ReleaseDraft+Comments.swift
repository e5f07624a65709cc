package import MoultBasics

extension ReleaseDraft {
    /// A draft that a person can continue with: with a comment for each field that most drafts have.
    package static func commented(_ draft: JSON, named name: String) -> String {
        var lines = [
            "// The draft of a release. Pack it with: \(shellLine(["moult", "pack", name]))",
            "// The other fields that a draft may have: moult help draft",
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
        "version": "Raise version and sequence for each release. Without a sequence, pack counts on.",
        "databases": "Each database: its kind, and the file to pack.",
        "checks": "A release is refused if one of these queries has another answer.",
        "budget": "A release is refused if a table has lost or gained more rows than this.",
        "requires": "What must be there before this release can be installed.",
        "steps": "What else is done at each update.",
    ]

    private static let ofDatabase = [
        "source": "The database file, relative to this draft. It is copied, and never changed.",
        "path": "Its place in the store.",
        "member": "Its name in the bundle.",
        "preserve": "The app's rows that survive a release.",
        "verify": "How deeply each store checks the file.",
        "replace": "Whether the file is exchanged, or written to while programs have it open.",
    ]

    private static let ofKind = [
        "reference": "reference: only releases change it. The other kinds: moult help kinds",
        "shared": "shared: the app writes to it, too. \"preserve\" names the rows that survive a release.",
        "user": "user: the user's own. It is installed once; releases change only its schema, by \"migrations\".",
        "cache": "cache: the app can make it again. It is emptied when its schema changes.",
    ]
}
