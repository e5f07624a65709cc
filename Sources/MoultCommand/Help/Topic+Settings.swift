extension Topic {
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
                """),
            .heading("Common fields"),
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
}
