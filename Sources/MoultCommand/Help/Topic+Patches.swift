extension Topic {
    static let patches = Topic(
        name: "patches", summary: "how stores download only what changed in a release",
        text: [
            """
            A patch contains the differences between two releases. A store that has the older release downloads the \
            patch instead of the bundle and produces exactly the same files.
            """,
            .heading("Publish"),
            .literal(
                """
                moult pack draft.json
                moult publish public releases/dailyvalue-2.1.0.json --key release.key
                """),
            """
            `moult pack` makes patches from the newest releases in the output directory, and `moult publish` keeps them in the feed \
            as long as the release that they start from is in it.
            """,
            """
            `moult pack` leaves out a patch that would not be clearly smaller than the bundle. Patches are smallest if a \
            database is changed in place instead of rebuilt; `moult delta` shows the size without packing a release.
            """,
            .heading("Install"),
            """
            Stores need no configuration: they choose the smallest download, which `moult plan` shows. Every file is verified \
            before it is used. If a patch does not work, moult prints a warning and uses another patch or the bundle.
            """,
        ])
}
