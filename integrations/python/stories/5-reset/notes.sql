CREATE TABLE note (text TEXT);
