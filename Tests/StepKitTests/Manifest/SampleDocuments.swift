import MoultBasics

/// Documents with every field, none of which has its default value.
enum SampleDocuments {
    static func sealed() throws -> JSON { try JSON(parsing: sealedText, source: "sample") }
    static func draft() throws -> JSON { try JSON(parsing: draftText, as: .draft, source: "sample") }
    static func settings() throws -> JSON { try JSON(parsing: settingsText, as: .draft, source: "sample") }

    static func feed() throws -> JSON { try JSON(parsing: feedText, source: "sample") }

    static let digest = String(repeating: "0123456789abcdef", count: 4)
    static let other = String(repeating: "fedcba9876543210", count: 4)

    /// The fields are in the order in which a sealed manifest is written.
    static let sealedText = """
        {
          "manifest": 1,
          "product": "org.example.dailyvalue",
          "version": "2.1.0-rc.1+5",
          "sequence": 41,
          "created": "2026-11-20T10:00:00Z",
          "expires": "2027-11-20T10:00:00Z",
          "notes": "New words about the weather.",
          "sqlite": "3.40.1 2022-12-28 14:03:47 df5c253c",
          "critical": ["budget"],
          "requires": { "app": ">=3.2 <5", "moult": ">=0.1", "from": "^1.4 || 2.0.0" },
          "bundle": {
            "file": "dailyvalue-2.1.0.tar.zst", "size": 87867032, "sha256": "\(digest)"
          },
          "patches": [
            {
              "member": "food-2.db", "from": "2.0.0", "base": { "size": 120000000, "sha256": "\(other)" },
              "result": { "size": 125000000, "sha256": "\(digest)" }, "file": "food.from-2.0.0.patch", "size": 1,
              "sha256": "\(other)"
            }
          ],
          "databases": {
            "food": {
              "kind": "reference", "member": "food-2.db", "size": 130000000, "sha256": "\(digest)", "path": "food.db",
              "verify": "full", "proved": { "check": "full", "sqlite": "3.40.1", "moult": "0.1.0" },
              "attach": { "as": "shipped" },
              "identity": { "applicationID": -1, "userVersion": 2, "schema": "sha256:\(other)", "encoding": "UTF-8" }
            },
            "maps": { "kind": "reference", "member": "maps.db", "size": 0, "sha256": "\(digest)", "place": "in-place" },
            "pantry": {
              "kind": "shared", "member": "pantry.db", "size": 4096, "sha256": "\(digest)", "attach": { "group": "home", "qualified": true },
              "preserve": [
                {
                  "table": "food", "where": "editable = 1", "onConflict": "fail", "onReject": "table",
                  "columns": { "desc": "note", "group": "kind" }
                }
              ],
              "unpreserved": "keep"
            },
            "user": {
              "kind": "user", "member": "user.db", "size": 8192, "sha256": "\(digest)",
              "migrations": [
                { "member": "migrations/user/0002-notes.sql", "size": 120, "sha256": "\(digest)" },
                { "member": "migrations/user/0010-tags.sql", "size": 80, "sha256": "\(other)" }
              ],
              "schema": "app"
            },
            "thumbs": {
              "kind": "cache", "member": "thumbs.db", "size": 4096, "sha256": "\(digest)",
              "compatible": { "applicationID": 7, "userVersionAtLeast": 2, "userVersionAtMost": 3 }
            }
          },
          "checks": [{ "on": "food", "sql": "SELECT count(*) FROM food", "expect": ">= 7000" }],
          "budget": { "food.food": { "shrink": "20%", "grow": "5000" } },
          "steps": [
            { "step": "acme.reindex", "after": "copy", "with": { "tables": ["food"] } },
            { "step": "acme.report", "before": "verify" }
          ]
        }
        """

    static let draftText = """
        // Written by hand, with comments and trailing commas
        {
          "$schema": "../schema/manifest-draft.schema.json",
          "manifest": 1,
          "product": "org.example.dailyvalue",
          "version": "2.1.0",
          "sequence": 41,
          "created": "2026-11-20T10:00:00Z",
          "expires": "2027-11-20T10:00:00Z",
          "notes": "New words about the weather.",
          "sqlite": "3.40.1 2022-12-28 14:03:47 df5c253c",
          "critical": ["budget"],
          "requires": { "app": ">=3.2 <5", "moult": ">=0.1", "from": ">=1.4" },
          "bundle": {
            "file": "dailyvalue-2.1.0.tar.zst", "size": 87867032, "sha256": "\(digest)",
          },
          "patches": [
            {
              "member": "food-2.db", "from": "2.0.0", "base": { "size": 120000000, "sha256": "\(other)" },
              "result": { "size": 125000000, "sha256": "\(digest)" }, "file": "food.from-2.0.0.patch", "size": 1,
              "sha256": "\(other)"
            }
          ],
          "databases": {
            "food": {
              "kind": "reference", "member": "food-2.db", "size": 130000000, "sha256": "\(digest)", "path": "food.db",
              "verify": "full", "proved": { "check": "full", "sqlite": "3.40.1", "moult": "0.1.0" },
              "attach": { "as": "shipped" },
              "identity": { "applicationID": -1, "userVersion": 2, "schema": "sha256:\(other)", "encoding": "UTF-8" },
              "build": {
                "script": "food.sql", "define": { "REVISION": "5" }, "analyze": true, "from": "old/food.db",
              },
            },
            "maps": { "kind": "reference", "place": "in-place", "source": "resources/maps.db" },
            "pantry": {
              "kind": "shared", "attach": { "group": "home", "qualified": true },
              "preserve": [
                {
                  "table": "food", "where": "editable = 1", "onConflict": "fail", "onReject": "table",
                  "columns": { "desc": "note", "group": "kind" },
                },
              ],
              "unpreserved": "keep",
            },
            "user": {
              "kind": "user",
              "migrations": [
                "migrations/user/0002-notes.sql",
                { "member": "migrations/user/0010-tags.sql", "size": 80, "sha256": "\(other)" },
              ],
              "schema": "app",
            },
            "thumbs": {
              "kind": "cache",
              "compatible": { "applicationID": 7, "userVersionAtLeast": 2, "userVersionAtMost": 3 },
            },
          },
          "checks": [{ "on": "food", "sql": "SELECT count(*) FROM food", "expect": ">= 7000" }],
          "budget": { "food.food": { "shrink": "20%", "grow": "5000" } },
          "steps": [
            { "step": "acme.reindex", "after": "copy", "with": { "tables": ["food"] } },
            { "step": "acme.report", "before": "verify" },
          ],
        }
        """

