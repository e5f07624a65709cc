extension Topic {
    static let patches = Topic(
        name: "patches", summary: "how a store fetches only what a release changes",
        text: [
            """
            A new release mostly holds what the one before held. A patch has only the difference: a store that has the \
            older release fetches it instead of the bundle, and comes to the very same bytes.
            """,
            .heading("For the publisher"),
            """
            Name an older release when you pack; a patch that would not be clearly smaller than the bundle is left \
            out. Publishing brings patches into the feed with the rest.
            """,
            .literal(
                """
                moult pack draft.json --delta-from releases/dailyvalue-2.0.0.json
                moult publish public releases/dailyvalue-2.1.0.json --key release.key
                """),
            """
            Patches are small if a database is changed in place instead of rebuilt; moult delta says how small, \
            without any release.
            """,
            .heading("For the store"),
            """
            Nothing needs to be set. moult plan says which way is taken: that by the fewest bytes. Every byte of the \
            result is digested before anything else is done with it, and whatever does not fit is a warning: then the \
            release is installed by another patch, or else from its bundle.
            """,
        ])
}
