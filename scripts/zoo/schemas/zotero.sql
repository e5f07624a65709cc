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
