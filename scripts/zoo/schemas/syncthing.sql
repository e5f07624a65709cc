-- Syncthing 2.0: folder database, with STRICT tables, views, partial indexes and triggers that keep counts
-- @skip counts
-- @skip schemamigrations
-- @preserve files blocks kv
-- @migrate kv
-- @fill files.device_idx 1
-- @fill files.local_flags 0
-- @fill files.deleted :n % 2
-- @fill files.sequence :n
-- @fill files.type 0
-- @fill files.size :n * 100
-- @fill folders.folder_id 'f' || :n
CREATE TABLE schemamigrations (schema_version INTEGER NOT NULL PRIMARY KEY, applied_at INTEGER NOT NULL, syncthing_version TEXT NOT NULL COLLATE BINARY) STRICT;
INSERT INTO schemamigrations VALUES (4, 1760000000, 'v2.0.0');
CREATE TABLE devices (idx INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, device_id TEXT NOT NULL UNIQUE COLLATE BINARY) STRICT;
CREATE TABLE folders (idx INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, folder_id TEXT NOT NULL UNIQUE COLLATE BINARY, database_name TEXT COLLATE BINARY) STRICT;
CREATE TABLE file_names (idx INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL UNIQUE COLLATE BINARY) STRICT;
CREATE TABLE file_versions (idx INTEGER NOT NULL PRIMARY KEY, version TEXT NOT NULL UNIQUE COLLATE BINARY) STRICT;
CREATE TABLE files (
  device_idx INTEGER NOT NULL, sequence INTEGER NOT NULL, remote_sequence INTEGER, name_idx INTEGER NOT NULL, type INTEGER NOT NULL, modified INTEGER NOT NULL, size INTEGER NOT NULL, version_idx INTEGER NOT NULL,
  deleted INTEGER NOT NULL, local_flags INTEGER NOT NULL, blocklist_hash BLOB, PRIMARY KEY (device_idx, sequence),
  FOREIGN KEY (name_idx) REFERENCES file_names (idx), FOREIGN KEY (version_idx) REFERENCES file_versions (idx), FOREIGN KEY (device_idx) REFERENCES devices (idx) ON DELETE CASCADE) STRICT;
CREATE UNIQUE INDEX files_device_name ON files (device_idx, name_idx);
CREATE INDEX files_name_only ON files (name_idx);
CREATE INDEX files_needed_by_size ON files (size, name_idx) WHERE local_flags & 2;
CREATE INDEX files_blocklist_hash ON files (blocklist_hash) WHERE blocklist_hash IS NOT NULL;
CREATE TABLE fileinfos (device_idx INTEGER NOT NULL, sequence INTEGER NOT NULL, fiprotobuf BLOB NOT NULL, PRIMARY KEY (device_idx, sequence), FOREIGN KEY (device_idx, sequence) REFERENCES files (device_idx, sequence) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED) STRICT, WITHOUT ROWID;
CREATE TABLE blocklists (blocklist_hash BLOB NOT NULL PRIMARY KEY, blprotobuf BLOB NOT NULL) STRICT;
CREATE TABLE blocks (hash BLOB NOT NULL, blocklist_hash BLOB NOT NULL, idx INTEGER NOT NULL, offset INTEGER NOT NULL, size INTEGER NOT NULL, PRIMARY KEY (hash, blocklist_hash, idx), FOREIGN KEY (blocklist_hash) REFERENCES blocklists (blocklist_hash) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED) STRICT, WITHOUT ROWID;
CREATE TABLE indexids (device_idx INTEGER NOT NULL PRIMARY KEY, index_id TEXT NOT NULL COLLATE BINARY, sequence INTEGER NOT NULL DEFAULT 0, FOREIGN KEY (device_idx) REFERENCES devices (idx) ON DELETE CASCADE) STRICT, WITHOUT ROWID;
CREATE TABLE counts (device_idx INTEGER NOT NULL, type INTEGER NOT NULL, local_flags INTEGER NOT NULL, count INTEGER NOT NULL, size INTEGER NOT NULL, deleted INTEGER NOT NULL, PRIMARY KEY (device_idx, type, local_flags, deleted)) STRICT, WITHOUT ROWID;
CREATE TRIGGER counts_insert AFTER INSERT ON files BEGIN
  INSERT INTO counts (device_idx, type, local_flags, count, size, deleted) VALUES (new.device_idx, new.type, new.local_flags, 1, new.size, new.deleted)
    ON CONFLICT DO UPDATE SET count = count + 1, size = size + new.size;
END;
CREATE TRIGGER counts_delete AFTER DELETE ON files BEGIN
  UPDATE counts SET count = count - 1, size = size - old.size
    WHERE device_idx = old.device_idx AND type = old.type AND local_flags = old.local_flags AND deleted = old.deleted;
END;
CREATE TRIGGER counts_update AFTER UPDATE OF local_flags ON files WHEN new.local_flags != old.local_flags BEGIN
  INSERT INTO counts (device_idx, type, local_flags, count, size, deleted) VALUES (new.device_idx, new.type, new.local_flags, 1, new.size, new.deleted)
    ON CONFLICT DO UPDATE SET count = count + 1, size = size + new.size;
  UPDATE counts SET count = count - 1, size = size - old.size
    WHERE device_idx = old.device_idx AND type = old.type AND local_flags = old.local_flags AND deleted = old.deleted;
END;
CREATE TABLE mtimes (folder_idx INTEGER NOT NULL, name TEXT NOT NULL, ondisk INTEGER NOT NULL, virtual INTEGER NOT NULL, PRIMARY KEY (folder_idx, name), FOREIGN KEY (folder_idx) REFERENCES folders (idx) ON DELETE CASCADE) STRICT, WITHOUT ROWID;
CREATE TABLE kv (key TEXT NOT NULL PRIMARY KEY COLLATE BINARY, value BLOB NOT NULL) STRICT;
