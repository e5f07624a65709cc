internal import MoultBasics

/// A concept that `moult help` explains because several verbs need it.
struct Topic: Sendable, Report {
    let name: String
    let summary: String
    let text: [Prose]

    static let all: [Topic] = [
        .draft, .kinds, .settings, .plans, .steps, .feeds, .keys, .patches, .options, .exitCodes,
    ]

    func write(to page: inout Page) {
        page.line("\(name, .heading): \(summary)")
        page.line()
        page.prose(text)
    }

    var json: JSON {
        var page = Page(for: Terminal())
        page.prose(text)
        return .record(["name": name, "summary": summary, "text": page.text])
    }

    static let options = Topic(
        name: "options", summary: "the options and environment variables that most verbs accept",
        text: [
            .list([Option.store, .json, .quiet, .verbose, .help, .version].map { ($0.term, $0.summary) }),
            .list([
                ("MOULT_STORE", "The store, if --store is not given"), ("NO_COLOR", "If set, output has no colours"),
            ]),
        ])

    static let exitCodes = Topic(
        name: "exit-codes", summary: "what each exit status means",
        text: [
            "The meaning of these numbers does not change between versions.",
            .list(ExitCode.meanings.map { ("\($0.status.rawValue)", $0.meaning) }),
            """
            After 1, 3, 4, 5, 64 and 75 the databases are unchanged, except by earlier statements of \
            `moult sql --write`, and by an earlier release that the message names. After 6 some may have changed: the message says what to do.
            """,
            """
            `moult status --nagios` uses the numbers of Nagios instead: 0 (ok), 1 (warning), 2 (critical) and 3 \
            (unknown).
            """,
            """
            With --json the error is an object on stdout: "exit" is the exit status, "outcome" its name, and "code" \
            identifies the error (docs/troubleshooting.md).
            """,
        ])

    static let draft = Topic(
        name: "draft", summary: "how to describe a release: the shortest draft and the common fields",
        text: [
            """
            A draft is a JSON file that describes a release; `moult pack` creates the release from it. For one database, \
            this is enough:
            """,
            .literal(
                """
                {
                  "manifest": 1,
                  "product": "org.example.food",
                  "version": "1.0.0",
                  "sequence": 1,
                  "databases": {
                    "food": { "kind": "reference", "source": "food.db" }
                  }
                }
                """),
            "Save it as food.draft.json next to food.db. Increase the version for each release, and the sequence, too, if the draft has one: without it, `moult pack` uses the next.",
            .literal("moult pack food.draft.json"), .heading("Common fields"),
            .literal(
                """
                {
                  "manifest": 1, "product": "org.example.food",
                  "version": "2.0.0", "sequence": 2,
                  "databases": {
                    // Only releases change it.
                    "food": { "kind": "reference", "source": "food.db" },
                    // The app also writes to it. Updates keep the app's notes.
                    "pantry": { "kind": "shared", "source": "pantry.db",
                                "preserve": [{ "table": "note" }] },
                    // User data. Releases change only the schema.
                    "diary": { "kind": "user", "source": "diary.db",
                               "migrations": ["migrations/0002-rating.sql"] },
                    // The app can recreate it. A script creates an empty one.
                    "thumbs": { "kind": "cache", "build": { "script": "thumbs.sql" } },
                  },
                  // Stores refuse the release if a query has a different result,
                  // a table loses too many rows, or the app is too old.
                  "checks": [{ "on": "food", "sql": "SELECT count(*) FROM food",
                               "expect": ">= 7000" }],
                  "budget": { "food.food": { "shrink": "10%" } },
                  "requires": { "app": ">=3.2" },
                }
                """),
            """
            To choose a kind: moult help kinds. All fields with examples: docs/manifest.md; the Debian \
            package installs it in /usr/share/doc/moult. For completion in editors, start the draft with "$schema": \
            "/usr/share/moult/schema/manifest-draft.schema.json" (after make install: /usr/local/share/moult/...).
            """,
        ])

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

    static let settings = Topic(
        name: "settings", summary: "how to configure a store: moult.json and its common fields",
        text: [
            """
            The settings of a store are in moult.json. `moult init` writes the file, and you can edit it. The shortest \
            form accepts newer releases of one product:
            """,
            .literal(
                """
                {
                  "moult": 1,
                  "product": "org.example.food"
                }
                """), .heading("Common fields"),
            .literal(
                """
                {
                  "moult": 1,
                  "product": "org.example.food",
                  // Where `moult check` and `moult apply` find new releases.
                  "feed": { "url": "https://example.org/releases/feed.json" },
                  // The publisher's key: the second line of release.pub.
                  "keys": { "trusted": [
                    { "key": "RWQBAgMEBQYHCA8QERITFBUWFxgZGhscHR4fICEiIyQlJicoKSorLC0u" },
                  ] },
                  // Or "match": also install older releases, for data that an app ships.
                  "follow": "newer",
                  // The version of the app, for releases that require one.
                  "app": "3.2.0",
                  // Generations to keep, including the current one.
                  "keep": 3,
                  // Seconds to wait for a process that has a database locked.
                  "waitForApps": 30,
                  // The directory for caches, if it is not the store.
                  "cacheRoot": "/var/cache/food",
                  // Processes that must close databases before an update replaces them.
                  "consumers": [{ "name": "web", "systemd": "shop-web.service" }],
                }
                """),
            """
            Comments and trailing commas are allowed. To check the file, use `moult status`. All fields with examples: \
            docs/settings.md; the Debian package installs it in /usr/share/doc/moult. For completion in editors, start \
            the file with "$schema": "/usr/share/moult/schema/settings.schema.json" (after make install: \
            /usr/local/share/moult/...).
            """,
        ])

