extension Topic {
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
            .literal("moult pack food.draft.json"),
            .heading("Common fields"),
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
}
