extension Topic {
    static let keys = Topic(
        name: "keys", summary: "how to sign releases with separate keys, and how to replace keys",
        text: [
            """
            The simplest setup has one key pair: its secret key signs both releases and the feed, and stores trust \
            its public key. The secret key must then be on the machine that renews the feed. Separate keys limit the \
            damage if one is stolen: root keys sign only key lists and stay offline, release keys sign releases, and \
            timestamp keys sign only the feed.
            """,
            .heading("Use separate keys"),
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
            After that, the timestamp key alone renews the feed, with `moult publish public --key online.key`. Each new \
            release needs the signature of a release key.
            """,
            .heading("Replace, revoke or renew keys"),
            .literal(
                """
                moult trust keys --release new.pub --key root.key
                moult publish public --trust keys/keys-2.json --key new.key --key online.key
                """),
            """
            A key list contains the keys of each role. A key that is not in the newest list is revoked. A list is \
            valid for a year (--days); after it expires, stores install nothing until they receive a newer list.
            """,
            """
            Stores accept a feed only if its serial is at most 1000000 higher than the last one. If an attacker with a \
            stolen key has raised the serial, a new key list resets it: publish with --trust and --serial.
            """,
        ])
}
