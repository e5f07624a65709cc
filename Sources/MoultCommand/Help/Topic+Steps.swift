extension Topic {
    static let steps = Topic(
        name: "steps", summary: "the phases of an update, and how to add your own steps",
        text: [
            "An update has five phases, each with a built-in step:",
            .list([
                ("check", "Checks product, version, sequence and requirements of the release."),
                ("delete", "Takes the old files out of service. They are kept for rollback."),
                ("copy", "Puts the new files in place, and carries over the rows to preserve."),
                ("attach", "Checks that the databases of each group open on one connection, under their names."),
                ("verify", "Checks digests, identity, health and golden queries, then the files at the app's paths."),
            ]),
            """
            moult goes through the phases twice. The first pass stages and verifies all changes, on the store's file \
            system; apps do not see them yet. Then moult records on disk the decision to apply the update, and the \
            second pass makes the changes. If a change fails, moult undoes all of them; once a migration or a live \
            replacement has been committed, the next command finishes the update instead.
            """,
            """
            moult unpacks the bundle between check and delete, so it does not unpack the bundle of a release that \
            check refuses. To see how long each part took: moult history --verbose
            """,
            "A manifest can add steps before or after a built-in step:",
            .literal(#""steps": [ { "step": "acme.reindex", "after": "copy", "with": { } } ]"#),
            """
            Such a step is built into the command from a Swift package, or it is a program that implements the protocol \
            in docs/write-a-step.md and is configured in moult.json. moult runs a program only if the operator has \
            trusted it with `moult steps trust`, and only while it is unchanged. The program is sandboxed: during \
            planning it cannot write at all, and later it can write only where both moult.json and its plan allow it.
            """,
            "To list the available steps: moult steps. A release that needs another step is refused.",
        ])
}
