-- Messages on macOS 13: chat.db, with triggers that call functions of the app
-- @function delete_attachment_path 1
-- @function delete_chat_background 1
-- @function after_delete_message_plugin 2
-- @function verify_chat 1
-- @function add_attachment_path 1
-- @skip deleted_messages
-- @skip sync_deleted_messages
-- @preserve message handle chat
-- @fill message.associated_message_guid NULL
-- @fill message.handle_id :n
CREATE TABLE _SqliteDatabaseProperties (key TEXT, value TEXT, UNIQUE (key));
CREATE TABLE deleted_messages (ROWID INTEGER PRIMARY KEY AUTOINCREMENT UNIQUE, guid TEXT NOT NULL);
CREATE TABLE sync_deleted_messages (ROWID INTEGER PRIMARY KEY AUTOINCREMENT UNIQUE, guid TEXT NOT NULL, recordID TEXT);
CREATE TABLE handle (
  ROWID INTEGER PRIMARY KEY AUTOINCREMENT UNIQUE, id TEXT NOT NULL, country TEXT, service TEXT NOT NULL, uncanonicalized_id TEXT, person_centric_id TEXT, UNIQUE (id, service));
CREATE TABLE chat (
  ROWID INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT UNIQUE NOT NULL, style INTEGER, state INTEGER, account_id TEXT, properties BLOB, chat_identifier TEXT, service_name TEXT, room_name TEXT,
  account_login TEXT, is_archived INTEGER DEFAULT 0, last_addressed_handle TEXT, display_name TEXT, group_id TEXT, is_filtered INTEGER DEFAULT 0, successful_query INTEGER, engram_id TEXT,
  server_change_token TEXT, ck_sync_state INTEGER DEFAULT 0, original_group_id TEXT, last_read_message_timestamp INTEGER DEFAULT 0, cloudkit_record_id TEXT, is_blackholed INTEGER DEFAULT 0);
CREATE TABLE message (
  ROWID INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT UNIQUE NOT NULL, text TEXT, replace INTEGER DEFAULT 0, service_center TEXT, handle_id INTEGER DEFAULT 0, subject TEXT, country TEXT,
  attributedBody BLOB, version INTEGER DEFAULT 0, type INTEGER DEFAULT 0, service TEXT, account TEXT, account_guid TEXT, error INTEGER DEFAULT 0, date INTEGER, date_read INTEGER,
  date_delivered INTEGER, is_delivered INTEGER DEFAULT 0, is_finished INTEGER DEFAULT 0, is_from_me INTEGER DEFAULT 0, is_empty INTEGER DEFAULT 0, is_read INTEGER DEFAULT 0,
  cache_has_attachments INTEGER DEFAULT 0, cache_roomnames TEXT, item_type INTEGER DEFAULT 0, other_handle INTEGER DEFAULT 0, group_title TEXT, associated_message_guid TEXT,
  associated_message_type INTEGER DEFAULT 0, balloon_bundle_id TEXT, payload_data BLOB, expressive_send_style_id TEXT, destination_caller_id TEXT, ck_record_id TEXT,
  thread_originator_guid TEXT, date_retracted INTEGER DEFAULT 0, date_edited INTEGER DEFAULT 0);
CREATE TABLE attachment (
  ROWID INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT UNIQUE NOT NULL, created_date INTEGER DEFAULT 0, start_date INTEGER DEFAULT 0, filename TEXT, uti TEXT, mime_type TEXT,
  transfer_state INTEGER DEFAULT 0, is_outgoing INTEGER DEFAULT 0, user_info BLOB, transfer_name TEXT, total_bytes INTEGER DEFAULT 0, is_sticker INTEGER DEFAULT 0, hide_attachment INTEGER DEFAULT 0,
  ck_sync_state INTEGER DEFAULT 0, original_guid TEXT UNIQUE NOT NULL);
CREATE TABLE chat_handle_join (
  chat_id INTEGER REFERENCES chat (ROWID) ON DELETE CASCADE, handle_id INTEGER REFERENCES handle (ROWID) ON DELETE CASCADE, UNIQUE (chat_id, handle_id));
CREATE TABLE message_attachment_join (
  message_id INTEGER REFERENCES message (ROWID) ON DELETE CASCADE, attachment_id INTEGER REFERENCES attachment (ROWID) ON DELETE CASCADE, UNIQUE (message_id, attachment_id));
CREATE TABLE chat_message_join (
  chat_id INTEGER REFERENCES chat (ROWID) ON DELETE CASCADE, message_id INTEGER REFERENCES message (ROWID) ON DELETE CASCADE, message_date INTEGER DEFAULT 0, PRIMARY KEY (chat_id, message_id));
