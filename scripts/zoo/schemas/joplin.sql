-- Joplin 3.0, schema version 47: database.sqlite, with FTS4 over a table that triggers fill
-- @skip version
-- @skip notes_normalized
-- @preserve notes tags resources
-- @fill notes.id printf('%032x', :n)
-- @fill note_resources.resource_id printf('%032x', :n)
CREATE TABLE version (version INTEGER NOT NULL, table_fields_version INTEGER NOT NULL DEFAULT 0);
INSERT INTO version VALUES (47, 47);
CREATE TABLE folders (
  id TEXT PRIMARY KEY, title TEXT NOT NULL DEFAULT '', created_time INT NOT NULL, updated_time INT NOT NULL, user_created_time INT NOT NULL DEFAULT 0,
  user_updated_time INT NOT NULL DEFAULT 0, encryption_cipher_text TEXT NOT NULL DEFAULT '', encryption_applied INT NOT NULL DEFAULT 0, parent_id TEXT NOT NULL DEFAULT '',
  is_shared INT NOT NULL DEFAULT 0, share_id TEXT NOT NULL DEFAULT '', master_key_id TEXT NOT NULL DEFAULT '', icon TEXT NOT NULL DEFAULT '', user_data TEXT NOT NULL DEFAULT '',
  deleted_time INT NOT NULL DEFAULT 0);
CREATE INDEX folders_title ON folders (title);
CREATE INDEX folders_updated_time ON folders (updated_time);
CREATE TABLE notes (
  id TEXT PRIMARY KEY, parent_id TEXT NOT NULL DEFAULT '', title TEXT NOT NULL DEFAULT '', body TEXT NOT NULL DEFAULT '', created_time INT NOT NULL, updated_time INT NOT NULL,
  is_conflict INT NOT NULL DEFAULT 0, latitude NUMERIC NOT NULL DEFAULT 0, longitude NUMERIC NOT NULL DEFAULT 0, altitude NUMERIC NOT NULL DEFAULT 0, author TEXT NOT NULL DEFAULT '',
  source_url TEXT NOT NULL DEFAULT '', is_todo INT NOT NULL DEFAULT 0, todo_due INT NOT NULL DEFAULT 0, todo_completed INT NOT NULL DEFAULT 0, source TEXT NOT NULL DEFAULT '',
  source_application TEXT NOT NULL DEFAULT '', application_data TEXT NOT NULL DEFAULT '', "order" NUMERIC NOT NULL DEFAULT 0, user_created_time INT NOT NULL DEFAULT 0,
  user_updated_time INT NOT NULL DEFAULT 0, encryption_cipher_text TEXT NOT NULL DEFAULT '', encryption_applied INT NOT NULL DEFAULT 0, markup_language INT NOT NULL DEFAULT 1,
  is_shared INT NOT NULL DEFAULT 0, share_id TEXT NOT NULL DEFAULT '', conflict_original_id TEXT NOT NULL DEFAULT '', master_key_id TEXT NOT NULL DEFAULT '', user_data TEXT NOT NULL DEFAULT '',
  deleted_time INT NOT NULL DEFAULT 0);
CREATE INDEX notes_title ON notes (title);
CREATE INDEX notes_updated_time ON notes (updated_time);
CREATE INDEX notes_is_conflict ON notes (is_conflict);
CREATE INDEX notes_is_todo ON notes (is_todo);
CREATE INDEX notes_order ON notes ("order");
CREATE TABLE notes_normalized (
  id TEXT NOT NULL, title TEXT NOT NULL DEFAULT '', body TEXT NOT NULL DEFAULT '', user_created_time INT NOT NULL DEFAULT 0, user_updated_time INT NOT NULL DEFAULT 0,
  is_todo INT NOT NULL DEFAULT 0, todo_completed INT NOT NULL DEFAULT 0, parent_id TEXT NOT NULL DEFAULT '', latitude NUMERIC NOT NULL DEFAULT 0, longitude NUMERIC NOT NULL DEFAULT 0,
  altitude NUMERIC NOT NULL DEFAULT 0, source_url TEXT NOT NULL DEFAULT '', todo_due INT NOT NULL DEFAULT 0);
