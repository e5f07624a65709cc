extension Topic {
    static let draft = Topic(
        name: "draft", summary: "how to describe a release: the shortest draft, and the common fields",
        text: [
            """
            A draft is a JSON file about a release. moult pack makes the release from it. If you have a database, this \
            is the shortest draft:
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
            "Save it as food.draft.json beside food.db. Raise version and sequence for each release.",
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
                    // The app writes to it, too. Its notes survive each release.
                    "pantry": { "kind": "shared", "source": "pantry.db",
                                "preserve": [{ "table": "note" }] },
                    // The user's own. Releases only change the schema.
                    "diary": { "kind": "user", "source": "diary.db",
                               "migrations": ["migrations/0002-rating.sql"] },
                    // The app can make it again. A script makes the empty one.
                    "thumbs": { "kind": "cache", "build": { "script": "thumbs.sql" } },
                  },
                  // Releases are refused if a query has another answer, a table
                  // has lost too many rows, or the app is too old.
                  "checks": [{ "on": "food", "sql": "SELECT count(*) FROM food",
                               "expect": ">= 7000" }],
                  "budget": { "food.food": { "shrink": "10%" } },
                  "requires": { "app": ">=3.2" },
                }
                """),
            """
            Which kind a database needs: moult help kinds. Every field with examples: docs/manifest.md, installed in \
            /usr/share/doc/moult. For completion in an editor, begin the draft with "$schema": \
            "/usr/share/moult/schema/manifest-draft.schema.json".
            """,
        ])
}
