extension Topic {
    static let steps = Topic(
        name: "steps", summary: "the phases of an update, and how to add your own steps",
        text: [
            "An update has five phases, each with a built-in step:",
            .list([
                ("check", "Checks product, version, sequence and requirements of the release."),
                ("delete", "Takes the old files out of service. They are kept for rollback."),
                ("copy", "Puts the new files in place, and carries over the rows to preserve."),
                ("attach", "Checks that all databases open on one connection, under their names."),
                ("verify", "Checks that the app's paths lead to the verified files."),
            ]),
            """
            The phases run twice. The first pass stages and verifies everything next to the store's files; no program \
            sees it. Then one record on disk, the decision, starts the second pass, which makes the changes. If one of \
            them fails, all are undone.
            """,
            """
            The bundle is unpacked between check and delete, so the bundle of a release that check refuses is not \
            unpacked. To see how long each part took: moult history --verbose
            """,
            "A manifest can run steps before or after a built-in step:",
            .literal(#""steps": [ { "step": "acme.reindex", "after": "copy", "with": { } } ]"#),
            """
            Such a step is a program that implements the protocol in docs/step-protocol.md and is named in moult.json. \
            moult runs it only after moult steps trust, and only while the program is unchanged. It is sandboxed: \
            while planning it cannot write at all, and later only where both moult.json and its plan allow it.
            """,
            "To list the available steps: moult steps. A release that needs any other step is refused.",
        ])
}