CREATE INDEX notes_normalized_id ON notes_normalized (id);
CREATE INDEX notes_normalized_user_created_time ON notes_normalized (user_created_time);
CREATE VIRTUAL TABLE notes_fts USING fts4(content="notes_normalized", notindexed="id", notindexed="user_created_time", notindexed="is_todo", id, title, body, user_created_time, is_todo);
CREATE TRIGGER notes_fts_before_update BEFORE UPDATE ON notes_normalized BEGIN DELETE FROM notes_fts WHERE docid = old.rowid; END;
CREATE TRIGGER notes_fts_before_delete BEFORE DELETE ON notes_normalized BEGIN DELETE FROM notes_fts WHERE docid = old.rowid; END;
CREATE TRIGGER notes_after_update AFTER UPDATE ON notes_normalized BEGIN
  INSERT INTO notes_fts (docid, id, title, body, user_created_time, is_todo)
    SELECT rowid, id, title, body, user_created_time, is_todo FROM notes_normalized WHERE new.rowid = notes_normalized.rowid;
END;
CREATE TRIGGER notes_after_insert AFTER INSERT ON notes_normalized BEGIN
  INSERT INTO notes_fts (docid, id, title, body, user_created_time, is_todo)
    SELECT rowid, id, title, body, user_created_time, is_todo FROM notes_normalized WHERE new.rowid = notes_normalized.rowid;
END;
CREATE TABLE items_normalized (id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL DEFAULT '', body TEXT NOT NULL DEFAULT '', item_id TEXT NOT NULL, item_type INT NOT NULL, user_updated_time INT NOT NULL DEFAULT 0, reserved1 INT NULL);
CREATE INDEX items_normalized_item_id ON items_normalized (item_id);
CREATE VIRTUAL TABLE items_fts USING fts4(content="items_normalized", notindexed="id", notindexed="item_id", notindexed="item_type", id, title, body, item_id, item_type);
CREATE TRIGGER items_fts_before_delete BEFORE DELETE ON items_normalized BEGIN DELETE FROM items_fts WHERE docid = old.rowid; END;
CREATE TRIGGER items_after_insert AFTER INSERT ON items_normalized BEGIN
  INSERT INTO items_fts (docid, id, title, body, item_id, item_type) SELECT rowid, id, title, body, item_id, item_type FROM items_normalized WHERE new.rowid = items_normalized.rowid;
END;
CREATE TABLE tags (
  id TEXT PRIMARY KEY, title TEXT NOT NULL DEFAULT '', created_time INT NOT NULL, updated_time INT NOT NULL, user_created_time INT NOT NULL DEFAULT 0, user_updated_time INT NOT NULL DEFAULT 0,
  encryption_cipher_text TEXT NOT NULL DEFAULT '', encryption_applied INT NOT NULL DEFAULT 0, is_shared INT NOT NULL DEFAULT 0, parent_id TEXT NOT NULL DEFAULT '', user_data TEXT NOT NULL DEFAULT '');
CREATE INDEX tags_title ON tags (title);
CREATE TABLE note_tags (
  id TEXT PRIMARY KEY, note_id TEXT NOT NULL, tag_id TEXT NOT NULL, created_time INT NOT NULL, updated_time INT NOT NULL, user_created_time INT NOT NULL DEFAULT 0,
  user_updated_time INT NOT NULL DEFAULT 0, encryption_cipher_text TEXT NOT NULL DEFAULT '', encryption_applied INT NOT NULL DEFAULT 0, is_shared INT NOT NULL DEFAULT 0);