    static let plans = Topic(
        name: "plans", summary: "how to preview an update, and how to apply exactly what was approved",
        text: [
            "A plan lists the changes that a release would make to a store. Making a plan changes nothing.",
            .literal("moult plan releases/dailyvalue-2.1.0.json\nmoult apply releases/dailyvalue-2.1.0.json"),
            "`moult plan` exits with 0 if nothing would change, and with 2 if the store would change. Each line has a mark:",
            .list([
                ("+", "is added"), ("-", "is removed (and kept for rollback if the line says so)"),
                ("~", "is changed or replaced"), ("=", "stays as it is"),
            ]), "A line without a mark is a check that changes nothing.",
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
            """, "To preview a rollback: moult rollback --dry-run.",
        ])

    static let steps = Topic(
        name: "steps", summary: "the phases of an update, and how to add your own steps",
        text: [
            "An update has five phases, each with a built-in step:",
            .list([
                ("check", "Checks product, version, sequence and requirements of the release."),
                ("delete", "Takes the old files out of service. They are kept for rollback."),
                ("copy", "Puts the new files in place, and carries over the rows to preserve."),
                ("attach", "Checks that the databases of each group open on one connection, under their names."),
                ("verify", "Checks digests, identity, health and golden queries, then the files at the app's paths."),
            ]),
            """
            moult goes through the phases twice. The first pass stages and verifies all changes, on the store's file \
            system; apps do not see them yet. Then moult records on disk the decision to apply the update, and the \
            second pass makes the changes. If a change fails, moult undoes all of them; once a migration or a live \
            replacement has been committed, the next command finishes the update instead.
            """,
            """
            moult unpacks the bundle between check and delete, so it does not unpack the bundle of a release that \
            check refuses. To see how long each part took: moult history --verbose
            """, "A manifest can add steps before or after a built-in step:",
            .literal(#""steps": [ { "step": "acme.reindex", "after": "copy", "with": { } } ]"#),
            """
            Such a step is built into the command from a Swift package, or it is a program that implements the protocol \
            in docs/write-a-step.md and is configured in moult.json. moult runs a program only if the operator has \
            trusted it with `moult steps trust`, and only while it is unchanged. The program is sandboxed: during \
            planning it cannot write at all, and later it can write only where both moult.json and its plan allow it.
            """, "To list the available steps: moult steps. A release that needs another step is refused.",
        ])

    static let feeds = Topic(
        name: "feeds", summary: "how to publish a feed of releases, and how stores follow it",
        text: [
            """
            A feed is the signed list of the releases of one product. `moult publish` keeps it in a directory, together \
            with the files of the releases. The directory can be on a web server, in an object store or on a USB stick. \
            A store with a feed installs the newest suitable release with: moult apply
            """, .heading("Publish"),
            .literal(
                """
                moult keygen release
                moult publish public releases/dailyvalue-2.1.0.json --key release.key
                moult publish public --withdraw 2.1.0 --reason 'bad names' --key release.key
                """),
            """
            A feed is valid for 30 days (--days). Renew it before it expires by running `moult publish` again, with or \
            without a new release. --rollout offers a release to a percentage of machines first.
            """, .heading("Follow"),
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
            """, .heading("Without a network"),
            .literal("moult export 2.1.0 /media/stick/data\nmoult apply --feed /media/stick/data/feed.json"),
        ])

    static let keys = Topic(
        name: "keys", summary: "how to sign releases with separate keys, and how to replace keys",
        text: [
            """
            The simplest setup has one key pair: its secret key signs both releases and the feed, and stores trust \
            its public key. The secret key must then be on the machine that renews the feed. Separate keys limit the \
            damage if one is stolen: root keys sign only key lists and stay offline, release keys sign releases, and \
            timestamp keys sign only the feed.
            """, .heading("Use separate keys"),
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
            """, .heading("Replace, revoke or renew keys"),
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

    static let patches = Topic(
        name: "patches", summary: "how stores download only what changed in a release",
        text: [
            """
            A patch contains the differences between two releases. A store that has the older release downloads the \
            patch instead of the bundle and produces exactly the same files.
            """, .heading("Publish"),
            .literal(
                """
                moult pack draft.json
                moult publish public releases/dailyvalue-2.1.0.json --key release.key
                """),
            """
            `moult pack` makes patches from the newest releases in the output directory, and `moult publish` keeps them in the feed \
            as long as the release that they start from is in it.
            """,
            """
            `moult pack` leaves out a patch that would not be clearly smaller than the bundle. Patches are smallest if a \
            database is changed in place instead of rebuilt; `moult delta` shows the size without packing a release.
            """, .heading("Install"),
            """
            Stores need no configuration: they choose the smallest download, which `moult plan` shows. Every file is verified \
            before it is used. If a patch does not work, moult prints a warning and uses another patch or the bundle.
            """,
        ])
}
