import MoultBasics
import StepKit

/// Errors that only sealed manifests can have.
let wrongSealed: [WrongManifest] = [
    .init(.sealed, .remove("/sequence"), says: "sequence is missing. To make a release from a draft: moult pack"),
    .init(
        .sealed, .set("/databases/food/proved/sqlite", "3.40 and more"),
        says: "databases.food.proved.sqlite must be a version of SQLite, such as 3.40.1"),
    .init(.sealed, .remove("/databases/food/proved/check"), says: "databases.food.proved.check is missing"),
    .init(
        .sealed, .remove("/bundle"),
        says:
            "bundle is missing, and databases.food does not have \"place\": \"in-place\". To make a release from a draft: moult pack"
    ),
    .init(.sealed, .remove("/bundle/size"), says: "bundle.size is missing. To make a release from a draft: moult pack"),
    .init(
        .sealed, .remove("/bundle/sha256"), says: "bundle.sha256 is missing. To make a release from a draft: moult pack"
    ),
    .init(
        .sealed, .remove("/databases/food/member"),
        says: "databases.food.member is missing. To make a release from a draft: moult pack"),
    .init(
        .sealed, .remove("/databases/maps/size"),
        says: "databases.maps.size is missing. To make a release from a draft: moult pack"),
    .init(
        .sealed, .remove("/databases/food/sha256"),
        says: "databases.food.sha256 is missing. To make a release from a draft: moult pack"),
    .init(
        .sealed, .set("/databases/user/migrations/0", "0002.sql"),
        says: "databases.user.migrations[0] must be an object with member, size and sha256."
            + " To make a release from a draft: moult pack"),
    .init(
        .sealed, .remove("/databases/user/migrations/1/sha256"),
        says: "databases.user.migrations[1].sha256 is missing. To make a release from a draft: moult pack"),
    .init(
        .sealed, .set("/databases/food/kind", "overlay"),
        says: "databases.food.kind must be one of \"reference\", \"shared\", \"user\", \"cache\", but is \"overlay\""),
    .init(
        .sealed, .set("/manifest", 2),
        says: "manifest is format 2, and this version of moult reads format 1. Install a newer moult."),
    .init(
        .sealed, .set("/overlays", [:]), .set("/critical", ["overlays"]),
        says:
            "overlays is not known to this version of moult, and the manifest says that it is critical. Install a newer moult.",
        beyond: .criticalFieldsAreKnown),
    .init(
        .sealed, .set("/databases/food/overlay", 1), .set("/critical", ["patches", "databases.food.overlay"]),
        says: "databases.food.overlay is not known to this version of moult, and the manifest says that it is critical."
            + " Install a newer moult.", beyond: .criticalFieldsAreKnown),
    .init(
        .sealed, .set("/requires/glibc", ">=2"), .set("/critical", ["glibc"]),
        says: "requires.glibc is not known to this version of moult, and the manifest says that it is critical."
            + " Install a newer moult.", beyond: .criticalFieldsAreKnown),
    .init(
        .sealed, .set("/databases/thumbs/path", "Food.db"),
        says: "databases.thumbs.path \"Food.db\" differs from databases.food.path only in case."
            + " Give one of them a different path.", beyond: .namesDifferByMoreThanCase),
]