    static let settingsText = """
        {
          "$schema": "../schema/settings.schema.json",
          "moult": 1,
          "product": "org.example.dailyvalue",
          "app": "3.2.0",
          "follow": "match",
          "keep": 3,
          "minimumAge": 0,
          "cacheRoot": "/var/cache/dailyvalue",
          "quarantine": {"size": 1000000, "count": 10, "age": 86400},
          "consumers": [
            {
              "name": "api", "databases": ["pantry", "user"], "timeout": 20, "onReloadFailure": "roll-back",
              "command": { "release": ["api-control", "release"], "reload": ["api-control", "reload"] },
            },
            { "name": "indexer", "signal": { "pidFile": "/run/indexer.pid", "release": "USR1", "reload": "USR2" } },
            { "name": "web", "systemd": "shop-web.service" },
          ],
          "waitForReaders": 30, "waitForApps": 20, "checkTimeout": 120, "verify": "full", "onWithdrawn": "newest", "maxAge": 432000, "window": "22:00-05:30", "report": "https://ops.example/moult", "rollout": "first",
          "monitoring": {"criticalAfter": 3600, "every": 60},
          "steps": {
            "acme.notify": {
              "executable": "/usr/lib/acme/notify", "sha256": "\(digest)", "after": "verify",
              "with": { "directory": "/var/spool/hooks" }, "writable": ["/var/spool/hooks"], "network": "local",
              "timeout": 10, "prepareTimeout": 600, "required": true,
            },
            "acme.report": { "executable": "/usr/lib/acme/report", "before": "verify" },
            "acme.old": { "forbidden": true },
          },
          "hold": { "release": "2.1.0", "reason": "shows wrong totals", "since": "2026-11-20T10:00:00Z" },
          "feed": {
            "url": "https://example.org/feed.json", "mirrors": ["/srv/mirror/feed.json", ["https://a.example/feed.json", "oci://b.example/food"]], "channel": "beta",
            "patience": 5, "minimumRate": 100, "fileDeadline": 60, "deadline": 90, "bandwidth": 1000000, "cache": 0,
            "certificate": "/etc/moult/client.pem", "key": "/etc/moult/client.key", "headers": "/etc/moult/headers",
          },
          "keys": {
            "threshold": 2,
            "trusted": [
              { "id": "1807060504030201", "key": "RWQBAgMEBQYHGA8QERITFBUWFxgZGhscHR4fICEiIyQlJicoKSorLC0u",
                "notAfter": "2027-11-20T10:00:00Z" },
              { "key": "RWQBAgMEBQYHCQ8QERITFBUWFxgZGhscHR4fICEiIyQlJicoKSorLEAu" },
              { "key": "RWQBAgMEBQYHCg8QERITFBUWFxgZGhscHR4fICEiIyQlJicoKSorLEEu" },
            ],
          },
        }
        """

    static let feedText = """
        {
          "feed": 1,
          "product": "org.example.dailyvalue",
          "serial": 12,
          "created": "2026-11-20T10:00:00Z",
          "expires": "2026-12-20T10:00:00Z",
          "critical": ["withdrawn"],
          "previous": ["\(digest)"],
          "releases": [
            {
              "version": "2.1.0", "sequence": 41, "channel": "beta",
              "manifest": { "file": "dailyvalue-2.1.0.json", "size": 2048, "sha256": "\(digest)" },
              "requires": { "app": ">=3.2 <5", "moult": ">=0.1", "from": "^1.4 || 2.0.0" },
              "rollout": 10, "groups": ["canaries"], "withdrawn": "shows wrong totals", "onWithdrawn": "rollback",
              "recommendedBy": ["text"],
              "patches": [{ "from": "2.0.0", "file": "food.from-2.0.0.patch" }]
            }
          ]
        }
        """
}
