-- What the user eats: an empty template. A food is known by its pk in the shipped database.
CREATE TABLE "diary" ("pk" INTEGER PRIMARY KEY, "day" TEXT NOT NULL, "food" INTEGER NOT NULL, "grams" INTEGER NOT NULL);
