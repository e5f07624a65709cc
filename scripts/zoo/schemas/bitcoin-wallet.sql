-- Bitcoin Core 27: a descriptor wallet (wallet.dat), with the application_id of the main network
-- @rows main 1200
-- @preserve main
PRAGMA application_id = -104678183;
CREATE TABLE main (key BLOB PRIMARY KEY NOT NULL, value BLOB NOT NULL);
