-- Vaultwarden 1.30: db.sqlite3, as Diesel creates it
-- @skip __diesel_schema_migrations
-- @preserve ciphers users folders
-- @fill users.email 'user' || :n || '@example.org'
CREATE TABLE __diesel_schema_migrations (version VARCHAR(50) PRIMARY KEY NOT NULL, run_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP);
INSERT INTO __diesel_schema_migrations VALUES ('20180114171611', '2026-01-01 00:00:00'), ('20230602200424', '2026-01-01 00:00:00');
CREATE TABLE users (
  uuid TEXT NOT NULL PRIMARY KEY, enabled BOOLEAN DEFAULT 1 NOT NULL, created_at DATETIME NOT NULL, updated_at DATETIME NOT NULL, verified_at DATETIME, last_verifying_at DATETIME, login_verify_count INTEGER NOT NULL DEFAULT 0,
  email TEXT NOT NULL UNIQUE, email_new TEXT, email_new_token TEXT, name TEXT NOT NULL, password_hash BLOB NOT NULL, salt BLOB NOT NULL, password_iterations INTEGER NOT NULL, password_hint TEXT, akey TEXT NOT NULL,
  private_key TEXT, public_key TEXT, totp_secret TEXT, totp_recover TEXT, security_stamp TEXT NOT NULL, stamp_exception TEXT, equivalent_domains TEXT NOT NULL, excluded_globals TEXT NOT NULL, client_kdf_type INTEGER NOT NULL DEFAULT 0,
  client_kdf_iter INTEGER NOT NULL DEFAULT 100000, client_kdf_memory INTEGER, client_kdf_parallelism INTEGER, api_key TEXT, avatar_color TEXT, external_id TEXT);
CREATE TABLE organizations (uuid VARCHAR(40) NOT NULL PRIMARY KEY, name TEXT NOT NULL, billing_email TEXT NOT NULL, private_key TEXT, public_key TEXT);
CREATE TABLE ciphers (
  uuid TEXT NOT NULL PRIMARY KEY, created_at DATETIME NOT NULL, updated_at DATETIME NOT NULL, user_uuid TEXT REFERENCES users (uuid), organization_uuid TEXT REFERENCES organizations (uuid), atype INTEGER NOT NULL, name TEXT NOT NULL,
  notes TEXT, fields TEXT, data TEXT NOT NULL, password_history TEXT, deleted_at DATETIME, reprompt INTEGER, key TEXT);
CREATE TABLE attachments (id TEXT NOT NULL PRIMARY KEY, cipher_uuid TEXT NOT NULL REFERENCES ciphers (uuid), file_name TEXT NOT NULL, file_size INTEGER NOT NULL, akey TEXT);
CREATE TABLE folders (uuid TEXT NOT NULL PRIMARY KEY, created_at DATETIME NOT NULL, updated_at DATETIME NOT NULL, user_uuid TEXT NOT NULL REFERENCES users (uuid), name TEXT NOT NULL);
CREATE TABLE folders_ciphers (cipher_uuid TEXT NOT NULL REFERENCES ciphers (uuid), folder_uuid TEXT NOT NULL REFERENCES folders (uuid), PRIMARY KEY (cipher_uuid, folder_uuid));
CREATE TABLE collections (uuid VARCHAR(40) NOT NULL PRIMARY KEY, org_uuid VARCHAR(40) NOT NULL REFERENCES organizations (uuid), name TEXT NOT NULL, external_id TEXT);
CREATE TABLE ciphers_collections (cipher_uuid TEXT NOT NULL REFERENCES ciphers (uuid), collection_uuid TEXT NOT NULL REFERENCES collections (uuid), PRIMARY KEY (cipher_uuid, collection_uuid));
CREATE TABLE users_collections (user_uuid TEXT NOT NULL REFERENCES users (uuid), collection_uuid TEXT NOT NULL REFERENCES collections (uuid), read_only BOOLEAN NOT NULL DEFAULT 0, hide_passwords BOOLEAN NOT NULL DEFAULT FALSE, PRIMARY KEY (user_uuid, collection_uuid));
CREATE TABLE users_organizations (
  uuid VARCHAR(40) NOT NULL PRIMARY KEY, user_uuid TEXT NOT NULL REFERENCES users (uuid), org_uuid TEXT NOT NULL REFERENCES organizations (uuid), access_all BOOLEAN NOT NULL, akey TEXT NOT NULL, status INTEGER NOT NULL, atype INTEGER NOT NULL,
  reset_password_key TEXT, external_id TEXT, UNIQUE (user_uuid, org_uuid));
CREATE TABLE devices (
  uuid TEXT NOT NULL, created_at DATETIME NOT NULL, updated_at DATETIME NOT NULL, user_uuid TEXT NOT NULL, name TEXT NOT NULL, atype INTEGER NOT NULL, push_uuid TEXT, push_token TEXT, refresh_token TEXT NOT NULL, twofactor_remember TEXT,
  PRIMARY KEY (uuid, user_uuid), FOREIGN KEY (user_uuid) REFERENCES users (uuid));
CREATE TABLE org_policies (uuid TEXT NOT NULL PRIMARY KEY, org_uuid TEXT NOT NULL REFERENCES organizations (uuid), atype INTEGER NOT NULL, enabled BOOLEAN NOT NULL, data TEXT NOT NULL, UNIQUE (org_uuid, atype));
CREATE TABLE twofactor (uuid TEXT NOT NULL PRIMARY KEY, user_uuid TEXT NOT NULL REFERENCES users (uuid), atype INTEGER NOT NULL, enabled BOOLEAN NOT NULL, data TEXT NOT NULL, last_used INTEGER NOT NULL DEFAULT 0, UNIQUE (user_uuid, atype));
CREATE TABLE favorites (user_uuid TEXT NOT NULL REFERENCES users (uuid), cipher_uuid TEXT NOT NULL REFERENCES ciphers (uuid), PRIMARY KEY (user_uuid, cipher_uuid));
CREATE TABLE invitations (email TEXT NOT NULL PRIMARY KEY);
CREATE TABLE event (uuid CHAR(36) NOT NULL PRIMARY KEY, event_type INTEGER NOT NULL, user_uuid CHAR(36), org_uuid CHAR(36), cipher_uuid CHAR(36), collection_uuid CHAR(36), group_uuid CHAR(36), org_user_uuid CHAR(36), act_user_uuid CHAR(36), device_type INTEGER, ip_address TEXT, event_date DATETIME NOT NULL, policy_uuid CHAR(36), provider_uuid CHAR(36));
CREATE TABLE sends (
  uuid TEXT NOT NULL PRIMARY KEY, user_uuid TEXT REFERENCES users (uuid), organization_uuid TEXT REFERENCES organizations (uuid), name TEXT NOT NULL, notes TEXT, atype INTEGER NOT NULL, data TEXT NOT NULL, akey TEXT NOT NULL, password_hash BLOB,
  password_salt BLOB, password_iter INTEGER, max_access_count INTEGER, access_count INTEGER NOT NULL, creation_date DATETIME NOT NULL, revision_date DATETIME NOT NULL, expiration_date DATETIME, deletion_date DATETIME NOT NULL, disabled BOOLEAN NOT NULL, hide_email BOOLEAN);
