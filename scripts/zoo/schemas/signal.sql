-- Signal Desktop of 2026: generated columns and triggers over JSON, STRICT tables, FTS5 with a tokenizer that only Signal has
-- @tokenizer 'signal_tokenizer' 'unicode61'
-- @skip messages_fts
-- @skip mentions
-- @skip attachment_downloads_backup_stats
-- @preserve conversations reactions badges
-- @migrate badges
-- @fill messages.json '{"body": "oak ' || :n || '", "callId": "k' || :n || '", "preview": [' || (CASE WHEN :n % 4 = 0 THEN '{}' ELSE '' END) || '], "bodyRanges": [{"mentionAci": "a' || :n || '", "start": ' || (:n % 9) || ', "length": 1}], "poll": ' || (CASE WHEN :n % 5 = 0 THEN '{"question": "fir or oak ' || :v || '?"}' ELSE 'null' END) || '}'
-- @fill messages.conversationId 'c' || (:n % 40 + 1)
-- @fill messages.body 'fir se' || :n || ' oak ' || :v
-- @fill messages.expireTimer CASE WHEN :n % 3 THEN :n % 5 * 60 END
-- @fill messages.isViewOnce :n % 13 = 0
-- @fill messages.storyId NULL
-- @fill messages.type CASE :n % 3 WHEN 0 THEN 'incoming' WHEN 1 THEN 'outgoing' ELSE 'call-history' END
-- @fill conversations.id 'c' || :n
-- @fill kyberPreKey_triples.signedPreKeyId :n
CREATE TABLE attachment_backup_jobs (
  mediaName TEXT NOT NULL PRIMARY KEY, type TEXT NOT NULL, data TEXT NOT NULL, receivedAt INTEGER NOT NULL, attempts INTEGER NOT NULL, active INTEGER NOT NULL, retryAfter INTEGER, lastAttemptTimestamp INTEGER) STRICT;
CREATE INDEX attachment_backup_jobs_receivedAt ON attachment_backup_jobs (receivedAt);
CREATE INDEX attachment_backup_jobs_type_receivedAt ON attachment_backup_jobs (type, receivedAt);
CREATE TABLE "attachment_downloads" (
  messageId TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE, attachmentType TEXT NOT NULL, attachmentSignature TEXT NOT NULL, receivedAt INTEGER NOT NULL, sentAt INTEGER NOT NULL, contentType TEXT NOT NULL, size INTEGER NOT NULL,
  attachmentJson TEXT NOT NULL, active INTEGER NOT NULL, attempts INTEGER NOT NULL, retryAfter INTEGER, lastAttemptTimestamp INTEGER, source TEXT NOT NULL DEFAULT standard, ciphertextSize INTEGER NOT NULL DEFAULT 0,
  originalSource TEXT NOT NULL DEFAULT standard, PRIMARY KEY (messageId, attachmentType, attachmentSignature)) STRICT;
CREATE INDEX attachment_downloads_active_messageId ON attachment_downloads (active, messageId);
CREATE INDEX attachment_downloads_active_source_receivedAt ON attachment_downloads (active, source, receivedAt);
CREATE INDEX attachment_downloads_source_ciphertextSize ON attachment_downloads (source, ciphertextSize);
CREATE TABLE attachment_downloads_backup_stats (id INTEGER PRIMARY KEY CHECK (id = 0), totalBytes INTEGER NOT NULL, completedBytes INTEGER NOT NULL) STRICT;
INSERT INTO attachment_downloads_backup_stats VALUES (0, 0, 0);
CREATE TRIGGER attachment_downloads_backup_job_insert AFTER INSERT ON attachment_downloads WHEN new.originalSource = 'backup_import' BEGIN
  UPDATE attachment_downloads_backup_stats SET totalBytes = totalBytes + new.ciphertextSize;
END;
CREATE TRIGGER attachment_downloads_backup_job_delete AFTER DELETE ON attachment_downloads WHEN old.originalSource = 'backup_import' BEGIN
  UPDATE attachment_downloads_backup_stats SET completedBytes = completedBytes + old.ciphertextSize WHERE id = 0;
