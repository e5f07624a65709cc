-- Calibre 6.13, schema version 26: metadata.db
-- @function title_sort 1
-- @function uuid4 0
-- @function author_to_author_sort 1
-- @function books_list_filter 1
-- @function concat 1
-- @function sortconcat 2
-- @skip books_pages_link
-- @fill books.uuid printf('%08x-0000-4000-8000-000000000000', :n)
-- @fill data.format 'FMT' || :n
-- @preserve authors identifiers annotations
-- @migrate custom_columns
PRAGMA user_version = 26;
CREATE TABLE authors (id INTEGER PRIMARY KEY, name TEXT NOT NULL COLLATE NOCASE, sort TEXT COLLATE NOCASE, link TEXT NOT NULL DEFAULT '', UNIQUE (name));
CREATE TABLE books (
  id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL DEFAULT 'Unknown' COLLATE NOCASE, sort TEXT COLLATE NOCASE, timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  pubdate TIMESTAMP DEFAULT CURRENT_TIMESTAMP, series_index REAL NOT NULL DEFAULT 1.0, author_sort TEXT COLLATE NOCASE, isbn TEXT DEFAULT '' COLLATE NOCASE,
  lccn TEXT DEFAULT '' COLLATE NOCASE, path TEXT NOT NULL DEFAULT '', flags INTEGER NOT NULL DEFAULT 1, uuid TEXT, has_cover BOOL DEFAULT 0,
  last_modified TIMESTAMP NOT NULL DEFAULT '2000-01-01 00:00:00+00:00');
CREATE TABLE books_authors_link (id INTEGER PRIMARY KEY, book INTEGER NOT NULL, author INTEGER NOT NULL, UNIQUE (book, author));
CREATE TABLE books_languages_link (id INTEGER PRIMARY KEY, book INTEGER NOT NULL, lang_code INTEGER NOT NULL, item_order INTEGER NOT NULL DEFAULT 0, UNIQUE (book, lang_code));
CREATE TABLE books_plugin_data (id INTEGER PRIMARY KEY, book INTEGER NOT NULL, name TEXT NOT NULL, val TEXT NOT NULL, UNIQUE (book, name));
CREATE TABLE books_publishers_link (id INTEGER PRIMARY KEY, book INTEGER NOT NULL, publisher INTEGER NOT NULL, UNIQUE (book));
CREATE TABLE books_ratings_link (id INTEGER PRIMARY KEY, book INTEGER NOT NULL, rating INTEGER NOT NULL, UNIQUE (book, rating));
CREATE TABLE books_series_link (id INTEGER PRIMARY KEY, book INTEGER NOT NULL, series INTEGER NOT NULL, UNIQUE (book));
CREATE TABLE books_tags_link (id INTEGER PRIMARY KEY, book INTEGER NOT NULL, tag INTEGER NOT NULL, UNIQUE (book, tag));
CREATE TABLE comments (id INTEGER PRIMARY KEY, book INTEGER NOT NULL, text TEXT NOT NULL COLLATE NOCASE, UNIQUE (book));
CREATE TABLE conversion_options (id INTEGER PRIMARY KEY, format TEXT NOT NULL COLLATE NOCASE, book INTEGER, data BLOB NOT NULL, UNIQUE (format, book));
CREATE TABLE custom_columns (
  id INTEGER PRIMARY KEY AUTOINCREMENT, label TEXT NOT NULL, name TEXT NOT NULL, datatype TEXT NOT NULL, mark_for_delete BOOL DEFAULT 0 NOT NULL,
  editable BOOL DEFAULT 1 NOT NULL, display TEXT DEFAULT '{}' NOT NULL, is_multiple BOOL DEFAULT 0 NOT NULL, normalized BOOL NOT NULL, UNIQUE (label));
CREATE TABLE data (
  id INTEGER PRIMARY KEY, book INTEGER NOT NULL, format TEXT NOT NULL COLLATE NOCASE, uncompressed_size INTEGER NOT NULL, name TEXT NOT NULL, UNIQUE (book, format));
CREATE TABLE feeds (id INTEGER PRIMARY KEY, title TEXT NOT NULL, script TEXT NOT NULL, UNIQUE (title));
CREATE TABLE identifiers (
  id INTEGER PRIMARY KEY, book INTEGER NOT NULL, type TEXT NOT NULL DEFAULT 'isbn' COLLATE NOCASE, val TEXT NOT NULL COLLATE NOCASE, UNIQUE (book, type));
