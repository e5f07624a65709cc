-- Kodi 20, version 121: MyVideos121.db, with the triggers that delete what belongs together
-- @skip version
-- @preserve movie episode bookmark
CREATE TABLE version (idVersion integer, iCompressCount integer);
INSERT INTO version VALUES (121, 0);
CREATE TABLE bookmark (
  idBookmark integer PRIMARY KEY, idFile integer, timeInSeconds double, totalTimeInSeconds double, thumbNailImage text, player text, playerState text, type integer);
CREATE INDEX ix_bookmark ON bookmark (idFile, type);
CREATE TABLE settings (
  idFile integer, Deinterlace bool, ViewMode integer, ZoomAmount float, PixelRatio float, VerticalShift float, AudioStream integer, SubtitleStream integer, SubtitleDelay float,
  SubtitlesOn bool, Brightness float, Contrast float, Gamma float, VolumeAmplification float, AudioDelay float, ResumeTime integer, Sharpness float, NoiseReduction float,
  NonLinStretch bool, PostProcess bool, ScalingMethod integer, DeinterlaceMode integer, StereoMode integer, StereoInvert bool, VideoStream integer, TonemapMethod integer,
  TonemapParam float, Orientation integer, CenterMixLevel integer);
CREATE UNIQUE INDEX ix_settings ON settings (idFile);
CREATE TABLE stacktimes (idFile integer, times text);
CREATE UNIQUE INDEX ix_stacktimes ON stacktimes (idFile);
CREATE TABLE genre (genre_id integer PRIMARY KEY, name TEXT);
CREATE UNIQUE INDEX ix_genre_1 ON genre (name);
CREATE TABLE genre_link (genre_id integer, media_id integer, media_type TEXT);
CREATE UNIQUE INDEX ix_genre_link_1 ON genre_link (genre_id, media_type, media_id);
CREATE INDEX ix_genre_link_3 ON genre_link (media_type);
CREATE TABLE actor (actor_id INTEGER PRIMARY KEY, name TEXT, art_urls TEXT);
CREATE UNIQUE INDEX ix_actor_1 ON actor (name);
CREATE TABLE actor_link (actor_id INTEGER, media_id INTEGER, media_type TEXT, role TEXT, cast_order INTEGER);
CREATE UNIQUE INDEX ix_actor_link_1 ON actor_link (actor_id, media_type, media_id, role);
CREATE TABLE path (
  idPath integer PRIMARY KEY, strPath text, strContent text, strScraper text, strHash text, scanRecursive integer, useFolderNames bool, strSettings text, noUpdate bool,
  exclude bool, allAudio bool, dateAdded text, idParentPath integer);
CREATE INDEX ix_path ON path (strPath);
CREATE INDEX ix_path2 ON path (idParentPath);
CREATE TABLE files (idFile integer PRIMARY KEY, idPath integer, strFilename text, playCount integer, lastPlayed text, dateAdded text);
CREATE INDEX ix_files ON files (idPath, strFilename);
CREATE TABLE movie (
  idMovie integer PRIMARY KEY, idFile integer, c00 text, c01 text, c02 text, c03 text, c04 text, c05 text, c06 text, c07 text, c08 text, c09 text, c10 text, c11 text, c12 text, c13 text,
  c14 text, c15 text, c16 text, c17 text, c18 text, c19 text, c20 text, c21 text, c22 text, c23 text, idSet integer, userrating integer, premiered text);
CREATE UNIQUE INDEX ix_movie_file_1 ON movie (idFile, idMovie);
CREATE UNIQUE INDEX ix_movie_file_2 ON movie (idMovie, idFile);
CREATE TABLE tvshow (
  idShow integer PRIMARY KEY, c00 text, c01 text, c02 text, c03 text, c04 text, c05 text, c06 text, c07 text, c08 text, c09 text, c10 text, c11 text, c12 text, c13 text, c14 text, c15 text,
  c16 text, userrating integer, duration integer);
CREATE TABLE seasons (idSeason integer PRIMARY KEY, idShow integer, season integer, name text, userrating integer);
CREATE INDEX ix_seasons ON seasons (idShow, season);
CREATE TABLE episode (
  idEpisode integer PRIMARY KEY, idFile integer, c00 text, c01 text, c02 text, c03 text, c04 text, c05 text, c06 text, c09 text, c10 text, c12 varchar(24), c13 varchar(24), c14 text, c15 text,
  c16 text, c17 varchar(24), c18 text, c19 text, idShow integer, userrating integer, idSeason integer);
CREATE UNIQUE INDEX ix_episode_file_1 ON episode (idEpisode, idFile);
CREATE INDEX ix_episode_season_episode ON episode (c12, c13);
CREATE TABLE streamdetails (
  idFile integer, iStreamType integer, strVideoCodec text, fVideoAspect float, iVideoWidth integer, iVideoHeight integer, strAudioCodec text, iAudioChannels integer, strAudioLanguage text,
  strSubtitleLanguage text, iVideoDuration integer, strStereoMode text, strVideoLanguage text, strHdrType text);
