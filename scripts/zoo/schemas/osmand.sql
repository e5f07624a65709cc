-- OsmAnd 4.6 (Android): tracks and favorites, search history, and tiles in the SQLite tile format 6.2
-- @skip android_metadata
-- @skip info
-- @preserve gpxTable search_history_recents tiles
CREATE TABLE android_metadata (locale TEXT);
INSERT INTO android_metadata VALUES ('de_DE');
CREATE TABLE gpxTable (
  fileName TEXT, fileDir TEXT, totalDistance double, totalTracks int, startTime bigint, endTime bigint, timeSpan bigint, timeMoving bigint, totalDistanceMoving double, diffElevationUp double,
  diffElevationDown double, avgElevation double, minElevation double, maxElevation double, maxSpeed double, avgSpeed double, points int, wptPoints int, color TEXT, fileLastModifiedTime bigint,
  fileLastUploadedTime bigint, fileCreationTime bigint, splitType int, splitInterval double, apiImported int, wptCategoryNames TEXT, showAsMarkers int, joinSegments int, showArrows int,
  showStartFinish int, width TEXT, gradientScaleType TEXT, smoothingThreshold double, minFilterSpeed double, maxFilterSpeed double, startLat double, startLon double, nearestCityName TEXT);
CREATE INDEX indexNameDir ON gpxTable (fileName, fileDir);
CREATE TABLE search_history_recents (name TEXT, freq_intervals TEXT, freq_values TEXT, last_accessed_time long, latitude double, longitude double);
CREATE TABLE map_markers_history (
  marker_id TEXT PRIMARY KEY, marker_lat double, marker_lon double, marker_description TEXT, marker_active int, marker_added long, marker_visited long, group_name TEXT, group_key TEXT,
  marker_color int, marker_next_key TEXT, marker_disabled int, marker_selected int, marker_map_object_name TEXT);
CREATE TABLE map_markers_groups (group_id TEXT PRIMARY KEY, group_name TEXT, group_type TEXT, group_disabled int, group_categories TEXT);
CREATE TABLE poi_filters (name TEXT, filterbyname TEXT, id TEXT, history int DEFAULT 0, deleted int DEFAULT 0, filter_position int DEFAULT 0);
CREATE TABLE categories (filter_id TEXT, category TEXT, subcategory TEXT);
CREATE TABLE openstreetmap (
  id bigint, lat double, lon double, tags TEXT, action TEXT, comment TEXT, changed_tags TEXT, entity_type TEXT);
CREATE TABLE tiles (x int, y int, z int, s int, image blob, time long, PRIMARY KEY (x, y, z, s));
CREATE INDEX IND ON tiles (x, y, z, s);
CREATE TABLE info (tilenumbering, minzoom, maxzoom, timecolumn, url, rule, referer, ellipsoid, inverted_y);
INSERT INTO info VALUES ('BigPlanet', 1, 17, 'yes', 'https://example.org/{0}/{1}/{2}.png', '', NULL, 0, 0);
