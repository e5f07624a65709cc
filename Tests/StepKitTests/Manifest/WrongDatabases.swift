import MoultBasics
import StepKit

/// Errors in the databases of a manifest, tested with drafts, and errors that only the databases of drafts can have.
let wrongDraftDatabases: [WrongManifest] = [
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
    // A field of earlier versions, which a sealed manifest may still have
    .init(
        .draft, .set("/databases/pantry/replace", "live"),
        says: "databases.pantry.replace is not a known field. Did you mean \"place\"?"),

    .init(
        .draft, .remove("/databases/pantry/preserve"),
        says:
            "databases.pantry.preserve is missing: rows that it does not select leave the database with the next release."
            + " List the tables whose rows the app writes, such as \"preserve\": [{ \"table\": \"note\" }],"
            + " or if the app writes none: \"preserve\": []"),

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
]
