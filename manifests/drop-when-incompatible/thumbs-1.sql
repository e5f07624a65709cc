-- Small images, as they were fetched.
CREATE TABLE thumb (id INTEGER PRIMARY KEY, image BLOB);
CREATE INDEX by_size ON thumb (length(image));