CREATE TABLE languages (id INTEGER PRIMARY KEY, lang_code TEXT NOT NULL COLLATE NOCASE, link TEXT NOT NULL DEFAULT '', UNIQUE (lang_code));
CREATE TABLE library_id (id INTEGER PRIMARY KEY, uuid TEXT NOT NULL, UNIQUE (uuid));
CREATE TABLE metadata_dirtied (id INTEGER PRIMARY KEY, book INTEGER NOT NULL, UNIQUE (book));
CREATE TABLE annotations_dirtied (id INTEGER PRIMARY KEY, book INTEGER NOT NULL, UNIQUE (book));
CREATE TABLE preferences (id INTEGER PRIMARY KEY, key TEXT NOT NULL, val TEXT NOT NULL, UNIQUE (key));
CREATE TABLE publishers (id INTEGER PRIMARY KEY, name TEXT NOT NULL COLLATE NOCASE, sort TEXT COLLATE NOCASE, link TEXT NOT NULL DEFAULT '', UNIQUE (name));
CREATE TABLE ratings (id INTEGER PRIMARY KEY, rating INTEGER CHECK (rating > -1 AND rating < 11), link TEXT NOT NULL DEFAULT '', UNIQUE (rating));
CREATE TABLE series (id INTEGER PRIMARY KEY, name TEXT NOT NULL COLLATE NOCASE, sort TEXT COLLATE NOCASE, link TEXT NOT NULL DEFAULT '', UNIQUE (name));
CREATE TABLE tags (id INTEGER PRIMARY KEY, name TEXT NOT NULL COLLATE NOCASE, link TEXT NOT NULL DEFAULT '', UNIQUE (name));
CREATE TABLE last_read_positions (
  id INTEGER PRIMARY KEY, book INTEGER NOT NULL, format TEXT NOT NULL COLLATE NOCASE, user TEXT NOT NULL, device TEXT NOT NULL, cfi TEXT NOT NULL,
  epoch REAL NOT NULL, pos_frac REAL NOT NULL DEFAULT 0, UNIQUE (user, device, book, format));
CREATE TABLE annotations (
  id INTEGER PRIMARY KEY, book INTEGER NOT NULL, format TEXT NOT NULL COLLATE NOCASE, user_type TEXT NOT NULL, user TEXT NOT NULL, timestamp REAL NOT NULL,
  annot_id TEXT NOT NULL, annot_type TEXT NOT NULL, annot_data TEXT NOT NULL, searchable_text TEXT NOT NULL DEFAULT '',
  UNIQUE (book, user_type, user, format, annot_type, annot_id));
