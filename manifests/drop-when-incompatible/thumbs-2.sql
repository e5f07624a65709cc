-- The same structure as before: white space, quotes and the order of words make no difference.
create table "thumb" ("id" integer primary key, "image" blob);
create index "by_size" on "thumb" (length("image"));
