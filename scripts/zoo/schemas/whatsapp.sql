-- WhatsApp 2.24 for Android: msgstore.db (chats, messages, full-text index of messages)
-- @skip android_metadata
-- @skip message_ftsv2
-- @preserve chat props message_media
-- @fill message.text_data 'fir oak ' || :n || ' se' || :v
CREATE TABLE android_metadata (locale TEXT);
INSERT INTO android_metadata VALUES ('en_GB');
PRAGMA user_version = 1;
CREATE TABLE props (_id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE, value TEXT);
CREATE TABLE jid (
  _id INTEGER PRIMARY KEY AUTOINCREMENT, user TEXT NOT NULL, server TEXT NOT NULL, agent INTEGER, device INTEGER, type INTEGER, raw_string TEXT);
CREATE UNIQUE INDEX jid_raw_string_index ON jid (raw_string);
CREATE TABLE chat (
  _id INTEGER PRIMARY KEY AUTOINCREMENT, jid_row_id INTEGER UNIQUE, hidden INTEGER, subject TEXT, created_timestamp INTEGER, display_message_row_id INTEGER, last_message_row_id INTEGER,
  last_read_message_row_id INTEGER, archived INTEGER, sort_timestamp INTEGER, mod_tag INTEGER, gen REAL, spam_detection INTEGER, unseen_message_count INTEGER, ephemeral_expiration INTEGER);
CREATE TABLE message (
  _id INTEGER PRIMARY KEY AUTOINCREMENT, chat_row_id INTEGER NOT NULL, from_me INTEGER NOT NULL, key_id TEXT NOT NULL, sender_jid_row_id INTEGER, status INTEGER, broadcast INTEGER,
  recipient_count INTEGER, participant_hash TEXT, origination_flags INTEGER, origin INTEGER, timestamp INTEGER, received_timestamp INTEGER, receipt_server_timestamp INTEGER,
  message_type INTEGER, text_data TEXT, starred INTEGER, lookup_tables INTEGER, message_add_on_flags INTEGER, sort_id INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX message_key_index ON message (chat_row_id, from_me, key_id, sender_jid_row_id);
CREATE INDEX message_chat_id_index ON message (chat_row_id, _id);
CREATE INDEX message_starred_index ON message (starred, sort_id) WHERE starred = 1;
CREATE TABLE message_media (
  message_row_id INTEGER PRIMARY KEY, chat_row_id INTEGER, autotransfer_retry_enabled INTEGER, multicast_id TEXT, media_job_uuid TEXT, transferred INTEGER, transcoded INTEGER,
  file_path TEXT, file_size INTEGER, suspicious_content INTEGER, trim_from INTEGER, trim_to INTEGER, media_key BLOB, media_key_timestamp INTEGER, width INTEGER, height INTEGER,
  has_streaming_sidecar INTEGER, gif_attribution INTEGER, thumbnail_height_width_ratio REAL, direct_path TEXT, first_scan_sidecar BLOB, first_scan_length INTEGER, message_url TEXT,
  mime_type TEXT, file_length INTEGER, media_name TEXT, file_hash TEXT, media_duration INTEGER, page_count INTEGER, enc_file_hash TEXT, original_file_hash TEXT, media_caption TEXT);
CREATE TABLE message_thumbnail (message_row_id INTEGER PRIMARY KEY, thumbnail BLOB);
CREATE TABLE message_quoted (message_row_id INTEGER PRIMARY KEY, chat_row_id INTEGER NOT NULL, parent_message_chat_row_id INTEGER NOT NULL, from_me INTEGER NOT NULL, sender_jid_row_id INTEGER, key_id TEXT NOT NULL, timestamp INTEGER, text_data TEXT);
CREATE TABLE receipt_user (_id INTEGER PRIMARY KEY AUTOINCREMENT, message_row_id INTEGER NOT NULL, receipt_user_jid_row_id INTEGER NOT NULL, receipt_timestamp INTEGER, read_timestamp INTEGER, played_timestamp INTEGER);
CREATE UNIQUE INDEX receipt_user_index ON receipt_user (message_row_id, receipt_user_jid_row_id);
CREATE TABLE group_participant_user (_id INTEGER PRIMARY KEY AUTOINCREMENT, group_jid_row_id INTEGER NOT NULL, user_jid_row_id INTEGER NOT NULL, rank INTEGER, pending INTEGER, add_timestamp INTEGER);
CREATE UNIQUE INDEX group_participant_user_index ON group_participant_user (group_jid_row_id, user_jid_row_id);
CREATE TABLE call_log (_id INTEGER PRIMARY KEY AUTOINCREMENT, jid_row_id INTEGER, from_me INTEGER, call_id TEXT, transaction_id INTEGER, timestamp INTEGER, video_call INTEGER, duration INTEGER, call_result INTEGER, bytes_transferred INTEGER, group_jid_row_id INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX call_log_key_index ON call_log (jid_row_id, from_me, call_id, transaction_id);
CREATE VIRTUAL TABLE message_ftsv2 USING fts4(content, fts_jid, fts_namespace);
CREATE TRIGGER message_bd_for_fts_trigger BEFORE DELETE ON message BEGIN DELETE FROM message_ftsv2 WHERE docid = old._id; END;
CREATE TRIGGER message_bd_for_message_media_trigger BEFORE DELETE ON message BEGIN DELETE FROM message_media WHERE message_row_id = old._id; END;
CREATE TRIGGER message_bd_for_message_thumbnail_trigger BEFORE DELETE ON message BEGIN DELETE FROM message_thumbnail WHERE message_row_id = old._id; END;
CREATE TRIGGER message_bd_for_receipt_user_trigger BEFORE DELETE ON message BEGIN DELETE FROM receipt_user WHERE message_row_id = old._id; END;
CREATE TRIGGER message_ai_for_fts AFTER INSERT ON message WHEN new.text_data IS NOT NULL BEGIN
  INSERT INTO message_ftsv2 (docid, content, fts_jid, fts_namespace) VALUES (new._id, new.text_data, new.chat_row_id, 'text');
END;
CREATE VIEW chat_view AS
  SELECT c._id AS _id, j.raw_string AS raw_string_jid, c.hidden AS hidden, c.subject AS subject, c.sort_timestamp AS sort_timestamp, c.archived AS archived
  FROM chat c LEFT JOIN jid j ON c.jid_row_id = j._id;
CREATE VIEW available_message_view AS SELECT m.*, c.subject AS chat_subject FROM message m JOIN chat c ON c._id = m.chat_row_id WHERE m.message_type >= 0;
