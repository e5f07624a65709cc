extension Topic {
    static let plans = Topic(
        name: "plans", summary: "what a plan is, and how to apply exactly what was approved",
        text: [
            """
            A plan is the list of changes that a release would make to a store. Making one changes nothing: no byte, \
            no sidecar, no time stamp. Its lines begin with a sign:
            """,
            .list([
                ("+", "is added"),
                ("-", "goes away (and is kept for rollback where the line says so)"),
                ("~", "is changed in place"),
                ("=", "stays as it is"),
            ]),
            "A line without a sign changes nothing by itself: check, attach, verify.",
            "Exit status 0 means that nothing would change, 2 that something would.",
            .literal("moult plan releases/dailyvalue-2.1.0.json\nmoult apply releases/dailyvalue-2.1.0.json"),
            """
            Where one person approves what another runs, save the plan. Applying it does exactly what it says, and \
            only once. If the store, the manifest or the bundle has changed since, nothing is touched, the exit \
            status is 4, and the message names what changed.
            """,
            .literal("moult plan --out approved.plan releases/dailyvalue-2.1.0.json\nmoult apply --plan approved.plan"),
            """
            Applying prepares everything first: unpacked beside the store's files, counted, digested and checked by \
            SQLite. Only then comes the decision, one record on disk. Before it any failure leaves the store as it \
            was. After it the change is made, or undone exactly; an update that a crash interrupted there is finished by \
            the next command that writes.
            """,
            "A rollback has a plan, too: moult rollback --dry-run.",
        ])
}
