-- Nix 2.18, schema version 10: db.sqlite of the store, with content-addressed realisations
-- @preserve ValidPaths Realisations
-- @fill ValidPaths.path '/nix/store/' || :n || '-pkg'
CREATE TABLE ValidPaths (
  id integer PRIMARY KEY AUTOINCREMENT NOT NULL, path text UNIQUE NOT NULL, hash text NOT NULL, registrationTime integer NOT NULL, deriver text, narSize integer, ultimate integer, sigs text, ca text);
CREATE TABLE Refs (
  referrer integer NOT NULL, reference integer NOT NULL, PRIMARY KEY (referrer, reference), FOREIGN KEY (referrer) REFERENCES ValidPaths (id) ON DELETE CASCADE,
  FOREIGN KEY (reference) REFERENCES ValidPaths (id) ON DELETE RESTRICT);
CREATE INDEX IndexReferrer ON Refs (referrer);
CREATE INDEX IndexReference ON Refs (reference);
CREATE TRIGGER DeleteSelfRefs BEFORE DELETE ON ValidPaths BEGIN DELETE FROM Refs WHERE referrer = old.id AND reference = old.id; END;
CREATE TABLE DerivationOutputs (drv integer NOT NULL, id text NOT NULL, path text NOT NULL, PRIMARY KEY (drv, id), FOREIGN KEY (drv) REFERENCES ValidPaths (id) ON DELETE CASCADE);
CREATE INDEX IndexDerivationOutputs ON DerivationOutputs (path);
CREATE TABLE Realisations (
  id integer PRIMARY KEY AUTOINCREMENT NOT NULL, drvPath text NOT NULL, outputName text NOT NULL, outputPath integer NOT NULL, signatures text, FOREIGN KEY (outputPath) REFERENCES ValidPaths (id) ON DELETE CASCADE);
CREATE INDEX IndexRealisations ON Realisations (drvPath, outputName);
CREATE TABLE RealisationsRefs (
  referrer integer NOT NULL, realisationReference integer, FOREIGN KEY (referrer) REFERENCES Realisations (id) ON DELETE CASCADE,
  FOREIGN KEY (realisationReference) REFERENCES Realisations (id) ON DELETE RESTRICT);
CREATE INDEX IndexRealisationsRefsRealisationReference ON RealisationsRefs (realisationReference);
CREATE INDEX IndexRealisationsRefs ON RealisationsRefs (referrer);
CREATE TRIGGER DeleteSelfRefsViaRealisations BEFORE DELETE ON ValidPaths BEGIN
  DELETE FROM RealisationsRefs WHERE realisationReference IN (SELECT id FROM Realisations WHERE outputPath = old.id);
END;
CREATE TABLE SchemaMigrations (migration TEXT PRIMARY KEY NOT NULL);
