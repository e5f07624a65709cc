extension Topic {
    static let plans = Topic(
        name: "plans", summary: "how to preview an update, and how to apply exactly what was approved",
        text: [
            "A plan lists the changes that a release would make to a store. Making a plan changes nothing.",
            .literal("moult plan releases/dailyvalue-2.1.0.json\nmoult apply releases/dailyvalue-2.1.0.json"),
            "`moult plan` exits with 0 if nothing would change, and with 2 if the store would change. Each line has a mark:",
            .list([
                ("+", "is added"),
                ("-", "is removed (and kept for rollback if the line says so)"),
                ("~", "is changed or replaced"),
                ("=", "stays as it is"),
            ]),
            "A line without a mark is a check that changes nothing.",
            "If one operator approves a plan and another applies it, save the plan:",
            .literal(
                "moult plan --output approved.plan releases/dailyvalue-2.1.0.json\nmoult apply --plan approved.plan"),
            """
            A saved plan can be applied once. If the store, the manifest or the bundle has changed in the meantime, \
            nothing happens, the exit status is 4, and the message names the change.
            """,
            """
            `moult apply` first stages and verifies every file next to the store's own files. A failure up to this point \
            leaves the store unchanged. Then moult records on disk the decision to apply the update, and makes the changes. \
            If a change fails, moult undoes all of them; once a migration or a live replacement has been committed, \
            the next command finishes the update instead. After a crash, the next command that writes to the store finishes the update, or \
            removes the staged files if nothing was changed.
            """,
            "To preview a rollback: moult rollback --dry-run.",
        ])
}
