-- Zotero 6.0, user data version 121: zotero.sqlite
-- @skip version
-- @preserve items tags creators
-- @migrate items
-- @fill collections.parentCollectionID NULL
-- @fill creators.fieldMode :n % 2
-- @fill itemCreators.orderIndex :n
-- @fill itemAttachments.itemID :n
CREATE TABLE version (schema TEXT PRIMARY KEY, version INT NOT NULL);
INSERT INTO version VALUES ('system', 32), ('userdata', 121), ('triggers', 18);
CREATE INDEX schema ON version (schema);
CREATE TABLE settings (setting TEXT, key TEXT, value, PRIMARY KEY (setting, key));
CREATE TABLE syncedSettings (setting TEXT NOT NULL, libraryID INT NOT NULL, value NOT NULL, version INT NOT NULL DEFAULT 0, synced INT NOT NULL DEFAULT 0, PRIMARY KEY (setting, libraryID), FOREIGN KEY (libraryID) REFERENCES libraries (libraryID) ON DELETE CASCADE);
CREATE TABLE libraries (
  libraryID INTEGER PRIMARY KEY, type TEXT NOT NULL, editable INT NOT NULL, filesEditable INT NOT NULL, version INT NOT NULL DEFAULT 0, storageVersion INT NOT NULL DEFAULT 0,
  lastSync INT NOT NULL DEFAULT 0, archived INT NOT NULL DEFAULT 0);
CREATE TABLE itemTypes (itemTypeID INTEGER PRIMARY KEY, typeName TEXT, templateItemTypeID INT, display INT DEFAULT 1);
CREATE TABLE fieldFormats (fieldFormatID INTEGER PRIMARY KEY, regex TEXT, isInteger INT);
CREATE TABLE fields (fieldID INTEGER PRIMARY KEY, fieldName TEXT, fieldFormatID INT, FOREIGN KEY (fieldFormatID) REFERENCES fieldFormats (fieldFormatID));
CREATE TABLE itemTypeFields (
  itemTypeID INT, fieldID INT, hide INT, orderIndex INT, PRIMARY KEY (itemTypeID, orderIndex), UNIQUE (itemTypeID, fieldID),
  FOREIGN KEY (itemTypeID) REFERENCES itemTypes (itemTypeID), FOREIGN KEY (fieldID) REFERENCES fields (fieldID));
CREATE INDEX itemTypeFields_fieldID ON itemTypeFields (fieldID);
CREATE TABLE items (
  itemID INTEGER PRIMARY KEY, itemTypeID INT NOT NULL, dateAdded TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, dateModified TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  clientDateModified TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, libraryID INT NOT NULL, key TEXT NOT NULL, version INT NOT NULL DEFAULT 0, synced INT NOT NULL DEFAULT 0,
  UNIQUE (libraryID, key), FOREIGN KEY (libraryID) REFERENCES libraries (libraryID) ON DELETE CASCADE);
CREATE INDEX items_synced ON items (synced);
CREATE TABLE itemDataValues (valueID INTEGER PRIMARY KEY, value UNIQUE);
CREATE TABLE itemData (
  itemID INT, fieldID INT, valueID, PRIMARY KEY (itemID, fieldID), FOREIGN KEY (itemID) REFERENCES items (itemID) ON DELETE CASCADE,
  FOREIGN KEY (fieldID) REFERENCES fields (fieldID), FOREIGN KEY (valueID) REFERENCES itemDataValues (valueID));
CREATE INDEX itemData_fieldID ON itemData (fieldID);
CREATE INDEX itemData_valueID ON itemData (valueID);
CREATE TABLE itemNotes (
  itemID INTEGER PRIMARY KEY, parentItemID INT, note TEXT, title TEXT, FOREIGN KEY (itemID) REFERENCES items (itemID) ON DELETE CASCADE,
  FOREIGN KEY (parentItemID) REFERENCES items (itemID) ON DELETE CASCADE);
CREATE INDEX itemNotes_parentItemID ON itemNotes (parentItemID);
CREATE TABLE charsets (charsetID INTEGER PRIMARY KEY, charset TEXT UNIQUE);
CREATE INDEX charsets_charset ON charsets (charset);
CREATE TABLE itemAttachments (
  itemID INTEGER PRIMARY KEY, parentItemID INT, linkMode INT, contentType TEXT, charsetID INT, path TEXT, syncState INT DEFAULT 0, storageModTime INT, storageHash TEXT,
  lastProcessedModificationTime INT, FOREIGN KEY (itemID) REFERENCES items (itemID) ON DELETE CASCADE, FOREIGN KEY (parentItemID) REFERENCES items (itemID) ON DELETE CASCADE,
  FOREIGN KEY (charsetID) REFERENCES charsets (charsetID) ON DELETE SET NULL);
