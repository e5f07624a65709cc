-- Navidrome 0.53: navidrome.db, with JSON in columns and the indexes of its migrations
-- @skip goose_db_version
-- @preserve media_file annotation playlist
CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')));
INSERT INTO goose_db_version VALUES (1, 0, 1, '2026-01-01 00:00:00'), (2, 20240629152843, 1, '2026-01-01 00:00:00');
CREATE TABLE user (
  id varchar(255) NOT NULL PRIMARY KEY, user_name varchar(255) DEFAULT '' NOT NULL UNIQUE, name varchar(255) COLLATE NOCASE DEFAULT '' NOT NULL, email varchar(255) DEFAULT '' NOT NULL,
  password varchar(255) DEFAULT '' NOT NULL, is_admin bool DEFAULT FALSE NOT NULL, last_login_at datetime, last_access_at datetime, created_at datetime NOT NULL, updated_at datetime NOT NULL);
CREATE INDEX user_username_password ON user (user_name COLLATE NOCASE, password);
CREATE TABLE library (id integer PRIMARY KEY AUTOINCREMENT, name text NOT NULL UNIQUE, path text NOT NULL UNIQUE, remote_path text NULL DEFAULT '', last_scan_at datetime NOT NULL DEFAULT '0000-00-00 00:00:00', updated_at datetime NOT NULL DEFAULT CURRENT_TIMESTAMP, created_at datetime NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE artist (
  id varchar(255) NOT NULL PRIMARY KEY, name varchar(255) COLLATE NOCASE NOT NULL DEFAULT '', album_count integer NOT NULL DEFAULT 0, full_text varchar(255) DEFAULT '', song_count integer NOT NULL DEFAULT 0,
  size integer NOT NULL DEFAULT 0, mbz_artist_id varchar(255), biography varchar(255) NOT NULL DEFAULT '', small_image_url varchar(255) NOT NULL DEFAULT '', similar_artists varchar(255) NOT NULL DEFAULT '',
  external_info_updated_at datetime, order_artist_name varchar COLLATE NOCASE NOT NULL DEFAULT '', sort_artist_name varchar COLLATE NOCASE NOT NULL DEFAULT '');
CREATE INDEX artist_name ON artist (name);
CREATE INDEX artist_order_artist_name ON artist (order_artist_name);
CREATE INDEX artist_sort_name ON artist (coalesce(nullif(sort_artist_name, ''), order_artist_name) COLLATE NOCASE);
CREATE TABLE album (
  id varchar(255) NOT NULL PRIMARY KEY, name varchar(255) COLLATE NOCASE NOT NULL DEFAULT '', embed_art_path varchar(255) NOT NULL DEFAULT '', artist_id varchar(255) NOT NULL DEFAULT '',
  album_artist varchar(255) COLLATE NOCASE NOT NULL DEFAULT '', min_year int NOT NULL DEFAULT 0, max_year integer NOT NULL DEFAULT 0, compilation bool NOT NULL DEFAULT FALSE,
  song_count integer NOT NULL DEFAULT 0, duration real NOT NULL DEFAULT 0, genre varchar(255) NOT NULL DEFAULT '', created_at datetime, updated_at datetime, full_text varchar(255) DEFAULT '',
  size integer NOT NULL DEFAULT 0, discs jsonb NOT NULL DEFAULT '{}', library_id integer NOT NULL DEFAULT 1 REFERENCES library (id) ON DELETE CASCADE,
  order_album_name varchar COLLATE NOCASE NOT NULL DEFAULT '', sort_album_name varchar COLLATE NOCASE NOT NULL DEFAULT '');
CREATE INDEX album_alphabetical_by_artist ON album (compilation, album_artist, order_album_name);
CREATE INDEX album_genre ON album (genre);
CREATE INDEX album_sort_name ON album (coalesce(nullif(sort_album_name, ''), order_album_name) COLLATE NOCASE);
CREATE TABLE media_file (
  id varchar(255) NOT NULL PRIMARY KEY, path varchar(255) NOT NULL DEFAULT '', title varchar(255) COLLATE NOCASE NOT NULL DEFAULT '', album varchar(255) NOT NULL DEFAULT '',
  artist_id varchar(255) NOT NULL DEFAULT '', album_id varchar(255) NOT NULL DEFAULT '', has_cover_art bool NOT NULL DEFAULT FALSE, track_number integer NOT NULL DEFAULT 0,
  disc_number integer NOT NULL DEFAULT 0, year integer NOT NULL DEFAULT 0, size integer NOT NULL DEFAULT 0, suffix varchar(255) NOT NULL DEFAULT '', duration real NOT NULL DEFAULT 0,
  bit_rate integer NOT NULL DEFAULT 0, genre varchar(255) NOT NULL DEFAULT '', compilation bool NOT NULL DEFAULT FALSE, created_at datetime, updated_at datetime,
  full_text varchar(255) DEFAULT '', bpm integer, lyrics jsonb DEFAULT '[]', rg_album_gain real, library_id integer NOT NULL DEFAULT 1 REFERENCES library (id) ON DELETE CASCADE);
CREATE INDEX media_file_album_id ON media_file (album_id);
CREATE INDEX media_file_path_nocase ON media_file (path COLLATE NOCASE);
CREATE INDEX media_file_duration ON media_file (duration);
CREATE TABLE annotation (
  user_id varchar(255) NOT NULL REFERENCES user (id) ON DELETE CASCADE ON UPDATE CASCADE, item_id varchar(255) DEFAULT '' NOT NULL, item_type varchar(255) DEFAULT '' NOT NULL,
  play_count integer DEFAULT 0, play_date datetime, rating integer DEFAULT 0, starred bool DEFAULT FALSE NOT NULL, starred_at datetime, UNIQUE (user_id, item_id, item_type));
CREATE INDEX annotation_play_count ON annotation (play_count);
CREATE TABLE playlist (
  id varchar(255) NOT NULL PRIMARY KEY, name varchar(255) COLLATE NOCASE DEFAULT '' NOT NULL, comment varchar(255) DEFAULT '' NOT NULL, duration real DEFAULT 0 NOT NULL, song_count integer DEFAULT 0 NOT NULL,
  public bool DEFAULT FALSE NOT NULL, created_at datetime, updated_at datetime, path string DEFAULT '' NOT NULL, sync bool DEFAULT FALSE NOT NULL, size integer DEFAULT 0 NOT NULL,
  rules varchar, evaluated_at datetime, owner_id varchar(255) NOT NULL, CONSTRAINT playlist_user_user_id_fk FOREIGN KEY (owner_id) REFERENCES user (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE INDEX playlist_name ON playlist (name);
CREATE TABLE playlist_tracks (
  id integer DEFAULT 0 NOT NULL, playlist_id varchar(255) NOT NULL, media_file_id varchar(255) NOT NULL, FOREIGN KEY (playlist_id) REFERENCES playlist (id) ON UPDATE CASCADE ON DELETE CASCADE);
CREATE UNIQUE INDEX playlist_tracks_pos ON playlist_tracks (playlist_id, id);
CREATE TABLE property (id varchar(255) NOT NULL PRIMARY KEY, value varchar(1024) DEFAULT '' NOT NULL);
CREATE TABLE player (
  id varchar(255) NOT NULL PRIMARY KEY, name varchar NOT NULL, user_agent varchar, user_id varchar(255) NOT NULL REFERENCES user (id) ON DELETE CASCADE, client varchar NOT NULL, ip varchar,
  last_seen timestamp, max_bit_rate int DEFAULT 0, transcoding_id varchar, report_real_path bool DEFAULT FALSE NOT NULL, scrobble_enabled bool DEFAULT TRUE NOT NULL);
CREATE INDEX player_match ON player (client, user_agent, user_id);
CREATE TABLE scrobble_buffer (
  user_id varchar NOT NULL CONSTRAINT scrobble_buffer_user_id_fk REFERENCES user ON DELETE CASCADE, service varchar NOT NULL,
  media_file_id varchar NOT NULL CONSTRAINT scrobble_buffer_media_file_id_fk REFERENCES media_file ON DELETE CASCADE, play_time datetime NOT NULL, enqueue_time datetime NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT scrobble_buffer_pk UNIQUE (user_id, service, media_file_id, play_time));
CREATE TABLE share (
  id varchar(255) NOT NULL PRIMARY KEY, expires_at datetime, last_visited_at datetime, resource_ids varchar NOT NULL, created_at datetime, updated_at datetime,
  user_id varchar(255) NOT NULL CONSTRAINT share_user_id_fk REFERENCES user, downloadable bool DEFAULT FALSE NOT NULL, description varchar DEFAULT '' NOT NULL, visit_count integer DEFAULT 0 NOT NULL);
CREATE TABLE bookmark (user_id varchar(255) NOT NULL REFERENCES user ON UPDATE CASCADE ON DELETE CASCADE, item_id varchar(255) NOT NULL, item_type varchar(255) NOT NULL, comment varchar(255), position integer, changed_by varchar(255), created_at datetime, updated_at datetime, CONSTRAINT bookmark_pk UNIQUE (user_id, item_id, item_type));
