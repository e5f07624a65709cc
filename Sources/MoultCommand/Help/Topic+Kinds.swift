extension Topic {
    static let kinds = Topic(
        name: "kinds", summary: "the four kinds of databases, and who writes to them",
        text: [
            "Every database of a release has a kind. It says who writes to the file, and what an update does with it.",
            .list([
                (
                    "reference",
                    """
                    Only releases change it. The app opens it read-only. All read-only databases of a store switch to \
                    a new release together, and the old files are kept for rollback.
                    """
                ),
                (
                    "shared",
                    """
                    Releases and the app write to it. A release replaces the content and carries over the rows that \
                    "preserve" in the manifest selects; every draft of a shared database has this field ([] selects no row). A row that violates a constraint of the new table stops \
                    the update, or goes to the table moult_rejected if the manifest has "onReject": "table". Other rows \
                    that the app wrote go to quarantine, with a warning; if anything else is dropped, the complete old database does.
                    """
                ),
                (
                    "user",
                    """
                    Only the app or the user writes to it. The first release creates it from a template, and migrations change \
                    its schema. Updates do not replace or delete it. If a migration changes or drops values, a complete \
                    copy goes to quarantine first. A release is refused if the database lacks a table or column of the \
                    template and no migration adds it, unless the manifest has "schema": "app".
                    """
                ),
                (
                    "cache",
                    """
                    The app writes to it and can recreate all of it. A cache whose schema matches the release is kept. \
                    If a cache has another schema or does not open, its content goes to quarantine, and an empty \
                    one replaces it.
                    """
                ),
            ]),
            """
            A reference database with "place": "in-place" stays where it is, for instance among the resources of an \
            app. It is attached there and never copied, so the first start takes the same time for a file of any size.
            """,
            """
            If a file already exists at the path of a reference, shared or cache database, the first release keeps it in \
            quarantine. To restore it: moult quarantine --restore NAME. A file at the path of a user database \
            stays in use. A release cannot change a user database to another kind, or a \
            shared one to reference or cache, unless the operator allows it with --take-over NAME.
            """,
            """
            Updates are refused if a user or shared database is missing, because its disk may not be mounted. To \
            replace a database that is missing or does not open, use `moult reset`. It sets user data aside only with \
            --set-user-data-aside, and deletes nothing. To list and restore old databases, use `moult quarantine`.
            """,
            """
            Use separate files for data that can be recreated and data that cannot be. docs/which-kind.md \
            helps you choose, and explains how to split a file that has both. In the Debian package, that page is \
            /usr/share/doc/moult/docs/which-kind.md.
            """,
        ])
}
