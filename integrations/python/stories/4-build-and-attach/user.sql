CREATE TABLE diary (food INTEGER, text TEXT);