CREATE INDEX ix_streamdetails ON streamdetails (idFile);
CREATE TABLE sets (idSet integer PRIMARY KEY, strSet text, strOverview text);
CREATE TABLE art (art_id INTEGER PRIMARY KEY, media_id INTEGER, media_type TEXT, type TEXT, url TEXT);
CREATE INDEX ix_art ON art (media_id, media_type, type);
CREATE TABLE rating (rating_id INTEGER PRIMARY KEY, media_id INTEGER, media_type TEXT, rating_type TEXT, rating FLOAT, votes INTEGER);
CREATE INDEX ix_rating ON rating (media_id, media_type);
CREATE TABLE uniqueid (uniqueid_id INTEGER PRIMARY KEY, media_id INTEGER, media_type TEXT, value TEXT, type TEXT);
CREATE INDEX ix_uniqueid1 ON uniqueid (media_id, media_type, type);
CREATE TRIGGER delete_movie AFTER DELETE ON movie FOR EACH ROW BEGIN
  DELETE FROM genre_link WHERE media_id = old.idMovie AND media_type = 'movie';
  DELETE FROM actor_link WHERE media_id = old.idMovie AND media_type = 'movie';
  DELETE FROM art WHERE media_id = old.idMovie AND media_type = 'movie';
  DELETE FROM rating WHERE media_id = old.idMovie AND media_type = 'movie';
  DELETE FROM uniqueid WHERE media_id = old.idMovie AND media_type = 'movie';
END;
CREATE TRIGGER delete_tvshow AFTER DELETE ON tvshow FOR EACH ROW BEGIN
  DELETE FROM art WHERE media_id = old.idShow AND media_type = 'tvshow';
  DELETE FROM seasons WHERE idShow = old.idShow;
END;
CREATE TRIGGER delete_episode AFTER DELETE ON episode FOR EACH ROW BEGIN
  DELETE FROM art WHERE media_id = old.idEpisode AND media_type = 'episode';
END;
CREATE TRIGGER delete_season AFTER DELETE ON seasons FOR EACH ROW BEGIN
  DELETE FROM art WHERE media_id = old.idSeason AND media_type = 'season';
END;
CREATE TRIGGER delete_set AFTER DELETE ON sets FOR EACH ROW BEGIN
  DELETE FROM art WHERE media_id = old.idSet AND media_type = 'set';
END;
CREATE TRIGGER delete_person AFTER DELETE ON actor FOR EACH ROW BEGIN
  DELETE FROM art WHERE media_id = old.actor_id AND media_type IN ('actor', 'artist', 'writer', 'director');
END;
CREATE TRIGGER delete_file AFTER DELETE ON files FOR EACH ROW BEGIN
  DELETE FROM bookmark WHERE idFile = old.idFile;
  DELETE FROM settings WHERE idFile = old.idFile;
  DELETE FROM stacktimes WHERE idFile = old.idFile;
  DELETE FROM streamdetails WHERE idFile = old.idFile;
END;
CREATE VIEW movie_view AS
  SELECT movie.*, sets.strSet AS strSet, sets.strOverview AS strSetOverview, files.strFilename AS strFileName, path.strPath AS strPath, files.playCount AS playCount,
    files.lastPlayed AS lastPlayed, files.dateAdded AS dateAdded, bookmark.timeInSeconds AS resumeTimeInSeconds, rating.rating AS rating, uniqueid.value AS uniqueid_value
  FROM movie LEFT JOIN sets ON sets.idSet = movie.idSet JOIN files ON files.idFile = movie.idFile JOIN path ON path.idPath = files.idPath
    LEFT JOIN bookmark ON bookmark.idFile = movie.idFile AND bookmark.type = 1 LEFT JOIN rating ON rating.rating_id = movie.c05 LEFT JOIN uniqueid ON uniqueid.uniqueid_id = movie.c09;
CREATE TABLE country (country_id integer PRIMARY KEY, name TEXT);
CREATE UNIQUE INDEX ix_country_1 ON country (name);
CREATE TABLE country_link (country_id integer, media_id integer, media_type TEXT);
CREATE UNIQUE INDEX ix_country_link_1 ON country_link (country_id, media_type, media_id);
CREATE TABLE studio (studio_id integer PRIMARY KEY, name TEXT);
CREATE UNIQUE INDEX ix_studio_1 ON studio (name);
CREATE TABLE studio_link (studio_id integer, media_id integer, media_type TEXT);
CREATE UNIQUE INDEX ix_studio_link_1 ON studio_link (studio_id, media_type, media_id);
CREATE TABLE tag (tag_id integer PRIMARY KEY, name TEXT);
CREATE UNIQUE INDEX ix_tag_1 ON tag (name);
CREATE TABLE tag_link (tag_id integer, media_id integer, media_type TEXT);
CREATE UNIQUE INDEX ix_tag_link_1 ON tag_link (tag_id, media_type, media_id);
CREATE TABLE director_link (actor_id INTEGER, media_id INTEGER, media_type TEXT);
CREATE UNIQUE INDEX ix_director_link_1 ON director_link (actor_id, media_type, media_id);
CREATE TABLE writer_link (actor_id INTEGER, media_id INTEGER, media_type TEXT);
CREATE UNIQUE INDEX ix_writer_link_1 ON writer_link (actor_id, media_type, media_id);
CREATE TABLE movielinktvshow (idMovie integer, IdShow integer);
CREATE UNIQUE INDEX ix_movielinktvshow_1 ON movielinktvshow (idShow, idMovie);
CREATE TABLE tvshowlinkpath (idShow integer, idPath integer);
CREATE UNIQUE INDEX ix_tvshowlinkpath_1 ON tvshowlinkpath (idShow, idPath);
CREATE TABLE musicvideo (
  idMVideo integer PRIMARY KEY, idFile integer, c00 text, c01 text, c02 text, c03 text, c04 text, c05 text, c06 text, c07 text, c08 text, c09 text, c10 text, c11 text, c12 text, c13 text, c14 text, c15 text, c16 text, c17 text,
  c18 text, c19 text, c20 text, c21 text, c22 text, c23 text, userrating integer, premiered text);