CREATE INDEX note_tags_note_id ON note_tags (note_id);
CREATE INDEX note_tags_tag_id ON note_tags (tag_id);
CREATE VIEW tags_with_note_count AS
  SELECT tags.id AS id, tags.title AS title, tags.created_time AS created_time, count(notes.id) AS note_count,
    sum(CASE WHEN notes.todo_completed > 0 THEN 1 ELSE 0 END) AS todo_completed_count
  FROM tags LEFT JOIN note_tags nt ON nt.tag_id = tags.id LEFT JOIN notes ON notes.id = nt.note_id WHERE notes.id IS NOT NULL AND notes.deleted_time = 0 GROUP BY tags.id;
CREATE TABLE resources (
  id TEXT PRIMARY KEY, title TEXT NOT NULL DEFAULT '', mime TEXT NOT NULL, filename TEXT NOT NULL DEFAULT '', created_time INT NOT NULL, updated_time INT NOT NULL,
  user_created_time INT NOT NULL DEFAULT 0, user_updated_time INT NOT NULL DEFAULT 0, file_extension TEXT NOT NULL DEFAULT '', encryption_cipher_text TEXT NOT NULL DEFAULT '',
  encryption_applied INT NOT NULL DEFAULT 0, encryption_blob_encrypted INT NOT NULL DEFAULT 0, size INT NOT NULL DEFAULT -1, ocr_text TEXT NOT NULL DEFAULT '', ocr_details TEXT NOT NULL DEFAULT '',
  ocr_status INT NOT NULL DEFAULT 0, ocr_error TEXT NOT NULL DEFAULT '');
CREATE TABLE note_resources (
  id INTEGER PRIMARY KEY, note_id TEXT NOT NULL, resource_id TEXT NOT NULL, is_associated INT NOT NULL, last_seen_time INT NOT NULL);
CREATE TABLE settings ("key" TEXT PRIMARY KEY, value TEXT NULL);
CREATE TABLE deleted_items (id INTEGER PRIMARY KEY, item_type INT NOT NULL, item_id TEXT NOT NULL, deleted_time INT NOT NULL, sync_target INT NOT NULL);
CREATE TABLE sync_items (
  id INTEGER PRIMARY KEY, sync_target INT NOT NULL, sync_time INT NOT NULL DEFAULT 0, item_type INT NOT NULL, item_id TEXT NOT NULL, sync_disabled INT NOT NULL DEFAULT 0,
  sync_disabled_reason TEXT NOT NULL DEFAULT '', force_sync INT NOT NULL DEFAULT 0, item_location INT NOT NULL DEFAULT 1, sync_warning_ignored INT NOT NULL DEFAULT 0);
CREATE INDEX sync_items_sync_time ON sync_items (sync_time);
CREATE TABLE item_changes (
  id INTEGER PRIMARY KEY AUTOINCREMENT, item_type INT NOT NULL, item_id TEXT NOT NULL, type INT NOT NULL, created_time INT NOT NULL, source INT NOT NULL DEFAULT 0, before_change_item TEXT NOT NULL DEFAULT '');
CREATE UNIQUE INDEX item_changes_item_id ON item_changes (item_id);
CREATE TABLE revisions (
  id TEXT PRIMARY KEY, parent_id TEXT NOT NULL DEFAULT '', item_type INT NOT NULL, item_id TEXT NOT NULL, item_updated_time INT NOT NULL, title_diff TEXT NOT NULL DEFAULT '',
  body_diff TEXT NOT NULL DEFAULT '', metadata_diff TEXT NOT NULL DEFAULT '', encryption_cipher_text TEXT NOT NULL DEFAULT '', encryption_applied INT NOT NULL DEFAULT 0,
  updated_time INT NOT NULL, created_time INT NOT NULL);
CREATE TABLE alarms (id INTEGER PRIMARY KEY AUTOINCREMENT, note_id TEXT NOT NULL, trigger_time INT NOT NULL);
