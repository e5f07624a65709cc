-- PocketBase 0.23: data.db, with defaults that are random or in double quotes, JSON columns and a view collection
-- @skip _migrations
-- @preserve users posts _params
-- @fill _collections.name 'c' || :n
-- @fill users.email 'u' || :n || '@example.org'
-- @fill users.emailVisibility :n % 2
-- @fill posts.tags '["' || (:n % 7) || '", "v' || :v || '"]'
CREATE TABLE `_migrations` (file VARCHAR(255) PRIMARY KEY NOT NULL, applied INTEGER NOT NULL);
INSERT INTO _migrations VALUES ('1640988000_init.go', 1760000000), ('1717233556_v0.23_migrate.go', 1760000001);
CREATE TABLE `_params` (
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL, `value` JSON DEFAULT NULL, `created` TEXT DEFAULT (strftime('%Y-%m-%d %H:%M:%fZ')) NOT NULL, `updated` TEXT DEFAULT (strftime('%Y-%m-%d %H:%M:%fZ')) NOT NULL);
CREATE TABLE `_collections` (
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL, `system` BOOLEAN DEFAULT FALSE NOT NULL, `type` TEXT DEFAULT "base" NOT NULL, `name` TEXT UNIQUE NOT NULL, `fields` JSON DEFAULT "[]" NOT NULL,
  `indexes` JSON DEFAULT "[]" NOT NULL, `listRule` TEXT DEFAULT NULL, `viewRule` TEXT DEFAULT NULL, `createRule` TEXT DEFAULT NULL, `updateRule` TEXT DEFAULT NULL, `deleteRule` TEXT DEFAULT NULL, `options` JSON DEFAULT "{}" NOT NULL,
  `created` TEXT DEFAULT (strftime('%Y-%m-%d %H:%M:%fZ')) NOT NULL, `updated` TEXT DEFAULT (strftime('%Y-%m-%d %H:%M:%fZ')) NOT NULL);
CREATE INDEX idx__collections_type ON `_collections` (`type`);
CREATE TABLE `_externalAuths` (
  `collectionRef` TEXT DEFAULT '' NOT NULL, `created` TEXT DEFAULT '' NOT NULL, `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL, `provider` TEXT DEFAULT '' NOT NULL, `providerId` TEXT DEFAULT '' NOT NULL,
  `recordRef` TEXT DEFAULT '' NOT NULL, `updated` TEXT DEFAULT '' NOT NULL);
CREATE UNIQUE INDEX `idx_externalAuths_record_provider` ON `_externalAuths` (collectionRef, recordRef, provider);
CREATE UNIQUE INDEX `idx_externalAuths_collection_provider` ON `_externalAuths` (collectionRef, provider, providerId);
CREATE TABLE `_mfas` (
  `collectionRef` TEXT DEFAULT '' NOT NULL, `created` TEXT DEFAULT '' NOT NULL, `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL, `method` TEXT DEFAULT '' NOT NULL, `recordRef` TEXT DEFAULT '' NOT NULL,
  `updated` TEXT DEFAULT '' NOT NULL);
CREATE INDEX `idx_mfas_collectionRef_recordRef` ON `_mfas` (collectionRef, recordRef);
CREATE TABLE `_otps` (
  `collectionRef` TEXT DEFAULT '' NOT NULL, `created` TEXT DEFAULT '' NOT NULL, `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL, `password` TEXT DEFAULT '' NOT NULL, `recordRef` TEXT DEFAULT '' NOT NULL,
  `sentTo` TEXT DEFAULT '' NOT NULL, `updated` TEXT DEFAULT '' NOT NULL);
CREATE INDEX `idx_otps_collectionRef_recordRef` ON `_otps` (collectionRef, recordRef);
CREATE TABLE `_authOrigins` (
  `collectionRef` TEXT DEFAULT '' NOT NULL, `created` TEXT DEFAULT '' NOT NULL, `fingerprint` TEXT DEFAULT '' NOT NULL, `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL, `recordRef` TEXT DEFAULT '' NOT NULL,
  `updated` TEXT DEFAULT '' NOT NULL);
CREATE UNIQUE INDEX `idx_authOrigins_unique_pairs` ON `_authOrigins` (collectionRef, recordRef, fingerprint);
CREATE TABLE `_superusers` (
  `created` TEXT DEFAULT '' NOT NULL, `email` TEXT DEFAULT '' NOT NULL, `emailVisibility` BOOLEAN DEFAULT FALSE NOT NULL, `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL, `password` TEXT DEFAULT '' NOT NULL,
  `tokenKey` TEXT DEFAULT '' NOT NULL, `updated` TEXT DEFAULT '' NOT NULL, `verified` BOOLEAN DEFAULT FALSE NOT NULL);
CREATE UNIQUE INDEX `idx_tokenKey_pbc_3142635823` ON `_superusers` (`tokenKey`);
CREATE UNIQUE INDEX `idx_email_pbc_3142635823` ON `_superusers` (`email`) WHERE `email` != '';
CREATE TABLE `users` (
  `avatar` TEXT DEFAULT '' NOT NULL, `created` TEXT DEFAULT '' NOT NULL, `email` TEXT DEFAULT '' NOT NULL, `emailVisibility` BOOLEAN DEFAULT FALSE NOT NULL, `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `name` TEXT DEFAULT '' NOT NULL, `password` TEXT DEFAULT '' NOT NULL, `tokenKey` TEXT DEFAULT '' NOT NULL, `updated` TEXT DEFAULT '' NOT NULL, `verified` BOOLEAN DEFAULT FALSE NOT NULL);
CREATE UNIQUE INDEX `idx_tokenKey__pb_users_auth_` ON `users` (`tokenKey`);
CREATE UNIQUE INDEX `idx_email__pb_users_auth_` ON `users` (`email`) WHERE `email` != '';
CREATE TABLE `posts` (
  `author` TEXT DEFAULT '' NOT NULL, `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL, `score` NUMERIC DEFAULT 0 NOT NULL, `tags` JSON DEFAULT '[]' NOT NULL, `text` TEXT DEFAULT "" NOT NULL);
CREATE INDEX `idx_posts_tags` ON `posts` (json_extract(tags, '$[0]'), `score` DESC);
CREATE VIEW `tag_counts` AS
  SELECT t.value AS id, count(*) AS posts, sum(count(*)) OVER (ORDER BY t.value) AS running FROM posts, json_each(CASE WHEN iif(json_valid(posts.tags), json_type(posts.tags) = 'array', FALSE) THEN posts.tags ELSE json_array(posts.tags) END) t GROUP BY t.value;
