extension Topic {
    static let kinds = Topic(
        name: "kinds", summary: "the four kinds of databases, and who may write to them",
        text: [
            """
            Every database in a manifest has a kind. It says who writes to the file, and from that follows what an \
            update may do to it.
            """,
            .list([
                (
                    "reference",
                    """
                    Only the publisher writes. Each release brings the whole file; it is sealed, kept beside the one \
                    before, and switched with all the others by one rename.
                    """
                ),
                (
                    "shared",
                    """
                    The publisher ships it and the app writes to it. A release replaces the content and carries over \
                    the rows that the manifest says to preserve.
                    """
                ),
                (
                    "user",
                    """
                    The user's own. It is made from a template if it is missing, brought to a newer schema by the \
                    release's migrations, and never replaced or deleted.
                    """
                ),
                (
                    "cache",
                    """
                    Anyone writes, and all of it can be made again. One whose schema is that of the release stays; \
                    any other, and one that does not open, goes to quarantine, and a fresh one takes its place.
                    """
                ),
            ]),
            """
            A reference database can also stay where it lies, for instance among an app's own files: with "place": \
            "in-place" it is attached there and never copied, so that the first start takes the same time at any \
            size.
            """,
            """
            A database that will not load is begun anew with "moult reset". What people wrote is set aside only when \
            you say so, and nothing of it is deleted.
            """,
            """
            What can be made again and what cannot belong in different files: then an update cannot lose what a user \
            has written.
            """,
        ])
}
