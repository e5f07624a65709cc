-- The user's diary: an empty template. Foods are identified by their pk in the shipped database.
CREATE TABLE "diary" ("pk" INTEGER PRIMARY KEY, "day" TEXT NOT NULL, "food" INTEGER NOT NULL, "grams" INTEGER NOT NULL);
