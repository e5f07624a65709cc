-- GRDB 7 (DatabaseMigrator): migrations, STRICT tables, FTS5 and FTS4 with synchronized triggers, generated columns
-- @skip grdb_migrations
-- @preserve player team document
-- @migrate player
CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
INSERT INTO grdb_migrations VALUES ('v1'), ('v2-search'), ('v3-json');
CREATE TABLE "team" ("id" INTEGER PRIMARY KEY AUTOINCREMENT, "name" TEXT NOT NULL UNIQUE COLLATE NOCASE, "color" TEXT, "founded" TEXT) STRICT;
CREATE TABLE "player" (
  "id" INTEGER PRIMARY KEY AUTOINCREMENT, "teamId" INTEGER REFERENCES "team" ("id") ON DELETE CASCADE, "name" TEXT NOT NULL, "score" INTEGER NOT NULL DEFAULT 0 CHECK ("score" >= 0),
  "rating" REAL, "photo" BLOB, "info" TEXT NOT NULL DEFAULT '{}' CHECK (json_valid("info")), "anything" ANY,
  "bonus" INTEGER GENERATED ALWAYS AS ("score" * 2) VIRTUAL, "word" TEXT GENERATED ALWAYS AS (json_extract("info", '$.word')) STORED) STRICT;
CREATE INDEX "player_on_teamId" ON "player" ("teamId");
CREATE INDEX "player_on_word" ON "player" ("word", "bonus");
CREATE TABLE "document" (
  "uuid" TEXT NOT NULL, "locale" TEXT NOT NULL, "title" TEXT NOT NULL, "body" TEXT NOT NULL, "data" BLOB, PRIMARY KEY ("uuid", "locale")) WITHOUT ROWID;
CREATE TABLE "note" ("id" INTEGER PRIMARY KEY, "title" TEXT, "body" TEXT);
CREATE VIRTUAL TABLE "note_ft" USING fts5(title, body, tokenize='unicode61', content='note', content_rowid='id', prefix='2 4');
CREATE TRIGGER "__note_ft_ai" AFTER INSERT ON "note" BEGIN
  INSERT INTO "note_ft" ("rowid", "title", "body") VALUES (new."id", new."title", new."body");
END;
CREATE TRIGGER "__note_ft_ad" AFTER DELETE ON "note" BEGIN
  INSERT INTO "note_ft" ("note_ft", "rowid", "title", "body") VALUES ('delete', old."id", old."title", old."body");
END;
CREATE TRIGGER "__note_ft_au" AFTER UPDATE ON "note" BEGIN
  INSERT INTO "note_ft" ("note_ft", "rowid", "title", "body") VALUES ('delete', old."id", old."title", old."body");
  INSERT INTO "note_ft" ("rowid", "title", "body") VALUES (new."id", new."title", new."body");
END;
CREATE VIRTUAL TABLE "player_ft" USING fts4(name, tokenize=unicode61 "remove_diacritics=0", content="player");
CREATE TRIGGER "__player_ft_bu" BEFORE UPDATE ON "player" BEGIN DELETE FROM "player_ft" WHERE docid = old."id"; END;
CREATE TRIGGER "__player_ft_bd" BEFORE DELETE ON "player" BEGIN DELETE FROM "player_ft" WHERE docid = old."id"; END;
CREATE TRIGGER "__player_ft_au" AFTER UPDATE ON "player" BEGIN INSERT INTO "player_ft" (docid, "name") VALUES (new."id", new."name"); END;
CREATE TRIGGER "__player_ft_ai" AFTER INSERT ON "player" BEGIN INSERT INTO "player_ft" (docid, "name") VALUES (new."id", new."name"); END;
CREATE VIEW "teamScore" AS SELECT "teamId", sum("score") AS "total", json_group_array("name") AS "names" FROM "player" GROUP BY "teamId";
-- @fill note.body 'text of note ' || :n || ' with fir and oak'
