-- sqflite 2.3 (Flutter): the database of a diary app in UTF-16, with FTS4 and a full-text index that stores no text
-- @encoding UTF-16le
-- @skip android_metadata
-- @skip search
-- @preserve entry tag
PRAGMA user_version = 12;
CREATE TABLE android_metadata (locale TEXT);
INSERT INTO android_metadata VALUES ('da_DK');
CREATE TABLE entry (_id INTEGER PRIMARY KEY AUTOINCREMENT, day TEXT NOT NULL, title TEXT, body TEXT, mood REAL, starred INTEGER NOT NULL DEFAULT 0 CHECK (starred IN (0, 1)));
CREATE INDEX entry_title ON entry (lower(title)) WHERE title IS NOT NULL;
CREATE TABLE photo (_id INTEGER PRIMARY KEY, entry INTEGER NOT NULL REFERENCES entry (_id) ON DELETE CASCADE, name TEXT NOT NULL COLLATE NOCASE UNIQUE, bytes BLOB);
CREATE TABLE tag (name TEXT PRIMARY KEY, color INTEGER, caption TEXT GENERATED ALWAYS AS ('#' || name) STORED) WITHOUT ROWID;
CREATE TABLE entry_tag (entry INTEGER NOT NULL REFERENCES entry (_id), tag TEXT NOT NULL REFERENCES tag (name), PRIMARY KEY (entry, tag)) WITHOUT ROWID;
CREATE VIRTUAL TABLE entry_fts USING fts4(content="entry", title, body, tokenize=porter);
CREATE TRIGGER entry_bu BEFORE UPDATE ON entry BEGIN DELETE FROM entry_fts WHERE docid = old._id; END;
CREATE TRIGGER entry_bd BEFORE DELETE ON entry BEGIN DELETE FROM entry_fts WHERE docid = old._id; END;
CREATE TRIGGER entry_au AFTER UPDATE ON entry BEGIN INSERT INTO entry_fts (docid, title, body) VALUES (new._id, new.title, new.body); END;
CREATE TRIGGER entry_ai AFTER INSERT ON entry BEGIN INSERT INTO entry_fts (docid, title, body) VALUES (new._id, new.title, new.body); END;
CREATE VIRTUAL TABLE search USING fts5(words, content='');
CREATE TRIGGER photo_ai AFTER INSERT ON photo BEGIN INSERT INTO search (rowid, words) VALUES (new._id, new.name); END;
