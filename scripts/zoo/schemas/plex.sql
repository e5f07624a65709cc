-- Plex Media Server 1.32: com.plexapp.plugins.library.db, with the collation icu_root and the tokenizer collating
-- @collation icu_root
-- @tokenizer collating unicode61
-- @skip schema_migrations
-- @skip fts4_metadata_titles_icu
-- @skip fts4_tag_titles_icu
-- @preserve media_items metadata_item_settings accounts
-- @migrate media_items
CREATE TABLE "schema_migrations" ("version" varchar(255) NOT NULL);
INSERT INTO schema_migrations VALUES ('20230101000000'), ('500000000000');
CREATE UNIQUE INDEX "unique_schema_migrations" ON "schema_migrations" ("version");
CREATE TABLE "library_sections" (
  "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, "library_id" integer, "name" varchar(255), "name_sort" varchar(255) COLLATE NOCASE, "section_type" integer, "language" varchar(255),
  "agent" varchar(255), "scanner" varchar(255), "user_thumb_url" varchar(255), "user_art_url" varchar(255), "public" boolean, "created_at" dt_integer(8), "updated_at" dt_integer(8),
  "scanned_at" dt_integer(8), "display_secondary_level" boolean, "user_fields" varchar(255), "query_xml" text, "query_type" integer, "uuid" varchar(255));
CREATE INDEX "index_library_sections_on_name" ON "library_sections" ("name");
CREATE INDEX "index_library_sections_on_name_sort" ON "library_sections" ("name_sort");
CREATE TABLE "metadata_items" (
  "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, "library_section_id" integer, "parent_id" integer, "metadata_type" integer, "guid" varchar(255), "media_item_count" integer,
  "title" varchar(255), "title_sort" varchar(255) COLLATE NOCASE, "original_title" varchar(255), "studio" varchar(255), "rating" float, "rating_count" integer, "tagline" varchar(255),
  "summary" text, "trivia" text, "content_rating" varchar(255), "index" integer, "absolute_index" integer, "duration" integer, "user_thumb_url" varchar(255), "tags_genre" varchar(255),
  "tags_director" varchar(255), "originally_available_at" dt_integer(8), "year" integer, "added_at" dt_integer(8), "updated_at" dt_integer(8), "hash" varchar(255), "extra_data" varchar(255));
CREATE INDEX "index_metadata_items_on_guid" ON "metadata_items" ("guid");
CREATE INDEX "index_metadata_items_on_title" ON "metadata_items" ("title");
CREATE INDEX "index_title_sort_icu" ON "metadata_items" ("title_sort" COLLATE icu_root);
CREATE INDEX "index_metadata_items_on_original_title" ON "metadata_items" ("original_title" COLLATE icu_root);
CREATE TABLE "media_items" (
  "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, "library_section_id" integer, "section_location_id" integer, "metadata_item_id" integer, "type_id" integer, "width" integer, "height" integer,
  "size" integer(8), "duration" integer, "bitrate" integer, "container" varchar(255), "video_codec" varchar(255), "audio_codec" varchar(255), "display_aspect_ratio" float,
  "frames_per_second" float, "audio_channels" integer, "interlaced" boolean, "hints" varchar(255), "created_at" dt_integer(8), "updated_at" dt_integer(8), "extra_data" varchar(255));
CREATE INDEX "index_media_items_on_library_section_id" ON "media_items" ("library_section_id");
CREATE INDEX "index_media_items_on_metadata_item_id" ON "media_items" ("metadata_item_id");
CREATE TABLE "media_parts" (
  "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, "media_item_id" integer, "directory_id" integer, "hash" varchar(255), "open_subtitle_hash" varchar(255), "file" varchar(255),
  "index" integer, "size" integer(8), "duration" integer, "created_at" dt_integer(8), "updated_at" dt_integer(8), "deleted_at" dt_integer(8), "extra_data" varchar(255));
CREATE INDEX "index_media_parts_on_file" ON "media_parts" ("file");
CREATE INDEX "index_media_parts_on_size" ON "media_parts" ("size");
CREATE TABLE "tags" (
  "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, "metadata_item_id" integer, "tag" varchar(255) COLLATE NOCASE, "tag_type" integer, "user_thumb_url" varchar(255), "created_at" dt_integer(8),
  "updated_at" dt_integer(8), "tag_value" integer, "extra_data" varchar(255), "key" varchar(255), "parent_id" integer);
