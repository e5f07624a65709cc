-- Signal Desktop 7.30, schema version 1220: messages with generated columns over JSON, FTS5 with a tokenizer of its own
-- @tokenizer 'signal_tokenizer' 'unicode61'
-- @function uuidV4 0
-- @skip messages_fts
-- @preserve conversations reactions items
-- @migrate items
-- @fill messages.json '{"id": "m' || :n || '", "body": "oak ' || :n || '", "expireTimer": ' || (:n % 5 * 60) || ', "sourceServiceId": "s", "seenStatus": ' || (:n % 3) || ', "v": ' || :v || '}'
-- @fill messages.conversationId 'c' || (:n % 40 + 1)
-- @fill messages.body 'fir se' || :n || ' oak ' || :v
-- @fill messages.expireTimer :n % 5 * 60
-- @fill messages.type CASE :n % 3 WHEN 0 THEN 'incoming' WHEN 1 THEN 'outgoing' ELSE 'story' END
-- @fill conversations.id 'c' || :n
PRAGMA user_version = 1220;
CREATE TABLE conversations (
  id STRING PRIMARY KEY ASC, json TEXT, active_at INTEGER, type STRING, members TEXT, name TEXT, profileName TEXT, profileFamilyName TEXT, profileFullName TEXT,
  e164 TEXT, serviceId TEXT, groupId TEXT, profileLastFetchedAt INTEGER, expireTimerVersion INTEGER NOT NULL DEFAULT 1);
CREATE TABLE messages (
  rowid INTEGER PRIMARY KEY ASC, id STRING UNIQUE, json TEXT, readStatus INTEGER, expires_at INTEGER, sent_at INTEGER, schemaVersion INTEGER, conversationId STRING,
  received_at INTEGER, source STRING, hasAttachments INTEGER, hasFileAttachments INTEGER, hasVisualMediaAttachments INTEGER, expireTimer INTEGER,
  expirationStartTimestamp INTEGER, type STRING, body TEXT, messageTimer INTEGER, messageTimerStart INTEGER, messageTimerExpiresAt INTEGER, isErased INTEGER,
  isViewOnce INTEGER, sourceServiceId TEXT, serverGuid STRING NULL, sourceDevice INTEGER, storyId STRING,
  isStory INTEGER GENERATED ALWAYS AS (type IS 'story'),
  isChangeCreatedByUs INTEGER NOT NULL DEFAULT 0,
  isTimerChangeFromSync INTEGER GENERATED ALWAYS AS (json_extract(json, '$.expirationTimerUpdate.fromSync') IS 1),
  seenStatus NUMBER DEFAULT 0, storyDistributionListId STRING,
  expiresAt INT GENERATED ALWAYS AS (ifnull(expirationStartTimestamp + (expireTimer * 1000), 9007199254740991)),
  isUserInitiatedMessage INTEGER GENERATED ALWAYS AS (type IS NULL OR type NOT IN ('change-number-notification', 'group-v2-change', 'keychange', 'profile-change', 'verified-change')),
  mentionsMe INTEGER NOT NULL DEFAULT 0,
  isGroupLeaveEvent INTEGER GENERATED ALWAYS AS (type IS 'group-v2-change' AND json_array_length(json_extract(json, '$.groupV2Change.details')) IS 1),
  isGroupLeaveEventFromOther INTEGER GENERATED ALWAYS AS (isGroupLeaveEvent IS 1 AND isChangeCreatedByUs IS 0),
  callId TEXT GENERATED ALWAYS AS (json_extract(json, '$.callId')),
  shouldAffectPreview INTEGER GENERATED ALWAYS AS (type IS NULL OR type NOT IN ('change-number-notification', 'keychange', 'story')),
  shouldAffectActivity INTEGER GENERATED ALWAYS AS (type IS NULL OR type NOT IN ('keychange', 'profile-change')));