END;
CREATE TABLE attachments_protected_from_deletion (path TEXT NOT NULL, messageId TEXT NOT NULL, PRIMARY KEY (path, messageId)) STRICT;
CREATE TABLE backup_cdn_object_metadata (mediaId TEXT NOT NULL PRIMARY KEY, cdnNumber INTEGER NOT NULL, sizeOnBackupCdn INTEGER) STRICT;
CREATE TABLE badges (id TEXT PRIMARY KEY, category TEXT NOT NULL, name TEXT NOT NULL, descriptionTemplate TEXT NOT NULL);
CREATE TABLE badgeImageFiles (badgeId TEXT REFERENCES badges (id) ON DELETE CASCADE ON UPDATE CASCADE, 'order' INTEGER NOT NULL, url TEXT NOT NULL, localPath TEXT, theme TEXT NOT NULL);
CREATE TABLE callLinks (
  roomId TEXT NOT NULL PRIMARY KEY, rootKey BLOB NOT NULL, adminKey BLOB, name TEXT NOT NULL, restrictions INTEGER NOT NULL, revoked INTEGER NOT NULL, expiration INTEGER, deleted INTEGER NOT NULL DEFAULT 0, storageID TEXT,
  storageVersion INTEGER, storageUnknownFields BLOB, storageNeedsSync INTEGER NOT NULL DEFAULT 0, deletedAt INTEGER) STRICT;
CREATE INDEX callLinks_adminKey ON callLinks (adminKey);
CREATE INDEX callLinks_deleted ON callLinks (deleted, roomId);
CREATE TABLE callsHistory (
  callId TEXT PRIMARY KEY, peerId TEXT NOT NULL, ringerId TEXT DEFAULT NULL, mode TEXT NOT NULL, type TEXT NOT NULL, direction TEXT NOT NULL, status TEXT NOT NULL, timestamp INTEGER NOT NULL, startedById TEXT DEFAULT NULL,
  endedTimestamp INTEGER DEFAULT NULL, UNIQUE (callId, peerId) ON CONFLICT FAIL);
CREATE INDEX callsHistory_byConversation_order ON callsHistory (peerId, timestamp DESC, callId);
CREATE INDEX callsHistory_callAndGroupInfo_optimize ON callsHistory (direction, peerId, timestamp DESC, status);
CREATE INDEX callsHistory_incoming_missed ON callsHistory (callId, status, direction) WHERE status IS 'Missed' AND direction IS 'Incoming';
CREATE INDEX callsHistory_order ON callsHistory (timestamp DESC, callId, peerId);
CREATE TABLE chatFolders (
  id TEXT NOT NULL PRIMARY KEY, folderType INTEGER NOT NULL, name TEXT NOT NULL, position INTEGER NOT NULL, showOnlyUnread INTEGER NOT NULL, showMutedChats INTEGER NOT NULL, includeAllIndividualChats INTEGER NOT NULL,
  includeAllGroupChats INTEGER NOT NULL, includedConversationIds TEXT NOT NULL, excludedConversationIds TEXT NOT NULL, deletedAtTimestampMs INTEGER NOT NULL, storageID TEXT, storageVersion INTEGER, storageUnknownFields BLOB,
  storageNeedsSync INTEGER NOT NULL) STRICT;
CREATE INDEX chatFolders_by_position ON chatFolders (position);
CREATE TABLE conversations (
  id STRING PRIMARY KEY ASC, json TEXT, active_at INTEGER, type STRING, members TEXT, name TEXT, profileName TEXT, profileFamilyName TEXT, profileFullName TEXT, e164 TEXT, serviceId TEXT, groupId TEXT, profileLastFetchedAt INTEGER,
  expireTimerVersion INTEGER NOT NULL DEFAULT 1);