CREATE INDEX "index_tags_on_tag" ON "tags" ("tag");
CREATE INDEX "index_tags_on_tag_icu" ON "tags" ("tag" COLLATE icu_root);
CREATE TABLE "taggings" (
  "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, "metadata_item_id" integer, "tag_id" integer, "index" integer, "text" varchar(255), "time_offset" integer, "end_time_offset" integer,
  "thumb_url" varchar(255), "created_at" dt_integer(8), "extra_data" varchar(255));
CREATE INDEX "index_taggings_on_metadata_item_id" ON "taggings" ("metadata_item_id");
CREATE INDEX "index_taggings_on_tag_id" ON "taggings" ("tag_id");
CREATE TABLE "accounts" (
  "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, "name" varchar(255), "hashed_password" varchar(255), "salt" varchar(255), "created_at" dt_integer(8), "updated_at" dt_integer(8),
  "default_audio_language" varchar(255), "default_subtitle_language" varchar(255), "auto_select_subtitle" boolean, "auto_select_audio" boolean);
CREATE INDEX "index_accounts_on_name" ON "accounts" ("name");
CREATE TABLE "metadata_item_settings" (
  "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, "account_id" integer, "guid" varchar(255), "rating" float, "view_offset" integer, "view_count" integer, "last_viewed_at" dt_integer(8),
  "created_at" dt_integer(8), "updated_at" dt_integer(8), "skip_count" integer DEFAULT 0, "last_skipped_at" dt_integer(8) DEFAULT NULL, "changed_at" integer(8) DEFAULT 0, "extra_data" varchar(255));
CREATE INDEX "index_metadata_item_settings_on_account_id" ON "metadata_item_settings" ("account_id");
CREATE UNIQUE INDEX "index_metadata_item_settings_on_account_id_and_guid" ON "metadata_item_settings" ("account_id", "guid");
CREATE VIRTUAL TABLE fts4_metadata_titles_icu USING fts4(content="metadata_items", title, title_sort, original_title, tokenize=collating);
CREATE VIRTUAL TABLE fts4_tag_titles_icu USING fts4(content="tags", tag, tokenize=collating);
CREATE TRIGGER fts4_metadata_titles_before_update_icu BEFORE UPDATE ON metadata_items BEGIN DELETE FROM fts4_metadata_titles_icu WHERE docid = old.rowid; END;
CREATE TRIGGER fts4_metadata_titles_before_delete_icu BEFORE DELETE ON metadata_items BEGIN DELETE FROM fts4_metadata_titles_icu WHERE docid = old.rowid; END;
CREATE TRIGGER fts4_metadata_titles_after_update_icu AFTER UPDATE ON metadata_items BEGIN
  INSERT INTO fts4_metadata_titles_icu (docid, title, title_sort, original_title) VALUES (new.rowid, new.title, new.title_sort, new.original_title);
END;
CREATE TRIGGER fts4_metadata_titles_after_insert_icu AFTER INSERT ON metadata_items BEGIN
  INSERT INTO fts4_metadata_titles_icu (docid, title, title_sort, original_title) VALUES (new.rowid, new.title, new.title_sort, new.original_title);
END;
CREATE TRIGGER fts4_tag_titles_before_update_icu BEFORE UPDATE ON tags BEGIN DELETE FROM fts4_tag_titles_icu WHERE docid = old.rowid; END;
CREATE TRIGGER fts4_tag_titles_before_delete_icu BEFORE DELETE ON tags BEGIN DELETE FROM fts4_tag_titles_icu WHERE docid = old.rowid; END;
CREATE TRIGGER fts4_tag_titles_after_update_icu AFTER UPDATE ON tags BEGIN INSERT INTO fts4_tag_titles_icu (docid, tag) VALUES (new.rowid, new.tag); END;
CREATE TRIGGER fts4_tag_titles_after_insert_icu AFTER INSERT ON tags BEGIN INSERT INTO fts4_tag_titles_icu (docid, tag) VALUES (new.rowid, new.tag); END;
