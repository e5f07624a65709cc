import MoultBasics
import StepKit

/// Errors of both forms, tested with drafts, and errors that only drafts can have.
let wrongDrafts = wrongDraftReleases + wrongDraftDatabases

/// Errors outside of the databases.
private let wrongDraftReleases: [WrongManifest] = [
    // The release itself
    .init(.draft, .remove("/manifest"), says: "manifest is missing"),
    .init(
        .draft, .set("/manifest", 2),
        says: "manifest is format 2, and this version of moult reads format 1. Install a newer moult."),
    .init(.draft, .set("/manifest", 0), says: "manifest is format 0, and this version of moult reads format 1"),
    .init(.draft, .set("/manifest", "1"), says: "manifest must be a whole number, but is a string"),
    .init(
        .draft, .set("/manifest", .number(1)), says: "manifest must be a whole number, but is a decimal number",
        beyond: .wholeNumbersHaveNoPoint),
    .init(.draft, .remove("/product"), says: "product is missing"),
    .init(
        .draft, .set("/product", "dailyvalue"),
        says: "product \"dailyvalue\" must be a reverse-DNS name such as org.example.app"),
    .init(
        .draft, .set("/product", "org.example..x"),
        says: "product \"org.example..x\" must be a reverse-DNS name such as org.example.app"),
    .init(
        .draft, .set("/product", "org/example.x"),
        says: "product \"org/example.x\" must be a reverse-DNS name such as org.example.app"),
    .init(
        .draft, .set("/product", .string("a." + String(repeating: "b", count: 254))),
        says:
            "product \"a.\(String(repeating: "b", count: 147))…\(String(repeating: "b", count: 24))\" is longer than 255 characters"
    ),
    .init(.draft, .remove("/version"), says: "version is missing"),
    .init(
        .draft, .set("/version", "2.1"),
        says: "version \"2.1\" is not a SemVer version. For example: 2.1.0."),
    .init(.draft, .set("/version", .number(2.1)), says: "version must be a string, but is a decimal number"),
    .init(
        .draft, .set("/version", .string("1.0.0-" + String(repeating: "a", count: 123))),
        says: "version is longer than 128 characters"),
    .init(.draft, .set("/sequence", -1), says: "sequence must not be negative, but is -1"),
    .init(.draft, .set("/sequence", .number(1.5)), says: "sequence must be a whole number, but is a decimal number"),
    .init(
        .draft, .set("/created", "20 November 2026"),
        says: "created \"20 November 2026\" is not a time. For example: 2026-11-20T10:00:00Z."),
    .init(.draft, .set("/created", .null), says: "created must be a string, but is null"),
    .init(
        .draft, .set("/expires", "2027-02-30T10:00:00Z"),
        says: "expires \"2027-02-30T10:00:00Z\" is not a time. For example: 2026-11-20T10:00:00Z.",
        beyond: .daysExist),
    .init(
        .draft, .set("/expires", "2026-11-20T10:00:00Z"), says: "expires must be later than created",
        beyond: .expiresAfterCreated),
    .init(.draft, .set("/critical", "budget"), says: "critical must be a list of strings, but is a string"),
    .init(.draft, .set("/critical", ["budget", 1]), says: "critical[1] must be a string, but is a whole number"),
    .init(.draft, .set("", []), says: "the document must be an object, but is a list"),

    // Unknown fields
    .init(.draft, .set("/databses", [:]), says: "databses is not a known field. Did you mean \"databases\"?"),
    .init(
        .draft, .set("/databases/food/Kind", "cache"),
        says: "databases.food.Kind is not a known field. Did you mean \"kind\"?"),
    .init(
        .draft, .set("/databases/food/identity/userversion", 2),
        says: "databases.food.identity.userversion is not a known field. Did you mean \"userVersion\"?"),
    .init(
        .draft, .set("/checks/0/sqll", ""), says: "checks[0].sqll is not a known field. Did you mean \"sql\"?"),
    .init(
        .draft, .set("/requires/glibc", ">=2"),
        says: "requires.glibc is not a known field. Known fields: app, from, moult."),
    .init(
        .draft, .set("/databases/thumbs/compatible/schema", "x"),
        says: "databases.thumbs.compatible.schema is not a known field."
            + " Known fields: applicationID, userVersionAtLeast, userVersionAtMost."),

    // Constraints
    .init(
        .draft, .set("/requires/app", ">=3.x"),
        says: "requires.app \">=3.x\" is not a version range."
            + " For example: \">=1.4 <3\", \"^2.1\" or \"~2.1.3\"."),
    .init(
        .draft, .set("/requires/moult", ""),
        says: "requires.moult \"\" is not a version range. For example: \">=1.4 <3\", \"^2.1\" or \"~2.1.3\"."),
    .init(.draft, .set("/requires/from", 2), says: "requires.from must be a string, but is a whole number"),
    .init(.draft, .set("/requires", []), says: "requires must be an object, but is a list"),

    // The bundle
    .init(.draft, .remove("/bundle/file"), says: "bundle.file is missing"),
    .init(
        .draft, .set("/bundle/file", "../x.tar.zst"),
        says: "bundle.file \"../x.tar.zst\" has a character other than A-Z, a-z, 0-9, '.', '_' and '-'"),
    .init(.draft, .set("/bundle/size", -5), says: "bundle.size must not be negative, but is -5"),
    .init(
        .draft, .set("/bundle/size", .integer(1 << 48 + 1)),
        says: "bundle.size must be at most 281474976710656, but is 281474976710657"),
    .init(
        .draft, .set("/bundle/sha256", .string(SampleDocuments.digest.uppercased())),
        says: "bundle.sha256 must be 64 hexadecimal digits in lower case"),
    .init(
        .draft, .set("/bundle/sha256", "abc"), says: "bundle.sha256 must be 64 hexadecimal digits in lower case"),

    // Patches
    .init(.sealed, .set("/patches", [:]), says: "patches must be a list of objects, but is an object"),
    .init(.sealed, .set("/patches/0", 1), says: "patches[0] must be an object, but is a whole number"),
    .init(
        .sealed, .set("/patches/0/member", "food-3.db"),
        says: "patches[0].member \"food-3.db\" is not a file of this release. Did you mean \"food-2.db\"?",
        beyond: .membersAreKnown),
    .init(.sealed, .remove("/patches/0/base/size"), says: "patches[0].base.size is missing"),
    .init(
        .sealed, .set("/patches/0/from", "2"),
        says: "patches[0].from \"2\" is not a SemVer version. For example: 2.1.0."),
    .init(.sealed, .remove("/patches/0/size"), says: "patches[0].size is missing"),
    .init(.sealed, .set("/patches/0/file", ".x"), says: "patches[0].file \".x\" begins with '.'"),

    // Golden queries and budgets
    .init(
        .draft, .set("/checks/0/on", "fod"),
        says: "checks[0].on \"fod\" is not a database of this release. Did you mean \"food\"?",
        beyond: .databasesAreKnown),
    .init(.draft, .remove("/checks/0/sql"), says: "checks[0].sql is missing"),
    .init(
        .draft, .set("/checks/0/expect", ">= many"),
        says: "checks[0].expect \">= many\" is not an expectation."
            + " Write the expected value, or an operator and a value, for example: \"52\", \"= 5\", \"!= 0\" or "
            + "\">= 7000\" (>=, <=, > and < need a number)."),
    .init(
        .draft, .set("/checks/0/expect", "== 5"),
        says: "checks[0].expect \"== 5\" is not an expectation."
            + " Write the expected value, or an operator and a value, for example: \"52\", \"= 5\", \"!= 0\" or "
            + "\">= 7000\" (>=, <=, > and < need a number)."),
    .init(.draft, .set("/checks/0/expect", 5), says: "checks[0].expect must be a string, but is a whole number"),
    .init(
        .draft, .set("/budget/fod.food", ["shrink": "1%"]),
        says: "budget.fod.food \"fod\" is not a database of this release. Did you mean \"food\"?",
        beyond: .databasesAreKnown),
    .init(
        .draft, .set("/budget/food", ["shrink": "1%"]),
        says: "budget.food does not name a table. Write DATABASE.TABLE, for example food.items."),
    .init(
        .draft, .set("/budget/food.", [:]),
        says: "budget.food. does not name a table. Write DATABASE.TABLE, for example food.items."),
    .init(
        .draft, .set("/budget/food.food/shrink", "a fifth"),
        says: "budget.food.food.shrink \"a fifth\" is not an allowance."
            + " For example: \"20%\", \"0.5%\" or \"100\" (rows)."),
    .init(
        .draft, .set("/budget/food.food/grow", .number(0.2)),
        says: "budget.food.food.grow must be a string, but is a decimal number"),

    // Steps
    .init(.draft, .remove("/steps/0/step"), says: "steps[0].step is missing"),
    .init(
        .draft, .set("/steps/0/step", "../reindex"),
        says: "steps[0].step \"../reindex\" has a character other than A-Z, a-z, 0-9, '.', '_' and '-'"),
    .init(
        .draft, .set("/steps/0/before", "copy"),
        says: "steps[0] has both \"before\" and \"after\". Choose one phase, for example \"after\": \"copy\"."),
    .init(
        .draft, .remove("/steps/1/before"),
        says: "steps[1] has neither \"before\" nor \"after\". Choose one phase, for example \"after\": \"copy\"."),
    .init(
        .draft, .set("/steps/0/after", "Copy"),
        says: "steps[0].after must be one of \"check\", \"delete\", \"copy\", \"attach\", \"verify\", but is \"Copy\"."
            + " Did you mean \"copy\"?"),
    .init(.draft, .set("/steps/0/with", "food"), says: "steps[0].with must be an object, but is a string"),
]
