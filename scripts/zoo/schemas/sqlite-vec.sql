-- sqlite-vec 0.1.6: vectors of an app for language models, in a table of the module vec0 with its parts, beside FTS5 over the texts
-- @module CREATE VIRTUAL TABLE vec_chunks USING vec0(chunk_id INTEGER PRIMARY KEY, embedding FLOAT[384])
-- @skip vec_chunks_info
-- @fill chunks.position :n
-- @preserve documents chunks
-- @migrate documents
CREATE TABLE documents (id INTEGER PRIMARY KEY, uri TEXT NOT NULL UNIQUE, title TEXT, meta TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(meta)), added TEXT GENERATED ALWAYS AS (meta ->> '$.word') VIRTUAL);
CREATE TABLE chunks (id INTEGER PRIMARY KEY, document INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE, position INTEGER NOT NULL, text TEXT NOT NULL, UNIQUE (document, position));
CREATE VIRTUAL TABLE chunks_fts USING fts5(text, content='chunks', content_rowid='id', tokenize='trigram');
CREATE TRIGGER chunks_insert AFTER INSERT ON chunks BEGIN INSERT INTO chunks_fts (rowid, text) VALUES (new.id, new.text); END;
CREATE TRIGGER chunks_delete AFTER DELETE ON chunks BEGIN INSERT INTO chunks_fts (chunks_fts, rowid, text) VALUES ('delete', old.id, old.text); END;
CREATE TABLE "vec_chunks_info" (key TEXT PRIMARY KEY, value ANY);
INSERT INTO vec_chunks_info VALUES ('CREATE_VERSION', 'v0.1.6'), ('CREATE_VERSION_MAJOR', 0), ('CREATE_VERSION_MINOR', 1), ('CREATE_VERSION_PATCH', 6);
CREATE TABLE "vec_chunks_chunks" (chunk_id INTEGER PRIMARY KEY AUTOINCREMENT, size INTEGER NOT NULL, validity BLOB NOT NULL, rowids BLOB NOT NULL);
CREATE TABLE "vec_chunks_rowids" (rowid INTEGER PRIMARY KEY AUTOINCREMENT, id, chunk_id INTEGER, chunk_offset INTEGER);
CREATE TABLE "vec_chunks_vector_chunks00" (rowid PRIMARY KEY, vectors BLOB NOT NULL);