CREATE VIRTUAL TABLE annotations_fts USING fts5(searchable_text, content = 'annotations', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE annotations_fts_stemmed USING fts5(searchable_text, content = 'annotations', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2');
CREATE INDEX authors_idx ON books (author_sort COLLATE NOCASE);
CREATE INDEX books_authors_link_aidx ON books_authors_link (author);
CREATE INDEX books_authors_link_bidx ON books_authors_link (book);
CREATE INDEX books_idx ON books (sort COLLATE NOCASE);
CREATE INDEX books_languages_link_aidx ON books_languages_link (lang_code);
CREATE INDEX books_languages_link_bidx ON books_languages_link (book);
CREATE INDEX books_publishers_link_aidx ON books_publishers_link (publisher);
CREATE INDEX books_publishers_link_bidx ON books_publishers_link (book);
CREATE INDEX books_ratings_link_aidx ON books_ratings_link (rating);
CREATE INDEX books_ratings_link_bidx ON books_ratings_link (book);
CREATE INDEX books_series_link_aidx ON books_series_link (series);
CREATE INDEX books_series_link_bidx ON books_series_link (book);
CREATE INDEX books_tags_link_aidx ON books_tags_link (tag);
CREATE INDEX books_tags_link_bidx ON books_tags_link (book);
CREATE INDEX comments_idx ON comments (book);
CREATE INDEX conversion_options_idx_a ON conversion_options (format COLLATE NOCASE);
CREATE INDEX conversion_options_idx_b ON conversion_options (book);
CREATE INDEX custom_columns_idx ON custom_columns (label);
CREATE INDEX data_idx ON data (book);
CREATE INDEX lrp_idx ON last_read_positions (book);
CREATE INDEX annot_idx ON annotations (book);
CREATE INDEX formats_idx ON data (format);
CREATE INDEX languages_idx ON languages (lang_code COLLATE NOCASE);
CREATE INDEX publishers_idx ON publishers (name COLLATE NOCASE);
CREATE INDEX series_idx ON series (name COLLATE NOCASE);
CREATE INDEX tags_idx ON tags (name COLLATE NOCASE);
CREATE TRIGGER annotations_fts_insert_trg AFTER INSERT ON annotations BEGIN
  INSERT INTO annotations_fts (rowid, searchable_text) VALUES (new.id, new.searchable_text);
  INSERT INTO annotations_fts_stemmed (rowid, searchable_text) VALUES (new.id, new.searchable_text);
END;
CREATE TRIGGER annotations_fts_delete_trg AFTER DELETE ON annotations BEGIN
  INSERT INTO annotations_fts (annotations_fts, rowid, searchable_text) VALUES ('delete', old.id, old.searchable_text);
  INSERT INTO annotations_fts_stemmed (annotations_fts_stemmed, rowid, searchable_text) VALUES ('delete', old.id, old.searchable_text);
END;
CREATE TRIGGER books_delete_trg AFTER DELETE ON books BEGIN
  DELETE FROM books_authors_link WHERE book = old.id;
  DELETE FROM books_publishers_link WHERE book = old.id;
  DELETE FROM books_ratings_link WHERE book = old.id;
  DELETE FROM books_series_link WHERE book = old.id;
  DELETE FROM books_tags_link WHERE book = old.id;
  DELETE FROM books_languages_link WHERE book = old.id;
  DELETE FROM data WHERE book = old.id;
  DELETE FROM last_read_positions WHERE book = old.id;
  DELETE FROM annotations WHERE book = old.id;
  DELETE FROM comments WHERE book = old.id;
  DELETE FROM conversion_options WHERE book = old.id;
  DELETE FROM books_plugin_data WHERE book = old.id;
  DELETE FROM identifiers WHERE book = old.id;
END;
CREATE TRIGGER books_insert_trg AFTER INSERT ON books BEGIN
  UPDATE books SET sort = title_sort(new.title), uuid = coalesce(new.uuid, uuid4()) WHERE id = new.id;
END;
CREATE TRIGGER books_update_trg AFTER UPDATE ON books BEGIN
  UPDATE books SET sort = title_sort(new.title) WHERE id = new.id AND old.title <> new.title;
END;
CREATE TRIGGER fkc_comments_insert BEFORE INSERT ON comments BEGIN
  SELECT CASE WHEN (SELECT id FROM books WHERE id = new.book) IS NULL THEN RAISE(ABORT, 'Foreign key violation: book not in books') END;
END;
CREATE TRIGGER fkc_comments_update BEFORE UPDATE OF book ON comments BEGIN
  SELECT CASE WHEN (SELECT id FROM books WHERE id = new.book) IS NULL THEN RAISE(ABORT, 'Foreign key violation: book not in books') END;
END;
CREATE TRIGGER fkc_delete_on_authors BEFORE DELETE ON authors BEGIN
  SELECT CASE WHEN (SELECT count(id) FROM books_authors_link WHERE author = old.id) > 0 THEN RAISE(ABORT, 'Foreign key violation: author is still referenced') END;
END;
CREATE TRIGGER fkc_update_books_authors_link_a BEFORE UPDATE OF book ON books_authors_link BEGIN
  SELECT CASE WHEN (SELECT id FROM books WHERE id = new.book) IS NULL THEN RAISE(ABORT, 'Foreign key violation: book not in books') END;
END;
CREATE TRIGGER series_insert_trg AFTER INSERT ON series BEGIN
  UPDATE series SET sort = title_sort(new.name) WHERE id = new.id;
END;
CREATE TRIGGER series_update_trg AFTER UPDATE ON series BEGIN
  UPDATE series SET sort = title_sort(new.name) WHERE id = new.id AND old.name <> new.name;
END;
CREATE VIEW meta AS
  SELECT id, title,
    (SELECT concat(name) FROM books_authors_link AS bal JOIN authors ON author = authors.id WHERE book = books.id) authors,
    (SELECT name FROM publishers WHERE publishers.id IN (SELECT publisher FROM books_publishers_link WHERE book = books.id)) publisher,
    (SELECT rating FROM ratings WHERE ratings.id IN (SELECT rating FROM books_ratings_link WHERE book = books.id)) rating,
    timestamp, (SELECT max(uncompressed_size) FROM data WHERE book = books.id) size,
    (SELECT concat(name) FROM tags WHERE tags.id IN (SELECT tag FROM books_tags_link WHERE book = books.id)) tags,
    (SELECT text FROM comments WHERE book = books.id) comments,
    (SELECT name FROM series WHERE series.id IN (SELECT series FROM books_series_link WHERE book = books.id)) series,
    series_index, sort, author_sort, isbn, path, lccn, pubdate, flags, uuid
  FROM books;
CREATE VIEW tag_browser_authors AS
  SELECT id, name, (SELECT count(id) FROM books_authors_link WHERE author = authors.id) count, sort AS sort FROM authors;
CREATE VIEW tag_browser_filtered_authors AS
  SELECT id, name, (SELECT count(books_authors_link.id) FROM books_authors_link WHERE author = authors.id AND books_list_filter(book)) count FROM authors;
CREATE VIEW tag_browser_tags AS
  SELECT id, name, (SELECT count(id) FROM books_tags_link WHERE tag = tags.id) count, name AS sort FROM tags;
CREATE VIEW tag_browser_series AS
  SELECT id, name, (SELECT count(id) FROM books_series_link WHERE series = series.id) count, title_sort(name) AS sort FROM series;
-- @fill ratings.rating CASE WHEN :n <= 11 THEN :n - 1 END
