extension Topic {
    static let keys = Topic(
        name: "keys", summary: "which keys sign what, and how they are replaced",
        text: [
            """
            With one key, that key signs releases and feed, and stores pin it. It has to be on the machine that renews \
            the feed. Separate keys limit what a thief can do: root keys sign key lists and stay offline, release keys \
            sign releases, and timestamp keys only sign the feed.
            """,
            .heading("Separate keys"),
            .literal(
                """
                moult keygen --root root
                moult keygen release
                moult keygen --no-password online
                moult trust keys --product org.example.app --root root.pub \\
                  --release release.pub --timestamp online.pub --key root.key
                moult publish public releases/app-1.0.0.json --trust keys/keys-1.json \\
                  --key release.key --key online.key
                moult init store --product org.example.app --key root.pub --feed URL
                """),
            """
            From then on the online key renews the feed by itself: moult publish public --key online.key. Each new release \
            needs a signature by a release key.
            """,
            .heading("Replace, revoke and renew"),
            .literal(
                """
                moult trust keys --release new.pub --key root.key
                moult publish public --trust keys/keys-2.json --key new.key --key online.key
                """),
            """
            A key list has the keys of each role; a key that is left out is revoked. A list is good for a year, or as long \
            as --days says. After that, stores install nothing until they receive a newer list.
            """,
            """
            The serial of a feed may be at most 1000000 above the last one. A new key list lets it begin again, so \
            the feeds of a thief cannot stop stores for good: publish with --trust and --serial.
            """,
        ])
}