CREATE INDEX messages_conversation ON messages (conversationId, isStory, storyId, received_at, sent_at);
CREATE INDEX messages_preview ON messages (conversationId, shouldAffectPreview, isGroupLeaveEventFromOther, received_at, sent_at);
CREATE INDEX messages_unread ON messages (conversationId, readStatus, isStory, storyId) WHERE readStatus IS NOT NULL;
CREATE INDEX messages_expires_at ON messages (expiresAt);
CREATE INDEX messages_call ON messages (conversationId, type, callId);
CREATE INDEX messages_searchOrder ON messages (received_at, sent_at);
CREATE INDEX messages_unseen_no_story ON messages (conversationId, seenStatus, isStory, received_at, sent_at) WHERE seenStatus IS NOT NULL;
CREATE VIRTUAL TABLE messages_fts USING fts5(body, tokenize='signal_tokenizer');
CREATE TRIGGER messages_on_insert AFTER INSERT ON messages WHEN new.isViewOnce IS NOT 1 AND new.storyId IS NULL BEGIN
  INSERT INTO messages_fts (rowid, body) VALUES (new.rowid, new.body);
END;
CREATE TRIGGER messages_on_delete AFTER DELETE ON messages BEGIN
  DELETE FROM messages_fts WHERE rowid = old.rowid;
  DELETE FROM sendLogPayloads WHERE id IN (SELECT payloadId FROM sendLogMessageIds WHERE messageId = old.id);
  DELETE FROM reactions WHERE rowid IN (SELECT rowid FROM reactions WHERE messageId = old.id);
END;
CREATE TRIGGER messages_on_update AFTER UPDATE ON messages WHEN (new.body IS NULL OR old.body IS NOT new.body) AND new.isViewOnce IS NOT 1 AND new.storyId IS NULL BEGIN
  DELETE FROM messages_fts WHERE rowid = old.rowid;
  INSERT INTO messages_fts (rowid, body) VALUES (new.rowid, new.body);
END;
CREATE TABLE items (id STRING PRIMARY KEY ASC, json TEXT);
CREATE TABLE identityKeys (id STRING PRIMARY KEY ASC, json TEXT);
CREATE TABLE sessions (
  id TEXT PRIMARY KEY, conversationId TEXT, ourServiceId STRING, serviceId STRING, json TEXT, record BLOB);
CREATE TABLE signedPreKeys (id STRING PRIMARY KEY ASC, json TEXT, ourServiceId NUMBER GENERATED ALWAYS AS (json_extract(json, '$.n')));
CREATE TABLE reactions (
  conversationId STRING, emoji STRING, fromId STRING, messageReceivedAt INTEGER, targetAuthorAci STRING, targetTimestamp INTEGER, unread INTEGER, messageId STRING,
  timestamp NUMBER);
CREATE INDEX reactions_unread ON reactions (unread, conversationId);
CREATE TABLE sendLogPayloads (id INTEGER PRIMARY KEY ASC, timestamp INTEGER NOT NULL, contentHint INTEGER NOT NULL, proto BLOB NOT NULL, urgent INTEGER, hasPniSignatureMessage INTEGER DEFAULT 0 NOT NULL);
CREATE TABLE sendLogMessageIds (
  messageId STRING NOT NULL, payloadId INTEGER NOT NULL, PRIMARY KEY (messageId, payloadId),
  CONSTRAINT sendLogMessageIdsForeignKey FOREIGN KEY (payloadId) REFERENCES sendLogPayloads (id) ON DELETE CASCADE);
CREATE TABLE storyDistributions (
  id STRING PRIMARY KEY NOT NULL, name TEXT, senderKeyInfoJson STRING, deletedAtTimestamp INTEGER, allowsReplies INTEGER, isBlockList INTEGER, storageID STRING,
  storageVersion INTEGER, storageUnknownFields BLOB, storageNeedsSync INTEGER) WITHOUT ROWID;
CREATE TABLE callsHistory (
  callId TEXT PRIMARY KEY, peerId TEXT NOT NULL, ringerId TEXT DEFAULT NULL, mode TEXT NOT NULL, type TEXT NOT NULL, direction TEXT NOT NULL, status TEXT NOT NULL,
  timestamp INTEGER NOT NULL, UNIQUE (callId, peerId) ON CONFLICT FAIL);
CREATE TABLE attachment_downloads (
  messageId TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE, attachmentType TEXT NOT NULL, digest TEXT NOT NULL, receivedAt INTEGER NOT NULL, sentAt INTEGER NOT NULL,
  contentType TEXT NOT NULL, size INTEGER NOT NULL, attachmentJson TEXT NOT NULL, active INTEGER NOT NULL, attempts INTEGER NOT NULL, retryAfter INTEGER, lastAttemptTimestamp INTEGER,
  PRIMARY KEY (messageId, attachmentType, digest)) STRICT;
