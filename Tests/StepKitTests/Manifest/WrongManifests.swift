import MoultBasics
import StepKit

/// Errors of both forms, tested with drafts, and errors that only drafts can have.
let wrongDrafts: [WrongManifest] = [
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
    .init(.draft, .remove("/bundle/frames/packed"), says: "bundle.frames.packed is missing"),
    .init(.draft, .set("/bundle/frames/packed", 5), says: "bundle.frames.packed must be a list, but is a whole number"),
    .init(
        .draft, .set("/bundle/frames/content/0", 0),
        says: "bundle.frames.content[0] must be from 1 to 1099511627776, but is 0"),
    .init(
        .draft, .set("/bundle/frames/content/0", "1"),
        says: "bundle.frames.content[0] must be a whole number, but is a string"),
    .init(
        .draft, .set("/bundle/frames/sha256", "abc"),
        says: "bundle.frames.sha256 must be digests of 64 hexadecimal digits in lower case, one after the other"),
    .init(
        .draft, .set("/bundle/frames/content/1", 5),
        says: "bundle.frames must have as many packed and content sizes as digests", beyond: .framesFitTogether),
    .init(
        .draft, .set("/bundle/frames/sha256", ""),
        says: "bundle.frames must have as many packed and content sizes as digests", beyond: .framesFitTogether),

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

    // Databases
    .init(.draft, .remove("/databases"), says: "databases must have at least one database"),
    .init(.draft, .set("/databases", [:]), says: "databases must have at least one database"),
    .init(.draft, .set("/databases", []), says: "databases must be an object, but is a list"),
    .init(.draft, .set("/databases/food", "food.db"), says: "databases.food must be an object, but is a string"),
    .init(
        .draft, .set("/databases/2nd", ["kind": "cache"]),
        says: "databases.2nd is not the name of a database: it must begin with a letter"),
    .init(
        .draft, .set("/databases/a.b", ["kind": "cache"]),
        says: "databases.a.b is not the name of a database: it may contain only letters, digits, '_' and '-'"),
    .init(
        .draft, .remove("/databases/food/kind"),
        says: "databases.food.kind is missing. Use one of \"reference\", \"shared\", \"user\", \"cache\"."),
    .init(
        .draft, .set("/databases/food/kind", "refernce"),
        says: "databases.food.kind must be one of \"reference\", \"shared\", \"user\", \"cache\", but is \"refernce\"."
            + " Did you mean \"reference\"?"),
    .init(
        .draft, .set("/databases/food/kind", "overlay"),
        says: "databases.food.kind must be one of \"reference\", \"shared\", \"user\", \"cache\", but is \"overlay\""),
    .init(
        .draft, .set("/databases/food/kind", true), says: "databases.food.kind must be a string, but is true"),
    .init(
        .draft, .set("/databases/food/member", "data/food.db"),
        says: "databases.food.member \"data/food.db\" has a character other than A-Z, a-z, 0-9, '.', '_' and '-'"),
    .init(.draft, .set("/databases/food/member", ".."), says: "databases.food.member \"..\" begins with '.'"),
    .init(
        .draft, .set("/databases/food/member", "food.db-wal"),
        says: "databases.food.member \"food.db-wal\" ends with -wal, which SQLite uses itself"),
    .init(
        .draft, .set("/databases/food/member", "Manifest.json"),
        says: "databases.food.member \"Manifest.json\" is a name that moult uses itself"),
    .init(
        .draft, .set("/databases/food/path", "moult.json"),
        says: "databases.food.path \"moult.json\" is a name that moult uses itself"),
    .init(.draft, .set("/databases/food/path", ""), says: "databases.food.path \"\" is empty"),
    .init(.draft, .set("/databases/food/size", -1), says: "databases.food.size must not be negative, but is -1"),
    .init(
        .draft, .set("/databases/food/size", .integer(.max)),
        says: "databases.food.size must be less than 2^53, but is 9223372036854775807"),
    .init(
        .draft, .set("/databases/food/verify", "deep"),
        says: "databases.food.verify must be one of \"quick\", \"full\", but is \"deep\""),
    .init(
        .draft, .set("/databases/maps/place", "inplace"),
        says: "databases.maps.place must be one of \"generation\", \"in-place\", but is \"inplace\"."
            + " Did you mean \"in-place\"?"),
    .init(
        .draft, .set("/databases/pantry/replace", "swap"),
        says: "databases.pantry.replace must be one of \"live\", \"exchange\", but is \"swap\""),
    .init(
        .draft, .set("/databases/pantry/marker", "no"),
        says: "databases.pantry.marker must be true or false, but is a string"
    ),

    // Duplicate names
    .init(
        .draft, .set("/databases/pantry/member", "food-2.db"),
        says:
            "databases.pantry.member \"food-2.db\" is also databases.food.member. Give one of them a different member.",
        beyond: .namesDiffer),
    .init(
        .draft, .set("/databases/maps/member", "food-2.db"),
        says: "databases.maps.member \"food-2.db\" is also databases.food.member. Give one of them a different member.",
        beyond: .namesDiffer),
    .init(
        .draft, .set("/databases/pantry/member", "Food-2.DB"),
        says: "databases.pantry.member \"Food-2.DB\" differs from databases.food.member only in case."
            + " Give one of them a different member.", beyond: .namesDifferByMoreThanCase),
    .init(
        .draft, .set("/databases/pantry/path", "food.db"),
        says: "databases.pantry.path \"food.db\" is also databases.food.path. Give one of them a different path.",
        beyond: .namesDiffer),
    .init(
        .draft, .set("/databases/user/path", "FOOD.db"),
        says: "databases.user.path \"FOOD.db\" differs from databases.food.path only in case."
            + " Give one of them a different path.", beyond: .namesDifferByMoreThanCase),
    .init(
        .draft, .set("/databases/user/migrations/0", "0001-a.db"), .set("/databases/food/member", "0001-A.db"),
        says: "databases.user.migrations[0] \"0001-a.db\" differs from databases.food.member only in case."
            + " Give one of them a different member.", beyond: .namesDifferByMoreThanCase),

    // Attaching
    .init(
        .draft, .set("/databases/food/attach/as", "main"),
        says: "databases.food.attach.as \"main\" cannot be attached, because SQLite uses that name."
            + " Give it a different name, for example \"attach\": { \"as\": \"shipped\" }."),
    .init(
        .draft, .set("/databases/food/attach/as", "Temp"),
        says: "databases.food.attach.as \"Temp\" cannot be attached, because SQLite uses that name."
            + " Give it a different name, for example \"attach\": { \"as\": \"shipped\" }."),
    .init(
        .draft, .set("/databases/main", ["kind": "reference"]),
        says: "databases.main.attach.as \"main\" cannot be attached, because SQLite uses that name."
            + " Give it a different name, for example \"attach\": { \"as\": \"shipped\" }.",
        beyond: .mainAndTempAreTaken),
    .init(
        .draft, .set("/databases/second", ["kind": "user", "attach": ["as": "main"]]),
        says: "databases.second.attach.as \"main\" cannot be attached, because SQLite uses that name."
            + " Give it a different name, for example \"attach\": { \"as\": \"shipped\" }.",
        beyond: .mainAndTempAreTaken),
    .init(
        .draft, .set("/databases/food/attach/as", "Maps"),
        says: "databases.maps.attach.as \"maps\" is also the name by which databases.food is attached."
            + " Give one of them a different name.", beyond: .aliasesDiffer),
    .init(
        .draft, .set("/databases/food/attach/as", "a b"),
        says: "databases.food.attach.as \"a b\" may contain only letters, digits, '_' and '-'"),
    .init(
        .draft, .set("/databases/pantry/attach/group", "a b"),
        says: "databases.pantry.attach.group \"a b\" may contain only letters, digits, '_' and '-'"),
    .init(
        .draft, .set("/databases/user/attach", ["as": "1"]),
        says: "databases.user.attach.as \"1\" must begin with a letter"),

    // Identity
    .init(
        .draft, .set("/databases/food/identity/applicationID", .integer(1 << 31)),
        says: "databases.food.identity.applicationID must fit in 32 bits, but is 2147483648"),
    .init(
        .draft, .set("/databases/food/identity/userVersion", "2"),
        says: "databases.food.identity.userVersion must be a whole number, but is a string"),
    .init(
        .draft, .set("/databases/food/identity/schema", .string(SampleDocuments.digest)),
        says: "databases.food.identity.schema must be \"sha256:\" and 64 hexadecimal digits in lower case"),

    // Fields of another kind
    .init(
        .draft, .set("/databases/user/place", "generation"),
        says: "databases.user.place is only for databases of kind reference, and this one is \"user\""),
    .init(
        .draft, .set("/databases/food/preserve", []),
        says: "databases.food.preserve is only for databases of kind shared, and this one is \"reference\""),
    .init(
        .draft, .set("/databases/food/replace", "live"),
        says: "databases.food.replace is only for databases of kind shared, and this one is \"reference\""),
    .init(
        .draft, .set("/databases/thumbs/marker", true),
        says: "databases.thumbs.marker is only for databases of kind shared, and this one is \"cache\""),
    .init(
        .draft, .set("/databases/pantry/migrations", []),
        says: "databases.pantry.migrations is only for databases of kind user, and this one is \"shared\""),
    .init(
        .draft, .set("/databases/user/compatible", [:]),
        says: "databases.user.compatible is only for databases of kind cache, and this one is \"user\""),

    // Rows to preserve
    .init(.draft, .remove("/databases/pantry/preserve/0/table"), says: "databases.pantry.preserve[0].table is missing"),
    .init(
        .draft, .set("/databases/pantry/preserve/0/onConflict", "keep_user"),
        says: "databases.pantry.preserve[0].onConflict must be one of \"keep-user\", \"keep-new\", \"fail\","
            + " but is \"keep_user\". Did you mean \"keep-user\"?"),
    .init(
        .draft, .set("/databases/pantry/preserve/0/onReject", "fail"),
        says: "databases.pantry.preserve[0].onReject must be one of \"block\", \"table\", but is \"fail\""),
    .init(
        .draft, .set("/databases/pantry/unpreserved", "drop"),
        says: "databases.pantry.unpreserved must be one of \"refuse\", \"keep\", but is \"drop\""),
    .init(
        .draft, .set("/databases/user/schema", "apps"),
        says: "databases.user.schema must be one of \"release\", \"app\", but is \"apps\". Did you mean \"app\"?"),
    .init(
        .draft, .set("/databases/pantry/preserve/0/columns", ["desc"]),
        says: "databases.pantry.preserve[0].columns must be an object, but is a list"),
    .init(
        .draft, .set("/databases/pantry/preserve/0/columns/desc", .null),
        says: "databases.pantry.preserve[0].columns.desc must be a string, but is null"),

    // Migrations
    .init(
        .draft, .set("/databases/user/migrations", "0002.sql"),
        says: "databases.user.migrations must be a list, but is a string"),
    .init(
        .draft, .set("/databases/user/migrations/0", 2),
        says: "databases.user.migrations[0] must be an object, but is a whole number"),
    .init(
        .draft, .set("/databases/user/migrations/0", "../0002.sql"),
        says: "databases.user.migrations[0] \"../0002.sql\" has a part that begins with '.'"),
    .init(
        .draft, .set("/databases/user/migrations/0", "a/b/c/d/e/f/g/h/0002.sql"),
        says: "databases.user.migrations[0] \"a/b/c/d/e/f/g/h/0002.sql\" has more than eight parts"),
    .init(
        .draft, .set("/databases/user/migrations/1/member", "/0010.sql"),
        says: "databases.user.migrations[1].member \"/0010.sql\" has a part that is empty"),
    .init(
        .draft, .set("/databases/user/migrations/0", "migrations/notes.sql"),
        says: "databases.user.migrations[0] \"migrations/notes.sql\" must have a file name that begins with the"
            + " user_version that it sets. For example: migrations/user/0002-notes.sql."),
    .init(
        .draft, .set("/databases/user/migrations/0", "0000.sql"),
        says: "databases.user.migrations[0] \"0000.sql\" must have a file name that begins with the"
            + " user_version that it sets. For example: migrations/user/0002-notes.sql."),
    .init(
        .draft, .set("/databases/user/migrations/1", "2147483648.sql"),
        says: "databases.user.migrations[1] \"2147483648.sql\" must have a file name that begins with the"
            + " user_version that it sets. For example: migrations/user/0002-notes.sql.",
        beyond: .migrationsLeadTo32Bits),
    .init(
        .draft, .set("/databases/user/migrations/0", "0010-a.sql"),
        says: "databases.user.migrations[1] sets user_version 10, and the migration before it sets 10."
            + " Number the migrations in ascending order.", beyond: .migrationsAscend),
    .init(
        .draft, .set("/databases/user/migrations/0", "0011-a.sql"),
        says: "databases.user.migrations[1] sets user_version 10, and the migration before it sets 11."
            + " Number the migrations in ascending order.", beyond: .migrationsAscend),

    // Caches
    .init(
        .draft, .set("/databases/thumbs/compatible/userVersionAtMost", 1),
        says: "databases.thumbs.compatible.userVersionAtMost is 1, less than userVersionAtLeast, 2",
        beyond: .someVersionIsPossible),
    .init(
        .draft, .set("/databases/thumbs/compatible/userVersionAtLeast", .integer(-1 << 32)),
        says: "databases.thumbs.compatible.userVersionAtLeast must fit in 32 bits, but is -4294967296"),

    // The sources of a draft's databases
    .init(
        .draft, .set("/databases/food/source", "food.db"),
        says: "databases.food.build and \"source\" cannot be used together"),
    .init(
        .draft, .set("/databases/maps/source", 1), says: "databases.maps.source must be a string, but is a whole number"
    ),
    .init(.draft, .remove("/databases/food/build/script"), says: "databases.food.build.script is missing"),
    .init(
        .draft, .set("/databases/food/build/define", "REVISION=5"),
        says: "databases.food.build.define must be an object, but is a string"),
    .init(
        .draft, .set("/databases/food/build/define/REVISION", 5),
        says: "databases.food.build.define.REVISION must be a string, but is a whole number"),
    .init(
        .draft, .set("/databases/food/build/analyze", 1),
        says: "databases.food.build.analyze must be true or false, but is a whole number"),

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
