extension Topic {
    static let steps = Topic(
        name: "steps", summary: "what an update does, in which order, and where your own steps run",
        text: [
            "An update goes through five phases, always in this order. Each has a step that is built in:",
            .list([
                ("check", "May this release be installed? Version, product, sequence, requirements of the release."),
                ("delete", "Takes the old files out of service. Nothing is destroyed: they are kept for rollback."),
                ("copy", "Puts the new files in place, with the rows that must be preserved."),
                ("attach", "Do all databases open together on one connection, under the names they shall have?"),
                ("verify", "Is what is in service the very content that was proven?"),
            ]),
            """
            The phases come twice. First everything is prepared: staged beside the store's files and proven there, \
            which may take long and which no program sees. Then comes the decision, one record on disk. Then the effects \
            are done, which takes a moment; if one fails, all of them are undone.
            """,
            """
            Between check and delete the bundle is unpacked, so that what check refuses costs nothing. moult history \
            --verbose says how long each part took.
            """,
            """
            A manifest may put steps of others before or after a built-in one, by the name under which this command \
            has them, or under which moult.json names a program:
            """,
            .literal(#""steps": [ { "step": "acme.reindex", "after": "copy", "with": { } } ]"#),
            "moult steps lists the installed steps. A release that names any other step is refused.",
            """
            A program is a step if it speaks the protocol of docs/step-protocol.md. It runs only while it is what moult \
            steps trust has pinned, and confined: its plan can change nothing, and what it does can write only where \
            moult.json lets it and its plan said so.
            """,
        ])
}
