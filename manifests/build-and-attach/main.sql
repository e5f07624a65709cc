-- Builds main.db from the CSV files next to this script, whose fields are separated by '|'.
CREATE TABLE "group" ("pk" INTEGER PRIMARY KEY NOT NULL, "name" TEXT NOT NULL);
CREATE TABLE "food" ("pk" INTEGER PRIMARY KEY NOT NULL, "group" INTEGER NOT NULL REFERENCES "group", "name" TEXT NOT NULL, "desc" TEXT);
CREATE TABLE "nutrient" ("food" INTEGER PRIMARY KEY NOT NULL REFERENCES "food", "kcal" INTEGER, "protein" REAL, "fat" REAL, "carbohydrate" REAL, "fibre" REAL);
CREATE TABLE "version" ("ver" TEXT);
.mode csv
.separator |
.import group.csv group
.import food.csv food
.import nutrient.csv nutrient
CREATE INDEX idx_food_group ON food ("group" ASC);
CREATE INDEX idx_food_name ON food ("name" ASC);
INSERT INTO version (ver) VALUES ('${release}');