CREATE UNIQUE INDEX ix_musicvideo_file_1 ON musicvideo (idMVideo, idFile);
CREATE TRIGGER delete_musicvideo AFTER DELETE ON musicvideo FOR EACH ROW BEGIN
  DELETE FROM actor_link WHERE media_id = old.idMVideo AND media_type = 'musicvideo';
  DELETE FROM director_link WHERE media_id = old.idMVideo AND media_type = 'musicvideo';
  DELETE FROM tag_link WHERE media_id = old.idMVideo AND media_type = 'musicvideo';
  DELETE FROM art WHERE media_id = old.idMVideo AND media_type = 'musicvideo';
END;
CREATE TRIGGER delete_tag AFTER DELETE ON tag_link FOR EACH ROW WHEN (SELECT count(*) FROM tag_link WHERE tag_link.tag_id = old.tag_id) = 0 BEGIN
  DELETE FROM tag WHERE tag_id = old.tag_id;
END;
CREATE VIEW tvshowlinkpath_minview AS SELECT idShow, min(idPath) AS idPath FROM tvshowlinkpath GROUP BY idShow;
CREATE VIEW tvshowcounts AS
  SELECT tvshow.idShow AS idShow, max(files.lastPlayed) AS lastPlayed, nullif(count(episode.c12), 0) AS totalCount, count(files.playCount) AS watchedcount,
    nullif(count(DISTINCT episode.c12), 0) AS totalSeasons, max(files.dateAdded) AS dateAdded
  FROM tvshow LEFT JOIN episode ON episode.idShow = tvshow.idShow LEFT JOIN files ON files.idFile = episode.idFile GROUP BY tvshow.idShow;
CREATE VIEW tvshow_view AS
  SELECT tvshow.*, path.idParentPath AS idParentPath, path.strPath AS strPath, tvshowcounts.dateAdded AS dateAdded, lastPlayed, totalCount, watchedcount, totalSeasons, rating.rating AS rating, uniqueid.value AS uniqueid_value
  FROM tvshow LEFT JOIN tvshowlinkpath_minview ON tvshowlinkpath_minview.idShow = tvshow.idShow LEFT JOIN path ON path.idPath = tvshowlinkpath_minview.idPath INNER JOIN tvshowcounts ON tvshow.idShow = tvshowcounts.idShow
    LEFT JOIN rating ON rating.rating_id = tvshow.c04 LEFT JOIN uniqueid ON uniqueid.uniqueid_id = tvshow.c12;
CREATE VIEW episode_view AS
  SELECT episode.*, files.strFileName AS strFileName, path.strPath AS strPath, files.playCount AS playCount, tvshow.c00 AS strTitle, tvshow.c14 AS strStudio, seasons.name AS seasonName, bookmark.timeInSeconds AS resumeTimeInSeconds
  FROM episode JOIN files ON files.idFile = episode.idFile JOIN tvshow ON tvshow.idShow = episode.idShow JOIN seasons ON seasons.idSeason = episode.idSeason JOIN path ON files.idPath = path.idPath
    LEFT JOIN bookmark ON bookmark.idFile = episode.idFile AND bookmark.type = 1;
CREATE VIEW musicvideo_view AS
  SELECT musicvideo.*, files.strFileName AS strFileName, path.strPath AS strPath, files.playCount AS playCount, files.dateAdded AS dateAdded, bookmark.player AS player
  FROM musicvideo JOIN files ON files.idFile = musicvideo.idFile JOIN path ON path.idPath = files.idPath LEFT JOIN bookmark ON bookmark.idFile = musicvideo.idFile AND bookmark.type = 1;
CREATE VIEW season_view AS
  SELECT seasons.idSeason, seasons.idShow, seasons.season, seasons.name, seasons.userrating, tvshow_view.strPath, tvshow_view.c00 AS showTitle, count(DISTINCT episode.idEpisode) AS episodes, count(files.playCount) AS playCount
  FROM seasons JOIN tvshow_view ON tvshow_view.idShow = seasons.idShow JOIN episode ON episode.idShow = seasons.idShow AND episode.c12 = seasons.season JOIN files ON files.idFile = episode.idFile GROUP BY seasons.idSeason;
