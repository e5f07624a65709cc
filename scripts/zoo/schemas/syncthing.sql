-- Syncthing 2.0 beta: the database of all folders, with STRICT and WITHOUT ROWID tables, triggers with upserts, a string in double quotes
-- @skip counts
-- @skip indexids
-- @preserve devices kv mtimes
-- @migrate kv
-- @fill files.deleted :n % 2
-- @fill files.invalid 0
-- @fill files.local_flags :n % 3
-- @fill files.type 0
-- @fill files.size :n * 100
CREATE TABLE folders (idx INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, folder_id TEXT NOT NULL UNIQUE COLLATE BINARY) STRICT;
CREATE TABLE devices (idx INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, device_id TEXT NOT NULL UNIQUE COLLATE BINARY) STRICT;
CREATE TABLE files (
  folder_idx INTEGER NOT NULL, device_idx INTEGER NOT NULL, sequence INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, remote_sequence INTEGER, name TEXT NOT NULL COLLATE BINARY, type INTEGER NOT NULL,
  modified INTEGER NOT NULL, size INTEGER NOT NULL, version TEXT NOT NULL COLLATE BINARY, deleted INTEGER NOT NULL, invalid INTEGER NOT NULL, local_flags INTEGER NOT NULL, blocklist_hash BLOB,
  FOREIGN KEY (device_idx) REFERENCES devices (idx) ON DELETE CASCADE, FOREIGN KEY (folder_idx) REFERENCES folders (idx) ON DELETE CASCADE) STRICT;
CREATE TABLE fileinfos (
  sequence INTEGER NOT NULL PRIMARY KEY, fiprotobuf BLOB NOT NULL, FOREIGN KEY (sequence) REFERENCES files (sequence) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED) STRICT;
CREATE UNIQUE INDEX files_remote_sequence ON files (folder_idx, device_idx, remote_sequence) WHERE remote_sequence IS NOT NULL;
CREATE UNIQUE INDEX files_device_name ON files (folder_idx, device_idx, name);
CREATE INDEX files_name_only ON files (folder_idx, name);
CREATE INDEX files_blocklist_hash_only ON files (blocklist_hash, device_idx, folder_idx) WHERE blocklist_hash IS NOT NULL;
CREATE TABLE counts (
  folder_idx INTEGER NOT NULL, device_idx INTEGER NOT NULL, type INTEGER NOT NULL, local_flags INTEGER NOT NULL, count INTEGER NOT NULL, size INTEGER NOT NULL, deleted INTEGER NOT NULL,
  PRIMARY KEY (folder_idx, device_idx, type, local_flags, deleted),
  FOREIGN KEY (device_idx) REFERENCES devices (idx) ON DELETE CASCADE, FOREIGN KEY (folder_idx) REFERENCES folders (idx) ON DELETE CASCADE) STRICT, WITHOUT ROWID;
CREATE TRIGGER counts_insert AFTER INSERT ON files BEGIN
  INSERT INTO counts (folder_idx, device_idx, type, local_flags, count, size, deleted)
    VALUES (new.folder_idx, new.device_idx, new.type, new.local_flags, 1, new.size, new.deleted)
    ON CONFLICT DO UPDATE SET count = count + 1, size = size + new.size;
END;
CREATE TRIGGER counts_delete AFTER DELETE ON files BEGIN
  UPDATE counts SET count = count - 1, size = size - old.size
    WHERE folder_idx = old.folder_idx AND device_idx = old.device_idx AND type = old.type AND local_flags = old.local_flags AND deleted = old.deleted;
END;
CREATE TRIGGER counts_update AFTER UPDATE OF local_flags ON files WHEN new.local_flags != old.local_flags BEGIN
  INSERT INTO counts (folder_idx, device_idx, type, local_flags, count, size, deleted)
    VALUES (new.folder_idx, new.device_idx, new.type, new.local_flags, 1, new.size, new.deleted)
    ON CONFLICT DO UPDATE SET count = count + 1, size = size + new.size;
  UPDATE counts SET count = count - 1, size = size - old.size
    WHERE folder_idx = old.folder_idx AND device_idx = old.device_idx AND type = old.type AND local_flags = old.local_flags AND deleted = old.deleted;
END;
CREATE TABLE indexids (
  device_idx INTEGER NOT NULL, folder_idx INTEGER NOT NULL, index_id TEXT NOT NULL COLLATE BINARY, sequence INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (device_idx, folder_idx),
  FOREIGN KEY (folder_idx) REFERENCES folders (idx) ON DELETE CASCADE, FOREIGN KEY (device_idx) REFERENCES devices (idx) ON DELETE CASCADE) STRICT, WITHOUT ROWID;
CREATE TRIGGER indexids_seq AFTER INSERT ON files BEGIN
  INSERT INTO indexids (folder_idx, device_idx, index_id, sequence) VALUES (new.folder_idx, new.device_idx, "", coalesce(new.remote_sequence, new.sequence))
    ON CONFLICT DO UPDATE SET sequence = coalesce(new.remote_sequence, new.sequence);
END;
CREATE TABLE blocklists (blocklist_hash BLOB NOT NULL PRIMARY KEY, blprotobuf BLOB NOT NULL) STRICT;
CREATE TABLE blocks (
  hash BLOB NOT NULL, blocklist_hash BLOB NOT NULL, idx INTEGER NOT NULL, offset INTEGER NOT NULL, size INTEGER NOT NULL, PRIMARY KEY (hash, blocklist_hash, idx),
  FOREIGN KEY (blocklist_hash) REFERENCES blocklists (blocklist_hash) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED) STRICT;
CREATE TABLE mtimes (
  folder_idx INTEGER NOT NULL, name TEXT NOT NULL, ondisk INTEGER NOT NULL, virtual INTEGER NOT NULL, PRIMARY KEY (folder_idx, name), FOREIGN KEY (folder_idx) REFERENCES folders (idx) ON DELETE CASCADE) STRICT, WITHOUT ROWID;
CREATE TABLE kv (key TEXT NOT NULL PRIMARY KEY COLLATE BINARY, value BLOB NOT NULL) STRICT;