CREATE TABLE message_processing_task (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT NOT NULL, task_flags INTEGER NOT NULL);
CREATE INDEX message_idx_date ON message (date);
CREATE INDEX message_idx_handle ON message (handle_id, date);
CREATE INDEX message_idx_failed ON message (is_finished, is_from_me, error);
CREATE INDEX message_idx_isRead_isFromMe_itemType ON message (is_read, is_from_me, item_type);
CREATE INDEX message_idx_associated_message ON message (associated_message_guid);
CREATE INDEX message_idx_undelivered ON message (date) WHERE is_delivered = 0 AND is_from_me = 1;
CREATE INDEX chat_idx_chat_identifier_service_name ON chat (chat_identifier, service_name);
CREATE INDEX chat_handle_join_idx_handle_id ON chat_handle_join (handle_id);
CREATE INDEX chat_message_join_idx_message_date_id_chat_id ON chat_message_join (chat_id, message_date, message_id);
CREATE INDEX message_attachment_join_idx_attachment_id ON message_attachment_join (attachment_id);
CREATE TRIGGER after_delete_on_attachment AFTER DELETE ON attachment BEGIN SELECT delete_attachment_path(old.filename); END;
CREATE TRIGGER after_delete_on_chat_handle_join AFTER DELETE ON chat_handle_join BEGIN
  DELETE FROM handle WHERE handle.ROWID = old.handle_id AND (SELECT 1 FROM chat_handle_join WHERE handle_id = old.handle_id LIMIT 1) IS NULL
    AND (SELECT 1 FROM message WHERE handle_id = old.handle_id LIMIT 1) IS NULL;
END;
CREATE TRIGGER after_delete_on_message AFTER DELETE ON message BEGIN
  DELETE FROM handle WHERE handle.ROWID = old.handle_id AND (SELECT 1 FROM chat_handle_join WHERE handle_id = old.handle_id LIMIT 1) IS NULL
    AND (SELECT 1 FROM message WHERE handle_id = old.handle_id LIMIT 1) IS NULL;
END;
CREATE TRIGGER after_delete_on_message_plugin AFTER DELETE ON message WHEN old.balloon_bundle_id IS NOT NULL BEGIN
  SELECT after_delete_message_plugin(old.balloon_bundle_id, old.guid);
END;
CREATE TRIGGER after_insert_on_chat_message_join AFTER INSERT ON chat_message_join BEGIN
  UPDATE message SET cache_has_attachments = EXISTS (SELECT * FROM message_attachment_join WHERE message_id = new.message_id) WHERE ROWID = new.message_id;
END;
CREATE TRIGGER after_insert_on_message_attachment_join AFTER INSERT ON message_attachment_join BEGIN
  UPDATE message SET cache_has_attachments = 1 WHERE message.ROWID = new.message_id;
END;
CREATE TRIGGER add_to_deleted_messages AFTER DELETE ON message BEGIN INSERT INTO deleted_messages (guid) VALUES (old.guid); END;
CREATE TRIGGER update_message_date_after_update_on_message AFTER UPDATE OF date ON message BEGIN
  UPDATE chat_message_join SET message_date = new.date WHERE message_id = new.ROWID AND message_date != new.date;
END;
CREATE TABLE kvtable (ROWID INTEGER PRIMARY KEY AUTOINCREMENT UNIQUE, key TEXT UNIQUE NOT NULL, value BLOB NOT NULL);
CREATE TABLE chat_recoverable_message_join (
  chat_id INTEGER REFERENCES chat (ROWID) ON DELETE CASCADE, message_id INTEGER REFERENCES message (ROWID) ON DELETE CASCADE, delete_date INTEGER, ck_sync_state INTEGER DEFAULT 0, PRIMARY KEY (chat_id, message_id), CHECK (delete_date != 0));
CREATE TABLE unsynced_removed_recoverable_messages (ROWID INTEGER PRIMARY KEY AUTOINCREMENT UNIQUE, chat_guid TEXT NOT NULL, message_guid TEXT NOT NULL, part_index INTEGER);
CREATE TABLE recoverable_message_part (
  chat_id INTEGER REFERENCES chat (ROWID) ON DELETE CASCADE, message_id INTEGER REFERENCES message (ROWID) ON DELETE CASCADE, part_index INTEGER, delete_date INTEGER, part_text BLOB NOT NULL, ck_sync_state INTEGER DEFAULT 0,
  PRIMARY KEY (chat_id, message_id, part_index), CHECK (delete_date != 0));
CREATE TABLE sync_deleted_chats (ROWID INTEGER PRIMARY KEY AUTOINCREMENT UNIQUE, guid TEXT NOT NULL, recordID TEXT, timestamp INTEGER);
CREATE TABLE sync_deleted_attachments (ROWID INTEGER PRIMARY KEY AUTOINCREMENT UNIQUE, guid TEXT NOT NULL, recordID TEXT);
-- @fill chat_recoverable_message_join.delete_date 7000 + :n
-- @fill recoverable_message_part.delete_date 7000 + :n
