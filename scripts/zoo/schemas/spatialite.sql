-- SpatiaLite 5.0: a layer of polygons with an R-tree, triggers that call functions, and tables of modules that only SpatiaLite has
-- @function GeometryConstraints 3 1
-- @function RTreeAlign 3 1
-- @module CREATE VIRTUAL TABLE SpatialIndex USING VirtualSpatialIndex()
-- @module CREATE VIRTUAL TABLE ElementaryGeometries USING VirtualElementary()
-- @module CREATE VIRTUAL TABLE KNN USING VirtualKNN()
-- @skip geometry_columns
-- @skip spatialite_history
-- @skip sql_statements_log
-- @rows parcels 500
-- @rows owners 500
-- @rows spatial_ref_sys 20
-- @fill spatial_ref_sys.auth_srid :n
-- @fill spatial_ref_sys.srid :n
-- @rows spatial_ref_sys_aux 20
-- @preserve owners data_licenses
-- @migrate owners
CREATE TABLE spatial_ref_sys (
  srid INTEGER NOT NULL PRIMARY KEY, auth_name TEXT NOT NULL, auth_srid INTEGER NOT NULL, ref_sys_name TEXT NOT NULL DEFAULT 'Unknown', proj4text TEXT NOT NULL, srtext TEXT NOT NULL DEFAULT 'Undefined');
CREATE UNIQUE INDEX idx_spatial_ref_sys ON spatial_ref_sys (auth_srid, auth_name);
CREATE TABLE spatial_ref_sys_aux (
  srid INTEGER NOT NULL PRIMARY KEY, is_geographic INTEGER, has_flipped_axes INTEGER, spheroid TEXT, prime_meridian TEXT, datum TEXT, projection TEXT, unit TEXT, axis_1_name TEXT, axis_1_orientation TEXT,
  axis_2_name TEXT, axis_2_orientation TEXT, CONSTRAINT fk_sprefsys FOREIGN KEY (srid) REFERENCES spatial_ref_sys (srid));
CREATE TABLE spatialite_history (
  event_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, table_name TEXT NOT NULL, geometry_column TEXT, event TEXT NOT NULL, timestamp TEXT NOT NULL, ver_sqlite TEXT NOT NULL, ver_splite TEXT NOT NULL);
CREATE TABLE geometry_columns (
  f_table_name TEXT NOT NULL, f_geometry_column TEXT NOT NULL, geometry_type INTEGER NOT NULL, coord_dimension INTEGER NOT NULL, srid INTEGER NOT NULL, spatial_index_enabled INTEGER NOT NULL,
  CONSTRAINT pk_geom_cols PRIMARY KEY (f_table_name, f_geometry_column), CONSTRAINT fk_gc_srs FOREIGN KEY (srid) REFERENCES spatial_ref_sys (srid), CONSTRAINT ck_gc_rtree CHECK (spatial_index_enabled IN (0, 1, 2)));
CREATE INDEX idx_srid_geocols ON geometry_columns (srid);
CREATE TRIGGER geometry_columns_f_table_name_insert BEFORE INSERT ON 'geometry_columns' FOR EACH ROW BEGIN
  SELECT RAISE(ABORT, 'f_table_name must not contain a single quote') WHERE new.f_table_name LIKE ('%''%');
  SELECT RAISE(ABORT, 'f_table_name must be lower case') WHERE new.f_table_name <> lower(new.f_table_name);
END;
CREATE TABLE sql_statements_log (
  id INTEGER PRIMARY KEY AUTOINCREMENT, time_start TIMESTAMP NOT NULL DEFAULT '0000-01-01T00:00:00.000Z', time_end TIMESTAMP NOT NULL DEFAULT '0000-01-01T00:00:00.000Z', user_agent TEXT NOT NULL,
  sql_statement TEXT NOT NULL, success INTEGER NOT NULL DEFAULT 0, error_cause TEXT NOT NULL DEFAULT 'ABORTED', CONSTRAINT sqllog_success CHECK (success IN (0, 1)));
CREATE TABLE data_licenses (id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, url TEXT);
CREATE TABLE owners (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, address TEXT, share DOUBLE);
CREATE TABLE parcels (pk INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER REFERENCES owners (id), code TEXT, area DOUBLE, "geom" POLYGON);
INSERT INTO spatial_ref_sys VALUES (0, 'none', 0, 'Undefined', '', 'Undefined');
INSERT INTO geometry_columns VALUES ('parcels', 'geom', 3, 2, 0, 1);
CREATE VIRTUAL TABLE "idx_parcels_geom" USING rtree(pkid, xmin, xmax, ymin, ymax);
CREATE TRIGGER "ggi_parcels_geom" BEFORE INSERT ON "parcels" FOR EACH ROW BEGIN
  SELECT RAISE(ROLLBACK, 'parcels.geom violates Geometry constraint [geom-type or SRID not allowed]')
    WHERE (SELECT geometry_type FROM geometry_columns WHERE lower(f_table_name) = lower('parcels') AND lower(f_geometry_column) = lower('geom')
      AND GeometryConstraints(new."geom", geometry_type, srid) = 1) IS NULL;
END;
CREATE TRIGGER "ggu_parcels_geom" BEFORE UPDATE OF "geom" ON "parcels" FOR EACH ROW BEGIN
  SELECT RAISE(ROLLBACK, 'parcels.geom violates Geometry constraint [geom-type or SRID not allowed]')
    WHERE (SELECT geometry_type FROM geometry_columns WHERE lower(f_table_name) = lower('parcels') AND lower(f_geometry_column) = lower('geom')
      AND GeometryConstraints(new."geom", geometry_type, srid) = 1) IS NULL;
END;
CREATE TRIGGER "gii_parcels_geom" AFTER INSERT ON "parcels" FOR EACH ROW BEGIN
  DELETE FROM "idx_parcels_geom" WHERE pkid = new.ROWID;
  SELECT RTreeAlign('idx_parcels_geom', new.ROWID, new."geom");
END;
CREATE TRIGGER "gid_parcels_geom" AFTER DELETE ON "parcels" FOR EACH ROW BEGIN DELETE FROM "idx_parcels_geom" WHERE pkid = old.ROWID; END;
CREATE VIEW geom_cols_ref_sys AS
  SELECT f_table_name, f_geometry_column, geometry_type, coord_dimension, spatial_ref_sys.srid AS srid, auth_name, auth_srid, ref_sys_name, proj4text, srtext
  FROM geometry_columns, spatial_ref_sys WHERE geometry_columns.srid = spatial_ref_sys.srid;