CREATE INDEX conversations_active ON conversations (active_at) WHERE active_at IS NOT NULL;
CREATE INDEX conversations_e164 ON conversations (e164);
CREATE INDEX conversations_groupId ON conversations (groupId);
CREATE INDEX conversations_serviceId ON conversations (serviceId);
CREATE INDEX conversations_type ON conversations (type) WHERE type IS NOT NULL;
CREATE TABLE defunctCallLinks (
  roomId TEXT NOT NULL PRIMARY KEY, rootKey BLOB NOT NULL, adminKey BLOB, storageID TEXT, storageVersion INTEGER, storageUnknownFields BLOB, storageNeedsSync INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE donationReceipts (id TEXT NOT NULL PRIMARY KEY, currencyType TEXT NOT NULL, paymentAmount INTEGER NOT NULL, timestamp INTEGER NOT NULL) STRICT;
CREATE INDEX donationReceipts_byTimestamp ON donationReceipts (timestamp);
CREATE TABLE edited_messages (messageId STRING REFERENCES messages (id) ON DELETE CASCADE, sentAt INTEGER, readStatus INTEGER, conversationId STRING);
CREATE INDEX edited_messages_messageId ON edited_messages (messageId);
CREATE INDEX edited_messages_sent_at ON edited_messages (sentAt);
CREATE INDEX edited_messages_unread ON edited_messages (readStatus, conversationId);
CREATE TABLE groupCallRingCancellations (ringId INTEGER PRIMARY KEY, createdAt INTEGER NOT NULL);
CREATE TABLE groupSendCombinedEndorsement (groupId TEXT NOT NULL PRIMARY KEY, expiration INTEGER NOT NULL, endorsement BLOB NOT NULL) STRICT;
CREATE TABLE groupSendMemberEndorsement (groupId TEXT NOT NULL, memberAci TEXT NOT NULL, expiration INTEGER NOT NULL, endorsement BLOB NOT NULL, PRIMARY KEY (groupId, memberAci)) STRICT;
CREATE TABLE identityKeys (id STRING PRIMARY KEY ASC, json TEXT);
CREATE TABLE items (id STRING PRIMARY KEY ASC, json TEXT);
CREATE TABLE jobs (id TEXT PRIMARY KEY, queueType TEXT STRING NOT NULL, timestamp INTEGER NOT NULL, data STRING TEXT);
CREATE INDEX jobs_timestamp ON jobs (timestamp);
CREATE TABLE key_transparency_account_data (aci TEXT NOT NULL PRIMARY KEY, data BLOB NOT NULL) STRICT;
CREATE TABLE kyberPreKeys (id STRING PRIMARY KEY NOT NULL, json TEXT NOT NULL, ourServiceId NUMBER GENERATED ALWAYS AS (json_extract(json, '$.ourServiceId')));
CREATE INDEX kyberPreKeys_ourServiceId ON kyberPreKeys (ourServiceId);
CREATE TABLE kyberPreKey_triples (
  id TEXT NOT NULL REFERENCES kyberPreKeys (id) ON DELETE CASCADE, signedPreKeyId INTEGER NOT NULL, baseKey BLOB NOT NULL, UNIQUE (id, signedPreKeyId, baseKey) ON CONFLICT FAIL) STRICT;
CREATE TABLE megaphones (
  id TEXT NOT NULL PRIMARY KEY, desktopMinVersion TEXT, priority INTEGER NOT NULL, dontShowBeforeEpochMs INTEGER NOT NULL, dontShowAfterEpochMs INTEGER NOT NULL, showForNumberOfDays INTEGER NOT NULL, primaryCtaId TEXT,
  secondaryCtaId TEXT, primaryCtaDataJson TEXT, secondaryCtaDataJson TEXT, conditionalId TEXT, title TEXT NOT NULL, body TEXT NOT NULL, primaryCtaText TEXT, secondaryCtaText TEXT, imagePath TEXT, localeFetched TEXT NOT NULL,
  shownAt INTEGER, snoozedAt INTEGER, snoozeCount INTEGER NOT NULL, isFinished INTEGER NOT NULL) STRICT;
CREATE TABLE mentions (messageId REFERENCES messages (id) ON DELETE CASCADE, mentionAci STRING, start INTEGER, length INTEGER);
CREATE INDEX mentions_aci ON mentions (mentionAci);
CREATE INDEX mentions_messageId ON mentions (messageId);
CREATE TABLE message_attachments (
  messageId TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE, editHistoryIndex INTEGER NOT NULL, attachmentType TEXT NOT NULL, orderInMessage INTEGER NOT NULL, conversationId TEXT NOT NULL, sentAt INTEGER NOT NULL,
  clientUuid TEXT, size INTEGER NOT NULL, contentType TEXT NOT NULL, path TEXT, plaintextHash TEXT, localKey TEXT, caption TEXT, fileName TEXT, blurHash TEXT, height INTEGER, width INTEGER, digest TEXT, key TEXT, downloadPath TEXT,
  version INTEGER, incrementalMac TEXT, incrementalMacChunkSize INTEGER, transitCdnKey TEXT, transitCdnNumber INTEGER, transitCdnUploadTimestamp INTEGER, backupCdnNumber INTEGER, thumbnailPath TEXT, thumbnailSize INTEGER,
  thumbnailContentType TEXT, thumbnailLocalKey TEXT, thumbnailVersion INTEGER, screenshotPath TEXT, screenshotSize INTEGER, screenshotContentType TEXT, screenshotLocalKey TEXT, screenshotVersion INTEGER, backupThumbnailPath TEXT,
  backupThumbnailSize INTEGER, backupThumbnailContentType TEXT, backupThumbnailLocalKey TEXT, backupThumbnailVersion INTEGER, storyTextAttachmentJson TEXT, localBackupPath TEXT, flags INTEGER, error INTEGER, wasTooBig INTEGER,
  isCorrupted INTEGER, copiedFromQuotedAttachment INTEGER, pending INTEGER, backfillError INTEGER, messageType TEXT, receivedAt INTEGER, receivedAtMs INTEGER, isViewOnce INTEGER, duration REAL,
  PRIMARY KEY (messageId, editHistoryIndex, attachmentType, orderInMessage)) STRICT;
CREATE INDEX message_attachments_backupThumbnailPath ON message_attachments (backupThumbnailPath);
CREATE INDEX message_attachments_path ON message_attachments (path);
CREATE INDEX message_attachments_plaintextHash ON message_attachments (plaintextHash);
CREATE INDEX message_attachments_screenshotPath ON message_attachments (screenshotPath);
CREATE INDEX message_attachments_thumbnailPath ON message_attachments (thumbnailPath);
CREATE INDEX message_attachments_getOlderMedia ON message_attachments (conversationId, attachmentType, receivedAt DESC, sentAt DESC)
  WHERE editHistoryIndex IS -1 AND messageType IN ('incoming', 'outgoing') AND isViewOnce IS NOT 1;
CREATE INDEX message_attachments_sortBiggerMedia ON message_attachments (conversationId, attachmentType, size DESC, receivedAt DESC, sentAt DESC)
  WHERE editHistoryIndex IS -1 AND messageType IN ('incoming', 'outgoing') AND isViewOnce IS NOT 1;
CREATE TRIGGER stop_protecting_attachments_after_insert AFTER INSERT ON message_attachments BEGIN
  DELETE FROM attachments_protected_from_deletion WHERE messageId IS new.messageId AND path IN (new.path, new.thumbnailPath, new.screenshotPath, new.backupThumbnailPath);
END;
CREATE TRIGGER stop_protecting_attachments_after_update AFTER UPDATE OF path, thumbnailPath, screenshotPath, backupThumbnailPath ON message_attachments WHEN old.path IS NOT new.path BEGIN
  DELETE FROM attachments_protected_from_deletion WHERE messageId IS new.messageId AND path IN (new.path, new.thumbnailPath, new.screenshotPath, new.backupThumbnailPath);
END;
CREATE TABLE messages (
  rowid INTEGER PRIMARY KEY ASC, id STRING UNIQUE, json TEXT, readStatus INTEGER, expires_at INTEGER, sent_at INTEGER, schemaVersion INTEGER, conversationId STRING, received_at INTEGER, hasAttachments INTEGER, hasFileAttachments INTEGER,
  hasVisualMediaAttachments INTEGER, expireTimer INTEGER, expirationStartTimestamp INTEGER, type STRING, body TEXT, messageTimer INTEGER, messageTimerStart INTEGER, messageTimerExpiresAt INTEGER, isErased INTEGER, isViewOnce INTEGER,
  sourceServiceId TEXT, serverGuid STRING NULL, sourceDevice INTEGER, storyId STRING,
  isStory INTEGER GENERATED ALWAYS AS (type IS 'story'),
  isChangeCreatedByUs INTEGER NOT NULL DEFAULT 0,
  isTimerChangeFromSync INTEGER GENERATED ALWAYS AS (json_extract(json, '$.expirationTimerUpdate.fromSync') IS 1),
  seenStatus NUMBER DEFAULT 0, storyDistributionListId STRING,
  expiresAt INT GENERATED ALWAYS AS (ifnull(expirationStartTimestamp + 1000 * expireTimer, 9007199254740991)),
  isUserInitiatedMessage INTEGER GENERATED ALWAYS AS (type IS NULL OR type NOT IN ('group-v2-change', 'keychange', 'profile-change', 'story', 'verified-change')),
  mentionsMe INTEGER NOT NULL DEFAULT 0,
  isGroupLeaveEvent INTEGER GENERATED ALWAYS AS (type IS 'group-v2-change' AND 1 IS json_array_length(json, '$.groupV2Change.details') AND 'member-remove' IS json_extract(json, '$.groupV2Change.details[0].type')),
  isGroupLeaveEventFromOther INTEGER GENERATED ALWAYS AS (isGroupLeaveEvent IS 1 AND isChangeCreatedByUs IS 0),
  callId TEXT GENERATED ALWAYS AS (json_extract(json, '$.callId')),
  shouldAffectPreview INTEGER GENERATED ALWAYS AS (type IS NULL OR type NOT IN ('keychange', 'story') AND NOT (type IS 'message-request-response-event' AND json ->> 'messageRequestResponseEvent' IN ('ACCEPT', 'BLOCK'))),
  shouldAffectActivity INTEGER GENERATED ALWAYS AS (type IS NULL OR type NOT IN ('keychange', 'profile-change', 'story')),
  isAddressableMessage INTEGER GENERATED ALWAYS AS (type IS NULL OR type IN ('incoming', 'outgoing')),
  timestamp INTEGER, received_at_ms INTEGER, unidentifiedDeliveryReceived INTEGER, serverTimestamp INTEGER, source TEXT,
  isSearchable INT GENERATED ALWAYS AS (storyId IS NULL AND isViewOnce IS NOT 1) VIRTUAL,
  searchableText TEXT GENERATED ALWAYS AS (coalesce(json -> 'poll' ->> 'question', body)) VIRTUAL,
  hasUnreadPollVotes INTEGER NOT NULL DEFAULT 0,
  hasExpireTimer INTEGER NOT NULL GENERATED ALWAYS AS (coalesce(expireTimer, 0) > 0) VIRTUAL,
  hasPreviews INTEGER NOT NULL GENERATED ALWAYS AS (ifnull(json_array_length(json, '$.preview'), 0) > 0),
  hasContacts INTEGER NOT NULL GENERATED ALWAYS AS (ifnull(json_array_length(json, '$.contact'), 0) > 0));
CREATE INDEX expiring_message_by_conversation_and_received_at ON messages (conversationId, storyId, expirationStartTimestamp, expireTimer, received_at) WHERE isStory IS 0 AND type IS 'incoming';
CREATE INDEX message_user_initiated ON messages (conversationId, isUserInitiatedMessage);
CREATE INDEX messages_activity ON messages (conversationId, shouldAffectActivity, isTimerChangeFromSync, isGroupLeaveEventFromOther, received_at, sent_at);
CREATE INDEX messages_by_date_addressable ON messages (conversationId, isAddressableMessage, received_at, sent_at);
CREATE INDEX messages_by_date_addressable_nondisappearing ON messages (conversationId, isAddressableMessage, received_at, sent_at) WHERE expireTimer IS NULL;
CREATE INDEX messages_by_distribution_list ON messages (storyDistributionListId, received_at) WHERE storyDistributionListId IS NOT NULL;
CREATE INDEX messages_by_storyId ON messages (storyId);
CREATE INDEX messages_call ON messages (type, conversationId, callId, sent_at) WHERE type IS 'call-history';
CREATE INDEX messages_callHistory_markReadBefore ON messages (type, seenStatus, received_at DESC) WHERE type IS 'call-history';
CREATE INDEX messages_callHistory_seenStatus ON messages (type, seenStatus) WHERE type IS 'call-history';
CREATE INDEX messages_conversation ON messages (conversationId, isStory, storyId, received_at, sent_at);
CREATE INDEX messages_conversation_no_story_id ON messages (conversationId, isStory, received_at, sent_at);
CREATE INDEX messages_conversationId_expirationStartTimestamp ON messages (conversationId, expirationStartTimestamp) WHERE hasExpireTimer IS 1;
CREATE INDEX messages_expires_at ON messages (expiresAt);
CREATE INDEX messages_hasAttachments ON messages (conversationId, hasAttachments, received_at) WHERE type IS NOT 'story' AND storyId IS NULL;
CREATE INDEX messages_hasContacts ON messages (conversationId, received_at DESC, sent_at DESC) WHERE hasContacts IS 1 AND isViewOnce IS NOT 1 AND type IN ('incoming', 'outgoing');
CREATE INDEX messages_hasPreviews ON messages (conversationId, received_at DESC, sent_at DESC) WHERE hasPreviews IS 1 AND isViewOnce IS NOT 1 AND type IN ('incoming', 'outgoing');
CREATE INDEX messages_hasVisualMediaAttachments ON messages (conversationId, isStory, storyId, hasVisualMediaAttachments, received_at, sent_at) WHERE hasVisualMediaAttachments IS 1;
CREATE INDEX messages_id ON messages (id ASC);
CREATE INDEX messages_isStory ON messages (received_at, sent_at) WHERE isStory = 1;
CREATE INDEX messages_preview ON messages (conversationId, shouldAffectPreview, isGroupLeaveEventFromOther, received_at, sent_at);
CREATE INDEX messages_receipt ON messages (sent_at);
CREATE INDEX messages_schemaVersion ON messages (schemaVersion);
CREATE INDEX messages_searchOrder ON messages (received_at, sent_at);
CREATE INDEX messages_sourceServiceId ON messages (sourceServiceId);
CREATE INDEX messages_story_replies ON messages (storyId, received_at, sent_at) WHERE isStory IS 0;
CREATE INDEX messages_unexpectedly_missing_expiration_start_timestamp ON messages (expireTimer, expirationStartTimestamp, type) WHERE expireTimer IS NOT NULL AND expirationStartTimestamp IS NULL;
CREATE INDEX messages_unread ON messages (conversationId, readStatus, isStory, storyId, received_at, sent_at) WHERE readStatus IS NOT NULL;
CREATE INDEX messages_unread_mentions ON messages (conversationId, readStatus, mentionsMe, isStory, storyId, received_at, sent_at) WHERE readStatus IS NOT NULL;
CREATE INDEX messages_unread_poll_votes ON messages (conversationId, received_at) WHERE hasUnreadPollVotes = 1 AND type IS 'outgoing';
CREATE INDEX messages_unseen_no_story ON messages (conversationId, seenStatus, isStory, received_at, sent_at) WHERE seenStatus IS NOT NULL;
CREATE INDEX messages_view_once ON messages (isErased) WHERE isViewOnce = 1;
CREATE VIRTUAL TABLE messages_fts USING fts5(body, tokenize='signal_tokenizer');
CREATE TRIGGER messages_on_insert AFTER INSERT ON messages WHEN new.isSearchable IS 1 BEGIN
  INSERT INTO messages_fts (rowid, body) VALUES (new.rowid, new.searchableText);
END;
CREATE TRIGGER messages_on_delete AFTER DELETE ON messages BEGIN
  DELETE FROM messages_fts WHERE rowid = old.rowid;
  DELETE FROM sendLogPayloads WHERE id IN (SELECT payloadId FROM sendLogMessageIds WHERE messageId = old.id);
  DELETE FROM reactions WHERE messageId = old.id;
  DELETE FROM storyReads WHERE storyId = old.storyId;
END;
CREATE TRIGGER messages_on_update AFTER UPDATE ON messages WHEN new.isSearchable IS 1 AND old.searchableText IS NOT new.searchableText BEGIN
  UPDATE messages_fts SET body = new.searchableText WHERE rowid = new.rowid;
END;
CREATE TRIGGER messages_on_view_once_update AFTER UPDATE ON messages WHEN new.body IS NOT NULL AND new.isViewOnce = 1 BEGIN DELETE FROM messages_fts WHERE rowid = old.rowid; END;
CREATE TRIGGER messages_on_insert_insert_mentions AFTER INSERT ON messages BEGIN
  INSERT INTO mentions (messageId, mentionAci, start, length)
    SELECT m.id, r.value ->> 'mentionAci', r.value ->> 'start', r.value ->> 'length' FROM messages m, json_each(m.json ->> 'bodyRanges') r WHERE m.id = new.id AND r.value ->> 'mentionAci' IS NOT NULL;
END;
CREATE TRIGGER messages_on_update_update_mentions AFTER UPDATE ON messages BEGIN
  DELETE FROM mentions WHERE messageId = new.id;
  INSERT INTO mentions (messageId, mentionAci, start, length)
    SELECT m.id, r.value ->> 'mentionAci', r.value ->> 'start', r.value ->> 'length' FROM messages m, json_each(m.json ->> 'bodyRanges') r WHERE m.id = new.id AND r.value ->> 'mentionAci' IS NOT NULL;
END;
CREATE TABLE notificationProfiles (
  id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, emoji TEXT, color INTEGER NOT NULL, createdAtMs INTEGER NOT NULL, allowAllCalls INTEGER NOT NULL, allowAllMentions INTEGER NOT NULL, allowedMembersJson TEXT NOT NULL,
  scheduleEnabled INTEGER NOT NULL, scheduleStartTime INTEGER, scheduleEndTime INTEGER, scheduleDaysEnabledJson TEXT, deletedAtTimestampMs INTEGER, storageID TEXT, storageVersion INTEGER, storageUnknownFields BLOB,
  storageNeedsSync INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE pinnedMessages (
  id INTEGER PRIMARY KEY AUTOINCREMENT, conversationId TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE, messageId TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE, pinnedAt INTEGER NOT NULL, expiresAt INTEGER,
  UNIQUE (conversationId, messageId)) STRICT;
CREATE INDEX pinnedMessages_byConversation ON pinnedMessages (conversationId, pinnedAt DESC, messageId);
CREATE INDEX pinnedMessages_byExpiresAt ON pinnedMessages (expiresAt ASC) WHERE expiresAt IS NOT NULL;
CREATE TABLE preKeys (id STRING PRIMARY KEY ASC, json TEXT, ourServiceId NUMBER GENERATED ALWAYS AS (json_extract(json, '$.ourServiceId')));
CREATE INDEX preKeys_ourServiceId ON preKeys (ourServiceId);
CREATE TABLE reactions (
  conversationId STRING, emoji STRING, fromId STRING, messageReceivedAt INTEGER, targetAuthorAci STRING, targetTimestamp INTEGER, unread INTEGER, messageId STRING, timestamp NUMBER);
CREATE INDEX reaction_identifier ON reactions (emoji, targetAuthorAci, targetTimestamp);
CREATE INDEX reactions_byTimestamp ON reactions (fromId, timestamp);
CREATE INDEX reactions_messageId ON reactions (messageId);
CREATE INDEX reactions_unread ON reactions (conversationId, unread);
CREATE TABLE recentEmojis (emoji TEXT NOT NULL PRIMARY KEY, lastUsedAt INTEGER NOT NULL) STRICT;
CREATE INDEX recentEmojis_order ON recentEmojis (lastUsedAt DESC);
CREATE TABLE recentGifs (
  id TEXT NOT NULL PRIMARY KEY, title TEXT NOT NULL, description TEXT NOT NULL, previewMedia_url TEXT NOT NULL, previewMedia_width INTEGER NOT NULL, previewMedia_height INTEGER NOT NULL, attachmentMedia_url TEXT NOT NULL,
  attachmentMedia_width INTEGER NOT NULL, attachmentMedia_height INTEGER NOT NULL, lastUsedAt INTEGER NOT NULL) STRICT;
CREATE INDEX recentGifs_order ON recentGifs (lastUsedAt DESC);
CREATE TABLE senderKeys (id TEXT PRIMARY KEY NOT NULL, senderId TEXT NOT NULL, distributionId TEXT NOT NULL, data BLOB NOT NULL, lastUpdatedDate NUMBER NOT NULL);
CREATE TABLE sendLogPayloads (id INTEGER PRIMARY KEY ASC, timestamp INTEGER NOT NULL, contentHint INTEGER NOT NULL, proto BLOB NOT NULL, urgent INTEGER, hasPniSignatureMessage INTEGER DEFAULT 0 NOT NULL);
CREATE INDEX sendLogPayloadsByTimestamp ON sendLogPayloads (timestamp);
CREATE TABLE sendLogMessageIds (
  payloadId INTEGER NOT NULL, messageId STRING NOT NULL, PRIMARY KEY (payloadId, messageId), CONSTRAINT sendLogMessageIdsForeignKey FOREIGN KEY (payloadId) REFERENCES sendLogPayloads (id) ON DELETE CASCADE);
CREATE INDEX sendLogMessageIdsByMessage ON sendLogMessageIds (messageId);
CREATE TABLE sendLogRecipients (
  payloadId INTEGER NOT NULL, recipientServiceId STRING NOT NULL, deviceId INTEGER NOT NULL, PRIMARY KEY (payloadId, recipientServiceId, deviceId),
  CONSTRAINT sendLogRecipientsForeignKey FOREIGN KEY (payloadId) REFERENCES sendLogPayloads (id) ON DELETE CASCADE);
CREATE INDEX sendLogRecipientsByRecipient ON sendLogRecipients (recipientServiceId, deviceId);
CREATE TABLE sessions (id TEXT NOT NULL PRIMARY KEY, ourServiceId TEXT NOT NULL, serviceId TEXT NOT NULL, conversationId TEXT NOT NULL, deviceId INTEGER NOT NULL, record BLOB NOT NULL) STRICT;
CREATE TABLE signedPreKeys (id STRING PRIMARY KEY ASC, json TEXT, ourServiceId NUMBER GENERATED ALWAYS AS (json_extract(json, '$.ourServiceId')));
CREATE INDEX signedPreKeys_ourServiceId ON signedPreKeys (ourServiceId);
CREATE TABLE sticker_packs (
  id TEXT PRIMARY KEY, key TEXT NOT NULL, author STRING, coverStickerId INTEGER, createdAt INTEGER, downloadAttempts INTEGER, installedAt INTEGER, lastUsed INTEGER, status STRING, stickerCount INTEGER, title STRING, attemptedStatus STRING,
  position INTEGER DEFAULT 0 NOT NULL, storageID STRING, storageVersion INTEGER, storageUnknownFields BLOB, storageNeedsSync INTEGER DEFAULT 0 NOT NULL);
CREATE INDEX sticker_packs_by_position_and_id ON sticker_packs (position ASC, id ASC);
CREATE TABLE sticker_references (
  messageId STRING, packId TEXT, stickerId INTEGER NOT NULL DEFAULT -1, isUnresolved INTEGER NOT NULL DEFAULT 0, CONSTRAINT sticker_references_fk FOREIGN KEY (packId) REFERENCES sticker_packs (id) ON DELETE CASCADE);
CREATE INDEX unresolved_sticker_refs ON sticker_references (packId, stickerId) WHERE isUnresolved IS 1;
CREATE TABLE stickers (
  id INTEGER NOT NULL, packId TEXT NOT NULL, emoji STRING, height INTEGER, isCoverOnly INTEGER, lastUsed INTEGER, path STRING, width INTEGER, version INTEGER NOT NULL DEFAULT 1, localKey TEXT, size INTEGER,
  PRIMARY KEY (id, packId), CONSTRAINT stickers_fk FOREIGN KEY (packId) REFERENCES sticker_packs (id) ON DELETE CASCADE);
CREATE INDEX stickers_recents ON stickers (lastUsed) WHERE lastUsed IS NOT NULL;
CREATE TABLE storyDistributions (
  id STRING PRIMARY KEY NOT NULL, name TEXT, senderKeyInfoJson STRING, deletedAtTimestamp INTEGER, allowsReplies INTEGER, isBlockList INTEGER, storageID STRING, storageVersion INTEGER, storageUnknownFields BLOB, storageNeedsSync INTEGER);
CREATE TABLE storyDistributionMembers (
  listId STRING NOT NULL REFERENCES storyDistributions (id) ON DELETE CASCADE ON UPDATE CASCADE, serviceId STRING NOT NULL, PRIMARY KEY (listId, serviceId));
CREATE TABLE storyReads (authorId STRING NOT NULL, conversationId STRING NOT NULL, storyId STRING NOT NULL, storyReadDate NUMBER NOT NULL, PRIMARY KEY (authorId, storyId));
CREATE INDEX storyReads_data ON storyReads (storyReadDate, authorId, conversationId);
CREATE INDEX storyReads_storyId ON storyReads (storyId);
CREATE TABLE syncTasks (id TEXT PRIMARY KEY NOT NULL, attempts INTEGER NOT NULL, createdAt INTEGER NOT NULL, data TEXT NOT NULL, envelopeId TEXT NOT NULL, sentAt INTEGER NOT NULL, type TEXT NOT NULL) STRICT;
CREATE INDEX syncTasks_delete ON syncTasks (attempts DESC);
CREATE INDEX syncTasks_type ON syncTasks (type);
CREATE TABLE uninstalled_sticker_packs (id STRING NOT NULL PRIMARY KEY, uninstalledAt NUMBER NOT NULL, storageID STRING, storageVersion NUMBER, storageUnknownFields BLOB, storageNeedsSync INTEGER NOT NULL);
CREATE TABLE unprocessed (
  id TEXT NOT NULL PRIMARY KEY ASC, type INTEGER NOT NULL, timestamp INTEGER NOT NULL, attempts INTEGER NOT NULL, receivedAtCounter INTEGER NOT NULL, urgent INTEGER NOT NULL, story INTEGER NOT NULL, serverGuid TEXT NOT NULL,
  serverTimestamp INTEGER NOT NULL, isEncrypted INTEGER NOT NULL, content BLOB NOT NULL, messageAgeSec INTEGER NOT NULL, destinationServiceId TEXT NOT NULL, groupId TEXT, reportingToken BLOB, source TEXT, sourceServiceId TEXT,
  updatedPni TEXT, sourceDevice INTEGER, receivedAtDate INTEGER DEFAULT 0 NOT NULL) STRICT;
CREATE INDEX unprocessed_byReceivedAtCounter ON unprocessed (receivedAtCounter);
CREATE INDEX unprocessed_byReceivedAtDate ON unprocessed (receivedAtDate);
