-- Downloaded thumbnails.
CREATE TABLE thumb (id INTEGER PRIMARY KEY, image BLOB);
CREATE INDEX by_size ON thumb (length(image));
