-- Thunderbird 115, schema version 26: global-messages-db.sqlite (Gloda), FTS3 with the tokenizer mozporter
-- @tokenizer mozporter porter
-- @preserve messages contacts conversations
-- @migrate contacts
PRAGMA user_version = 26;
CREATE TABLE folderLocations (
  id INTEGER PRIMARY KEY, folderURI TEXT NOT NULL, dirtyStatus INTEGER NOT NULL, name TEXT NOT NULL, indexingPriority INTEGER NOT NULL);
CREATE TABLE conversations (id INTEGER PRIMARY KEY, subject TEXT NOT NULL, oldestMessageDate INTEGER, newestMessageDate INTEGER);
CREATE INDEX conversations_subject ON conversations (subject);
CREATE INDEX conversations_oldestMessageDate ON conversations (oldestMessageDate);
CREATE INDEX conversations_newestMessageDate ON conversations (newestMessageDate);
CREATE VIRTUAL TABLE conversationsText USING fts3(tokenize=mozporter, subject TEXT);
CREATE TABLE messages (
  id INTEGER PRIMARY KEY, folderID INTEGER, messageKey INTEGER, conversationID INTEGER NOT NULL, date INTEGER, headerMessageID TEXT, deleted INTEGER NOT NULL DEFAULT 0,
  jsonAttributes TEXT, notability INTEGER NOT NULL DEFAULT 0);
CREATE INDEX messages_messageLocation ON messages (folderID, messageKey);
CREATE INDEX messages_headerMessageID ON messages (headerMessageID);
CREATE INDEX messages_conversationID ON messages (conversationID);
CREATE INDEX messages_date ON messages (date);
CREATE INDEX messages_deleted ON messages (deleted);
CREATE VIRTUAL TABLE messagesText USING fts3(tokenize=mozporter, body TEXT, subject TEXT, attachmentNames TEXT, author TEXT, recipients TEXT);
CREATE TABLE attributeDefinitions (
  id INTEGER PRIMARY KEY, attributeType INTEGER NOT NULL, extensionName TEXT NOT NULL, name TEXT NOT NULL, parameter BLOB);
CREATE TABLE messageAttributes (conversationID INTEGER NOT NULL, messageID INTEGER NOT NULL, attributeID INTEGER NOT NULL, value NUMERIC);
CREATE INDEX messageAttributes_attribQuery ON messageAttributes (attributeID, value, conversationID, messageID);
CREATE INDEX messageAttributes_messageAttribFetch ON messageAttributes (messageID);
CREATE TABLE contacts (
  id INTEGER PRIMARY KEY, directoryUUID TEXT, contactUUID TEXT, popularity INTEGER, frecency INTEGER, name TEXT, jsonAttributes TEXT);
CREATE INDEX contacts_popularity ON contacts (popularity);
CREATE INDEX contacts_frecency ON contacts (frecency);
CREATE TABLE contactAttributes (contactID INTEGER NOT NULL, attributeID INTEGER NOT NULL, value NUMERIC);
CREATE INDEX contactAttributes_contactAttribQuery ON contactAttributes (attributeID, value, contactID);
CREATE TABLE identities (
  id INTEGER PRIMARY KEY, contactID INTEGER NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL, description TEXT, relay INTEGER NOT NULL);
CREATE INDEX identities_contactQuery ON identities (contactID);
CREATE UNIQUE INDEX identities_valueQuery ON identities (kind, value);
CREATE TABLE ext_noun (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
