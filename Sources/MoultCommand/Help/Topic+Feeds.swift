extension Topic {
    static let feeds = Topic(
        name: "feeds", summary: "how a store follows releases, and what it believes",
        text: [
            """
            A feed is the signed list of a product's releases: a directory of static files that any web server, object \
            store or stick carries. A store that follows one needs nothing else; moult apply without a manifest brings \
            in the newest release that this store may have.
            """,
            .heading("For the publisher"),
            .literal(
                """
                moult keygen release
                moult publish public releases/dailyvalue-2.1.0.json --key release.key
                moult publish public --withdraw 2.1.0 --reason 'bad names' --key release.key
                """),
            """
            A feed is good for 30 days, or as long as --days says: publish it again before they are over, also without \
            a new release. --rollout gives a release to a share of all machines first.
            """,
            .heading("For the store"),
            .literal(
                """
                moult init store --product org.example.app --key release.pub --feed URL
                moult check
                moult apply
                """),
            """
            Nothing is believed but what a pinned key signed, is of this product, is not older than what was seen \
            before, and is not past its time. That a feed could not be asked never counts as nothing new: the exit \
            status is 75 if it may be better later.
            """,
            """
            The newest feed is kept, so that moult status can name newer releases without a request. A release \
            that requires another one first is reached by way of that one.
            """,
            .heading("Without a network"),
            .literal("moult export 2.1.0 /media/stick/data\nmoult apply --feed /media/stick/data/feed.json"),
        ])
}
