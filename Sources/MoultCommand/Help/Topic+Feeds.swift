extension Topic {
    static let feeds = Topic(
        name: "feeds", summary: "how to publish a feed of releases, and how stores follow it",
        text: [
            """
            A feed is the signed list of the releases of one product. `moult publish` keeps it in a directory, together \
            with the files of the releases. The directory can be on a web server, in an object store or on a USB stick. \
            A store with a feed installs the newest suitable release with: moult apply
            """,
            .heading("Publish"),
            .literal(
                """
                moult keygen release
                moult publish public releases/dailyvalue-2.1.0.json --key release.key
                moult publish public --withdraw 2.1.0 --reason 'bad names' --key release.key
                """),
            """
            A feed is valid for 30 days (--days). Renew it before it expires by running `moult publish` again, with or \
            without a new release. --rollout offers a release to a percentage of machines first.
            """,
            .heading("Follow"),
            .literal(
                """
                moult init store --product org.example.app --key release.pub --feed URL
                moult check
                moult apply
                """),
            """
            A store accepts a feed only if a trusted key signed it, it belongs to the store's product, it has not \
            expired, and it is not older than the last one seen. A feed that cannot be reached is an error, never "no \
            newer release": exit status 75 means that a later attempt may succeed.
            """,
            """
            The store keeps the last feed, so that `moult status` can show newer releases without a request. If a release \
            requires an earlier one, `moult apply` installs both in order.
            """,
            .heading("Without a network"),
            .literal("moult export 2.1.0 /media/stick/data\nmoult apply --feed /media/stick/data/feed.json"),
        ])
}