CREATE INDEX itemAttachments_parentItemID ON itemAttachments (parentItemID);
CREATE TABLE tags (tagID INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE itemTags (
  itemID INT NOT NULL, tagID INT NOT NULL, type INT NOT NULL, PRIMARY KEY (itemID, tagID), FOREIGN KEY (itemID) REFERENCES items (itemID) ON DELETE CASCADE,
  FOREIGN KEY (tagID) REFERENCES tags (tagID) ON DELETE CASCADE);
CREATE INDEX itemTags_tagID ON itemTags (tagID);
CREATE TABLE itemRelations (
  itemID INT NOT NULL, predicateID INT NOT NULL, object TEXT NOT NULL, PRIMARY KEY (itemID, predicateID, object), FOREIGN KEY (itemID) REFERENCES items (itemID) ON DELETE CASCADE,
  FOREIGN KEY (predicateID) REFERENCES relationPredicates (predicateID) ON DELETE CASCADE);
CREATE TABLE relationPredicates (predicateID INTEGER PRIMARY KEY, predicate TEXT UNIQUE);
CREATE TABLE creatorTypes (creatorTypeID INTEGER PRIMARY KEY, creatorType TEXT);
CREATE TABLE creators (creatorID INTEGER PRIMARY KEY, firstName TEXT, lastName TEXT, fieldMode INT, UNIQUE (lastName, firstName, fieldMode));
CREATE TABLE itemCreators (
  itemID INT NOT NULL, creatorID INT NOT NULL, creatorTypeID INT NOT NULL DEFAULT 1, orderIndex INT NOT NULL DEFAULT 0, PRIMARY KEY (itemID, creatorID, creatorTypeID, orderIndex),
  UNIQUE (itemID, orderIndex), FOREIGN KEY (itemID) REFERENCES items (itemID) ON DELETE CASCADE, FOREIGN KEY (creatorID) REFERENCES creators (creatorID) ON DELETE CASCADE,
  FOREIGN KEY (creatorTypeID) REFERENCES creatorTypes (creatorTypeID));
CREATE TABLE collections (
  collectionID INTEGER PRIMARY KEY, collectionName TEXT NOT NULL, parentCollectionID INT DEFAULT NULL, clientDateModified TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  libraryID INT NOT NULL, key TEXT NOT NULL, version INT NOT NULL DEFAULT 0, synced INT NOT NULL DEFAULT 0, UNIQUE (libraryID, key),
  FOREIGN KEY (libraryID) REFERENCES libraries (libraryID) ON DELETE CASCADE, FOREIGN KEY (parentCollectionID) REFERENCES collections (collectionID) ON DELETE CASCADE);
CREATE INDEX collections_synced ON collections (synced);
CREATE TABLE collectionItems (
  collectionID INT NOT NULL, itemID INT NOT NULL, orderIndex INT NOT NULL DEFAULT 0, PRIMARY KEY (collectionID, itemID), FOREIGN KEY (collectionID) REFERENCES collections (collectionID) ON DELETE CASCADE,
  FOREIGN KEY (itemID) REFERENCES items (itemID) ON DELETE CASCADE);
CREATE INDEX collectionItems_itemID ON collectionItems (itemID);
CREATE TABLE deletedItems (itemID INTEGER PRIMARY KEY, dateDeleted DEFAULT CURRENT_TIMESTAMP NOT NULL, FOREIGN KEY (itemID) REFERENCES items (itemID) ON DELETE CASCADE);
CREATE INDEX deletedItems_dateDeleted ON deletedItems (dateDeleted);
CREATE TABLE fulltextItems (itemID INTEGER PRIMARY KEY, indexedPages INT, totalPages INT, indexedChars INT, totalChars INT, version INT NOT NULL DEFAULT 0, synced INT NOT NULL DEFAULT 0, FOREIGN KEY (itemID) REFERENCES items (itemID) ON DELETE CASCADE);
CREATE TABLE fulltextWords (wordID INTEGER PRIMARY KEY, word TEXT UNIQUE);
CREATE TABLE fulltextItemWords (wordID INT, itemID INT, PRIMARY KEY (wordID, itemID), FOREIGN KEY (wordID) REFERENCES fulltextWords (wordID), FOREIGN KEY (itemID) REFERENCES items (itemID) ON DELETE CASCADE);
CREATE TRIGGER fki_collections_parentCollectionID_libraryID BEFORE INSERT ON collections FOR EACH ROW WHEN new.parentCollectionID IS NOT NULL BEGIN
  SELECT RAISE(ABORT, 'insert on table "collections" violates foreign key constraint')
    WHERE NOT EXISTS (SELECT 1 FROM collections WHERE collectionID = new.parentCollectionID AND libraryID = new.libraryID);
END;
CREATE TRIGGER fku_itemTags_libraryID BEFORE UPDATE ON tags FOR EACH ROW WHEN new.name = '' BEGIN
  SELECT RAISE(ABORT, 'Tag cannot be blank');
END;
CREATE TABLE itemTypesCombined (itemTypeID INT NOT NULL, typeName TEXT NOT NULL, display INT DEFAULT 1 NOT NULL, custom INT NOT NULL, PRIMARY KEY (itemTypeID));
CREATE TABLE fieldsCombined (fieldID INT NOT NULL, fieldName TEXT NOT NULL, label TEXT, fieldFormatID INT, custom INT NOT NULL, PRIMARY KEY (fieldID));
CREATE TABLE baseFieldMappings (
  itemTypeID INT, baseFieldID INT, fieldID INT, PRIMARY KEY (itemTypeID, baseFieldID, fieldID), FOREIGN KEY (itemTypeID) REFERENCES itemTypes (itemTypeID), FOREIGN KEY (baseFieldID) REFERENCES fields (fieldID),
  FOREIGN KEY (fieldID) REFERENCES fields (fieldID));
CREATE INDEX baseFieldMappings_baseFieldID ON baseFieldMappings (baseFieldID);
CREATE TABLE customItemTypes (customItemTypeID INTEGER PRIMARY KEY, typeName TEXT, label TEXT, display INT DEFAULT 1, icon TEXT);
CREATE TABLE customFields (customFieldID INTEGER PRIMARY KEY, fieldName TEXT, label TEXT);
CREATE TABLE fileTypes (fileTypeID INTEGER PRIMARY KEY, fileType TEXT UNIQUE);
CREATE TABLE fileTypeMimeTypes (fileTypeID INT, mimeType TEXT, PRIMARY KEY (fileTypeID, mimeType), FOREIGN KEY (fileTypeID) REFERENCES fileTypes (fileTypeID));
CREATE TABLE itemTypeCreatorTypes (
  itemTypeID INT, creatorTypeID INT, primaryField INT, PRIMARY KEY (itemTypeID, creatorTypeID), FOREIGN KEY (itemTypeID) REFERENCES itemTypes (itemTypeID), FOREIGN KEY (creatorTypeID) REFERENCES creatorTypes (creatorTypeID));
CREATE TABLE syncObjectTypes (syncObjectTypeID INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE itemAnnotations (
  itemID INTEGER PRIMARY KEY, parentItemID INT NOT NULL, type INTEGER NOT NULL, authorName TEXT, text TEXT, comment TEXT, color TEXT, pageLabel TEXT, sortIndex TEXT NOT NULL, position TEXT NOT NULL, isExternal INT NOT NULL,
  FOREIGN KEY (itemID) REFERENCES items (itemID) ON DELETE CASCADE, FOREIGN KEY (parentItemID) REFERENCES itemAttachments (itemID));
CREATE INDEX itemAnnotations_parentItemID ON itemAnnotations (parentItemID);
CREATE TABLE collectionRelations (
  collectionID INT NOT NULL, predicateID INT NOT NULL, object TEXT NOT NULL, PRIMARY KEY (collectionID, predicateID, object), FOREIGN KEY (collectionID) REFERENCES collections (collectionID) ON DELETE CASCADE,
  FOREIGN KEY (predicateID) REFERENCES relationPredicates (predicateID) ON DELETE CASCADE);
CREATE TABLE feeds (
  libraryID INTEGER PRIMARY KEY, name TEXT NOT NULL, url TEXT NOT NULL UNIQUE, lastUpdate TIMESTAMP, lastCheck TIMESTAMP, lastCheckError TEXT, cleanupReadAfter INT, cleanupUnreadAfter INT, refreshInterval INT,
  FOREIGN KEY (libraryID) REFERENCES libraries (libraryID) ON DELETE CASCADE);
CREATE TABLE feedItems (itemID INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, readTime TIMESTAMP, translatedTime TIMESTAMP, FOREIGN KEY (itemID) REFERENCES items (itemID) ON DELETE CASCADE);
CREATE TABLE savedSearches (
  savedSearchID INTEGER PRIMARY KEY, savedSearchName TEXT NOT NULL, clientDateModified TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, libraryID INT NOT NULL, key TEXT NOT NULL, version INT NOT NULL DEFAULT 0, synced INT NOT NULL DEFAULT 0,
  UNIQUE (libraryID, key), FOREIGN KEY (libraryID) REFERENCES libraries (libraryID) ON DELETE CASCADE);
CREATE INDEX savedSearches_synced ON savedSearches (synced);
CREATE TABLE savedSearchConditions (
  savedSearchID INT NOT NULL, searchConditionID INT NOT NULL, condition TEXT NOT NULL, operator TEXT, value TEXT, required NONE, PRIMARY KEY (savedSearchID, searchConditionID),
  FOREIGN KEY (savedSearchID) REFERENCES savedSearches (savedSearchID) ON DELETE CASCADE);
CREATE TABLE deletedCollections (collectionID INTEGER PRIMARY KEY, dateDeleted DEFAULT CURRENT_TIMESTAMP NOT NULL, FOREIGN KEY (collectionID) REFERENCES collections (collectionID) ON DELETE CASCADE);
CREATE TABLE users (userID INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE groups (
  groupID INTEGER PRIMARY KEY, libraryID INT NOT NULL UNIQUE, name TEXT NOT NULL, description TEXT NOT NULL, version INT NOT NULL, FOREIGN KEY (libraryID) REFERENCES libraries (libraryID) ON DELETE CASCADE);
CREATE TABLE groupItems (
  itemID INTEGER PRIMARY KEY, createdByUserID INT, lastModifiedByUserID INT, FOREIGN KEY (itemID) REFERENCES items (itemID) ON DELETE CASCADE, FOREIGN KEY (createdByUserID) REFERENCES users (userID) ON DELETE SET NULL,
  FOREIGN KEY (lastModifiedByUserID) REFERENCES users (userID) ON DELETE SET NULL);
CREATE TABLE publicationsItems (itemID INTEGER PRIMARY KEY);
CREATE TABLE retractedItems (itemID INTEGER PRIMARY KEY, data TEXT, flag INT DEFAULT 0, FOREIGN KEY (itemID) REFERENCES items (itemID) ON DELETE CASCADE);
CREATE TABLE syncCache (
  libraryID INT NOT NULL, key TEXT NOT NULL, syncObjectTypeID INT NOT NULL, version INT NOT NULL, data TEXT, PRIMARY KEY (libraryID, key, syncObjectTypeID, version), FOREIGN KEY (libraryID) REFERENCES libraries (libraryID) ON DELETE CASCADE,
  FOREIGN KEY (syncObjectTypeID) REFERENCES syncObjectTypes (syncObjectTypeID));
CREATE TABLE syncDeleteLog (
  syncObjectTypeID INT NOT NULL, libraryID INT NOT NULL, key TEXT NOT NULL, dateDeleted TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, UNIQUE (syncObjectTypeID, libraryID, key),
  FOREIGN KEY (syncObjectTypeID) REFERENCES syncObjectTypes (syncObjectTypeID), FOREIGN KEY (libraryID) REFERENCES libraries (libraryID) ON DELETE CASCADE);
CREATE TABLE syncQueue (
  libraryID INT NOT NULL, key TEXT NOT NULL, syncObjectTypeID INT NOT NULL, lastCheck TIMESTAMP, tries INT, PRIMARY KEY (libraryID, key, syncObjectTypeID), FOREIGN KEY (libraryID) REFERENCES libraries (libraryID) ON DELETE CASCADE,
  FOREIGN KEY (syncObjectTypeID) REFERENCES syncObjectTypes (syncObjectTypeID) ON DELETE CASCADE);
CREATE TABLE storageDeleteLog (libraryID INT NOT NULL, key TEXT NOT NULL, dateDeleted TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (libraryID, key), FOREIGN KEY (libraryID) REFERENCES libraries (libraryID) ON DELETE CASCADE);
CREATE TABLE proxies (proxyID INTEGER PRIMARY KEY, multiHost INT, autoAssociate INT, scheme TEXT);
CREATE TABLE proxyHosts (hostID INTEGER PRIMARY KEY, proxyID INTEGER, hostname TEXT, FOREIGN KEY (proxyID) REFERENCES proxies (proxyID));
CREATE INDEX proxyHosts_proxyID ON proxyHosts (proxyID);
CREATE TABLE translatorCache (fileName TEXT PRIMARY KEY, metadataJSON TEXT, lastModifiedTime INT);
CREATE TABLE dbDebug1 (a INTEGER PRIMARY KEY);
