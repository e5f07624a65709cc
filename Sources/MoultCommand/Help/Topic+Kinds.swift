extension Topic {
    static let kinds = Topic(
        name: "kinds", summary: "the four kinds of databases, and who may write to them",
        text: [
            """
            Every database in a manifest has a kind. It says who writes to the file, and so what an update may do to it.
            """,
            .list([
                (
                    "reference",
                    """
                    Only the publisher writes. Each release has the whole file. It is read-only, kept beside the \
                    files of older releases, and switched together with all the others by one rename.
                    """
                ),
                (
                    "shared",
                    """
                    The publisher ships it and the app writes to it. A release replaces the content and carries over \
                    the rows that "preserve" in the manifest selects. Rows that do not fit go to the table \
                    moult_rejected. If anything else that the app wrote is dropped, the complete old database goes to \
                    quarantine.
                    """
                ),
                (
                    "user",
                    """
                    Only the user writes. The first release creates it from a template; migrations bring it to a \
                    newer schema. It is never replaced or deleted. If a migration changes or drops values, a \
                    complete copy from before goes to quarantine. A release is refused if the database lacks a table or \
                    column of its template and no migration adds it; with "schema": "app" the app adds it by itself.
                    """
                ),
                (
                    "cache",
                    """
                    Anyone writes, and all of it can be made again. A cache with the schema of the release stays. \
                    One with another schema, or one that does not open, goes to quarantine, and an empty one \
                    replaces it.
                    """
                ),
            ]),
            """
            A reference database can also stay at its place, for instance among an app's own files: with "place": \
            "in-place" it is attached there and never copied, so that the first start takes the same time at any \
            size.
            """,
            """
            A file that was at a database's path before moult is kept as generation 0+adopted before a release \
            replaces it; "moult rollback --to 0+adopted" brings it back. A release cannot change the kind of a user's \
            database: the operator must allow that with --take-over NAME.
            """,
            """
            If a user or shared database is missing, updates are refused, because a disk that is not mounted looks \
            the same. "moult reset" replaces a database that does not load or is missing; users' data is set aside \
            only with --set-user-data-aside, and none of it is deleted. "moult quarantine" lists and restores old \
            databases.
            """,
            """
            Put data that can be made again and data that cannot into different files. docs/which-kind.md, installed in \
            /usr/share/doc/moult, helps you to choose, and says what to do with a file that has both.
            """,
        ])
}
