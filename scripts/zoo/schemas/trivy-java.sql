-- Trivy 0.58, java-db schema version 1: trivy-java.db
-- @rows artifacts 600
-- @rows indices 600
-- @preserve artifacts indices
CREATE TABLE artifacts (id INTEGER PRIMARY KEY, group_id TEXT, artifact_id TEXT);
CREATE TABLE indices (
  artifact_id INTEGER, version TEXT, sha1 BLOB, archive_type TEXT, FOREIGN KEY (artifact_id) REFERENCES artifacts (id));
CREATE UNIQUE INDEX artifacts_idx ON artifacts (artifact_id, group_id);
CREATE INDEX indices_artifact_idx ON indices (artifact_id);
CREATE UNIQUE INDEX indices_sha1_idx ON indices (sha1);
