-- Mumble server 1.3, schema version 7: mumble-server.sqlite, with the triggers that delete what belongs together
-- @skip meta
-- @skip slog
-- @rows servers 3
-- @preserve users config
-- @fill channels.parent_id NULL
-- @fill channels.server_id 1
-- @fill channels.channel_id :n
-- @fill channel_info.server_id 1
-- @fill channel_info.channel_id :n
-- @fill users.server_id 1
-- @fill users.user_id :n
-- @fill user_info.server_id 1
-- @fill user_info.user_id :n
-- @fill groups.server_id 1
-- @fill groups.channel_id :n
-- @fill group_members.server_id 1
-- @fill group_members.user_id :n
-- @fill acl.server_id 1
-- @fill acl.channel_id :n
-- @fill acl.user_id :n
-- @fill bans.server_id 1
-- @fill config.server_id 1
CREATE TABLE meta (keystring TEXT PRIMARY KEY, value TEXT);
INSERT INTO meta VALUES ('version', '7');
CREATE TABLE servers (server_id INTEGER PRIMARY KEY AUTOINCREMENT);
CREATE TABLE slog (server_id INTEGER NOT NULL, msg TEXT, msgtime DATE);
CREATE INDEX slog_time ON slog (msgtime);
CREATE TRIGGER slog_timestamp AFTER INSERT ON slog FOR EACH ROW BEGIN UPDATE slog SET msgtime = datetime('now') WHERE rowid = new.rowid; END;
CREATE TRIGGER slog_server_del AFTER DELETE ON servers FOR EACH ROW BEGIN DELETE FROM slog WHERE server_id = old.server_id; END;
CREATE TABLE config (server_id INTEGER NOT NULL, key TEXT, value TEXT);
CREATE UNIQUE INDEX config_key ON config (server_id, key);
CREATE TRIGGER config_server_del AFTER DELETE ON servers FOR EACH ROW BEGIN DELETE FROM config WHERE server_id = old.server_id; END;
CREATE TABLE channels (server_id INTEGER NOT NULL, channel_id INTEGER NOT NULL, parent_id INTEGER, name TEXT, inheritacl INTEGER);
CREATE UNIQUE INDEX channel_id ON channels (server_id, channel_id);
CREATE TRIGGER channels_parent_del AFTER DELETE ON channels FOR EACH ROW BEGIN DELETE FROM channels WHERE parent_id = old.channel_id AND server_id = old.server_id; END;
CREATE TRIGGER channels_server_del AFTER DELETE ON servers FOR EACH ROW BEGIN DELETE FROM channels WHERE server_id = old.server_id; END;
CREATE TABLE channel_info (server_id INTEGER NOT NULL, channel_id INTEGER NOT NULL, key INTEGER, value TEXT);
CREATE UNIQUE INDEX channel_info_id ON channel_info (server_id, channel_id, key);
CREATE TRIGGER channel_info_del_channel AFTER DELETE ON channels FOR EACH ROW BEGIN DELETE FROM channel_info WHERE channel_id = old.channel_id AND server_id = old.server_id; END;
CREATE TABLE users (
  server_id INTEGER NOT NULL, user_id INTEGER NOT NULL, name TEXT NOT NULL, pw TEXT, salt TEXT, kdfiterations INTEGER, lastchannel INTEGER, texture BLOB, last_active DATE);
CREATE INDEX users_channel ON users (server_id, lastchannel);
CREATE UNIQUE INDEX users_name ON users (server_id, name);
CREATE UNIQUE INDEX users_id ON users (server_id, user_id);
CREATE TRIGGER users_server_del AFTER DELETE ON servers FOR EACH ROW BEGIN DELETE FROM users WHERE server_id = old.server_id; END;
CREATE TRIGGER users_update_timestamp AFTER UPDATE OF lastchannel ON users FOR EACH ROW BEGIN UPDATE users SET last_active = datetime('now') WHERE user_id = old.user_id AND server_id = old.server_id; END;
CREATE TABLE user_info (server_id INTEGER NOT NULL, user_id INTEGER NOT NULL, key INTEGER, value TEXT);
CREATE UNIQUE INDEX user_info_id ON user_info (server_id, user_id, key);
CREATE TRIGGER user_info_del_user AFTER DELETE ON users FOR EACH ROW BEGIN DELETE FROM user_info WHERE user_id = old.user_id AND server_id = old.server_id; END;
CREATE TABLE groups (group_id INTEGER PRIMARY KEY AUTOINCREMENT, server_id INTEGER NOT NULL, name TEXT, channel_id INTEGER NOT NULL, inherit INTEGER, inheritable INTEGER);
CREATE UNIQUE INDEX groups_name_channels ON groups (server_id, channel_id, name);
CREATE TRIGGER groups_del_channel AFTER DELETE ON channels FOR EACH ROW BEGIN DELETE FROM groups WHERE channel_id = old.channel_id AND server_id = old.server_id; END;
CREATE TABLE group_members (group_id INTEGER NOT NULL, server_id INTEGER NOT NULL, user_id INTEGER NOT NULL, addit INTEGER);
CREATE INDEX groups_members_users ON group_members (server_id, user_id);
CREATE TRIGGER groups_members_del_group AFTER DELETE ON groups FOR EACH ROW BEGIN DELETE FROM group_members WHERE group_id = old.group_id; END;
CREATE TABLE acl (server_id INTEGER NOT NULL, channel_id INTEGER NOT NULL, priority INTEGER, user_id INTEGER, group_name TEXT, apply_here INTEGER, apply_sub INTEGER, grantpriv INTEGER, revokepriv INTEGER);
CREATE UNIQUE INDEX acl_channel_pri ON acl (server_id, channel_id, priority);
CREATE INDEX acl_user ON acl (server_id, user_id);
CREATE TRIGGER acl_del_channel AFTER DELETE ON channels FOR EACH ROW BEGIN DELETE FROM acl WHERE channel_id = old.channel_id AND server_id = old.server_id; END;
CREATE TABLE channel_links (server_id INTEGER NOT NULL, channel_id INTEGER NOT NULL, link_id INTEGER NOT NULL);
CREATE TRIGGER channel_links_del_channel AFTER DELETE ON channels FOR EACH ROW BEGIN
  DELETE FROM channel_links WHERE server_id = old.server_id AND (channel_id = old.channel_id OR link_id = old.channel_id);
END;
CREATE TABLE bans (server_id INTEGER NOT NULL, base BLOB, mask INTEGER, name TEXT, hash TEXT, reason TEXT, start DATE, duration INTEGER);
CREATE TRIGGER bans_del_server AFTER DELETE ON servers FOR EACH ROW BEGIN DELETE FROM bans WHERE server_id = old.server_id; END;
