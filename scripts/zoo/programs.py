"""Programs that make their own database: those in Debian or PyPI that can be installed in seconds.

`make zoo` installs the Debian packages, and `run` the packages from PyPI, into a Python environment. A program that cannot be had
is skipped, and the run says so.
"""
import os, shutil, subprocess, sys

from database import Program

# Pinned, because the version of a schema is a part of a test.
PYPI = ("django==5.2.19", "sqlalchemy==2.1.9", "alembic==1.16.5", "sqlite-utils==4.2.1", "diskcache==5.6.3", "coverage==7.17.5",
        "trac==1.6", "beets==1.6.0", "requests-cache==1.3.3", "peewee==4.5.3", "anki==26.9.3", "setuptools<70")


def python(source):
    """A maker that runs a program in the Python environment, with the path of the database as its argument."""
    def make(path, venv):
        call([f"{venv}/bin/python", "-c", source, path], path)
    make.tool = lambda venv: f"{venv}/bin/python"
    return make


def command(tool, *lines, result=None):
    """A maker that runs shell commands in an empty directory; `result` is the database that they leave there."""
    def make(path, venv):
        work = path + ".work"
        os.makedirs(work)
        call(["sh", "-ec", "\n".join(lines)], path, cwd=work, PATH=f"{os.path.abspath(venv)}/bin:{os.environ['PATH']}")
        if result:
            shutil.copyfile(os.path.join(work, result), path)
        shutil.rmtree(work)
    make.tool = lambda venv: shutil.which(tool) or f"{venv}/bin/{tool}"
    return make


def call(words, path, cwd=None, **variables):
    home = os.path.dirname(path)
    ran = subprocess.run(words, cwd=cwd or home, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                         env={**os.environ, "HOME": home, "USER": "zoo", "DB": path, **variables})
    if ran.returncode:
        raise RuntimeError(f"{words[:2]}: {(ran.stderr or ran.stdout).strip()[-500:]}")


DJANGO = """
import sys, types, django
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions",
                    "django.contrib.messages", "django.contrib.sites", "django.contrib.flatpages", "django.contrib.redirects"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[1]}}, SITE_ID=1,
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", SECRET_KEY="zoo", USE_TZ=True)
django.setup()
from django.core.management import call_command
from django.db import connection, models
from django.db.models import F, Q
from django.db.models.functions import Lower
call_command("migrate", verbosity=0)

class Shelf(models.Model):
    name = models.CharField(max_length=80)
    code = models.UUIDField(unique=True)
    data = models.JSONField(default=dict)
    class Meta:
        app_label = "zoo"
        constraints = [models.UniqueConstraint(Lower("name"), name="shelf_name_ci"),
                       models.CheckConstraint(condition=Q(data__has_key="n"), name="shelf_data_n")]
        indexes = [models.Index(F("data__n"), name="shelf_data_n_index")]

class Item(models.Model):
    shelf = models.ForeignKey(Shelf, models.CASCADE)
    slug = models.SlugField(unique=True)
    price = models.DecimalField(max_digits=9, decimal_places=2)
    tags = models.JSONField(null=True)
    places = models.PositiveIntegerField()
    weight = models.FloatField()
    seen = models.DateTimeField(null=True)
    photo = models.BinaryField(null=True)
    word = models.GeneratedField(expression=F("tags__word"), output_field=models.CharField(max_length=80), db_persist=False)
    double = models.GeneratedField(expression=F("weight") * 2, output_field=models.FloatField(), db_persist=True)
    class Meta:
        app_label = "zoo"
        constraints = [models.CheckConstraint(condition=Q(weight__gte=0), name="item_weight")]
        indexes = [models.Index(fields=["places"], condition=Q(places__gt=10), name="item_many")]

with connection.schema_editor() as editor:
    for model in (Shelf, Item):
        editor.create_model(model)
"""

DJANGO_FUNCTIONS = DJANGO.split("class Shelf")[0] + """
from django.db.models.functions import MD5, ExtractYear, Reverse
class Code(models.Model):
    name = models.CharField(max_length=40)
    seen = models.DateTimeField()
    digest = models.GeneratedField(expression=MD5("name"), output_field=models.CharField(max_length=32), db_persist=True)
    class Meta:
        app_label = "zoo"
        constraints = [models.CheckConstraint(condition=Q(name__regex="^[a-z]"), name="code_name")]
        indexes = [models.Index(Reverse("name"), name="code_reversed")]
with connection.schema_editor() as editor:
    editor.create_model(Code)
"""

ALEMBIC = """
import sys, sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
engine = sa.create_engine("sqlite:///" + sys.argv[1])
with engine.begin() as connection:
    context = MigrationContext.configure(connection)
    context._ensure_version_table()
    op = Operations(context)
    op.create_table("person", sa.Column("id", sa.Integer, primary_key=True), sa.Column("email", sa.String(120), nullable=False),
        sa.Column("role", sa.Enum("admin", "reader", name="role", create_constraint=True), nullable=False),
        sa.Column("active", sa.Boolean(name="person_active", create_constraint=True), nullable=False),
        sa.Column("settings", sa.JSON), sa.UniqueConstraint("email", name="person_email"))
    op.create_table("document", sa.Column("id", sa.Uuid, primary_key=True), sa.Column("owner", sa.Integer, sa.ForeignKey("person.id"), nullable=False),
        sa.Column("title", sa.Unicode(200)), sa.Column("body", sa.JSON, nullable=False), sa.Column("size", sa.Numeric(10, 2)),
        sa.Column("title_size", sa.Integer, sa.Computed("length(title)", persisted=True)),
        sa.Column("kind", sa.String, sa.Computed("json_extract(body, '$.word')", persisted=False)),
        sa.Column("made", sa.DateTime, server_default=sa.text("CURRENT_TIMESTAMP")))
    op.create_index("document_kind", "document", ["kind"])
    op.create_index("document_word", "document", [sa.text("json_extract(body, '$.n')"), "owner"])
    with op.batch_alter_table("person") as batch:
        batch.add_column(sa.Column("note", sa.Text))
        batch.create_check_constraint("person_settings", sa.text("json_valid(settings)"))
    op.create_table("version", sa.Column("document", sa.Uuid, sa.ForeignKey("document.id"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True), sa.Column("blob", sa.LargeBinary), sqlite_with_rowid=False)
    connection.execute(sa.text("INSERT INTO alembic_version VALUES('5f1c2d3e4a5b')"))
"""

SQLITE_UTILS = """
import sys, sqlite_utils
db = sqlite_utils.Database(sys.argv[1])
db["authors"].create({"id": int, "name": str, "profile": str}, pk="id", not_null={"name"})
db["articles"].create({"id": int, "title": str, "body": str, "author": int, "score": float, "extra": str, "data": bytes}, pk="id",
                      foreign_keys=[("author", "authors", "id")], defaults={"score": 1.5}, strict=True)
db["articles"].create_index(["title", "author"], unique=True)
db["articles"].enable_fts(["title", "body"], tokenize="porter", create_triggers=True)
db["authors"].enable_fts(["name", "profile"], fts_version="FTS4", create_triggers=True)
db["articles"].enable_counts()
db.create_view("recent", "SELECT a.id, a.title, w.name FROM articles a JOIN authors w ON w.id = a.author WHERE a.score > 3")
db["articles"].transform(types={"extra": str}, rename={"extra": "more"})
"""

PEEWEE = """
import sys
from peewee import *
from playhouse.sqlite_ext import *
db = SqliteDatabase(sys.argv[1])
class Base(Model):
    class Meta: database = db
class Note(Base):
    id = AutoIncrementField()
    title = CharField(index=True)
    body = TextField()
    data = JSONField(null=True)
    made = DateTimeField()
    class Meta: constraints = [SQL("CHECK (data IS NULL OR json_valid(data))")]
class Label(Base):
    note = ForeignKeyField(Note, backref="labels", on_delete="CASCADE")
    name = CharField()
    class Meta: indexes = ((("note", "name"), True),)
class NoteIndex(FTS5Model):
    title = SearchField()
    body = SearchField()
    class Meta:
        database = db
        options = {"content": Note, "content_rowid": Note.id, "prefix": [2, 3], "tokenize": "porter unicode61"}
class Setting(Base):
    key = CharField(primary_key=True)
    value = BlobField()
    class Meta: without_rowid = True
db.create_tables([Note, Label, NoteIndex, Setting])
"""

# Each program: its name, what it is, the options of the generator, and how its database is made.
MADE = {
    "django": ("Django 5.2.19: the contributed apps and two models with JSONField, constraints and generated columns", """
-- @fill django_migrations.applied '2026-01-01 00:00:00'
-- @fill zoo_shelf.name 'shelf ' || :n
-- @preserve zoo_item auth_user django_session""", python(DJANGO)),
    "django-functions": ("Django 5.2.19: a CHECK, an index and a generated column with functions that only Django defines", """
-- @function REGEXP 2 1
-- @function MD5 1
-- @function REVERSE 1
-- @fill django_migrations.applied '2026-01-01 00:00:00'
-- @preserve auth_user django_session django_flatpage
-- @migrate auth_user""", python(DJANGO_FUNCTIONS)),
    "alembic": ("SQLAlchemy 2.1.9 and Alembic 1.16.5: JSON, computed columns, a batch migration", """
-- @skip alembic_version
-- @preserve person document version""", python(ALEMBIC)),
    "sqlite-utils": ("sqlite-utils 4.2.1: STRICT, FTS5 and FTS4 with triggers, counters", """
-- @skip _counts
-- @preserve articles authors""", python(SQLITE_UTILS)),
    "peewee": ("peewee 4.5.3: JSON, FTS5 with external content, WITHOUT ROWID", """
-- @preserve note label""", python(PEEWEE)),
    "diskcache": ("diskcache 5.6.3: triggers that count rows and bytes", """
-- @skip Settings
-- @preserve Cache""", python("import sys, diskcache, os, shutil; d = sys.argv[1] + '.cache'; c = diskcache.Cache(d, tag_index=True); c.close(); shutil.copyfile(d + '/cache.db', sys.argv[1]); shutil.rmtree(d)")),
    "coverage": ("coverage.py 7.17.5: a data file", """
-- @skip coverage_schema""", python("import sys, coverage; d = coverage.CoverageData(sys.argv[1]); d.add_lines({'a.py': [1, 2, 5]}); d.write(); d.close()")),
    "trac": ("Trac 1.6: a new environment", "", command("trac-admin", "trac-admin env initenv Zoo sqlite:db/trac.db >/dev/null", result="env/db/trac.db")),
    "beets": ("beets 1.6.0: the music library", "", python("import sys; from beets.library import Library; Library(sys.argv[1], '/music')._close()")),
    "requests-cache": ("requests-cache 1.3.3: responses and redirects", "", python(
        "import sys, requests_cache; s = requests_cache.SQLiteCache(sys.argv[1]); s.close()")),
    "anki": ("Anki 26.9.3: a collection, with the collation unicase", """
-- @collation unicase
-- @skip sqlite_stat4
-- @preserve notes cards revlog
-- @migrate revlog""", python(
        "import sys, os; from anki.collection import Collection; p = sys.argv[1] + '.anki2'; Collection(p).close(); os.rename(p, sys.argv[1])")),
    "fossil": ("Fossil 2.21: a new repository with a search index", """
-- @function title 3
-- @function body 3
-- @fill blob.uuid printf('%040x', :n)
-- @fill ticket.tkt_uuid printf('%040x', :n)""", command(
        "fossil", "fossil new --date-override 2026-01-01 zoo.fossil >/dev/null", "fossil fts-config -R zoo.fossil index on >/dev/null",
        result="zoo.fossil")),
    "rpm": ("rpm 4.18.0: the package database", "", command("rpm", "rpm --dbpath \"$PWD/db\" --initdb", result="db/rpmdb.sqlite")),
    "vnstat": ("vnStat 2.10: traffic per interface", "", command(
        "vnstatd", "printf 'DatabaseDir \"%s\"\\n' \"$PWD\" > conf", "vnstatd --config conf --initdb >/dev/null", result="vnstat.db")),
    "subversion": ("Subversion 1.14: the administrative database of a working copy", "", command(
        "svnadmin", "svnadmin create repo", "svn checkout -q \"file://$PWD/repo\" wc", "echo x > wc/a", "svn add -q wc/a", "svn commit -q -m x wc",
        result="wc/.svn/wc.db")),
    "nss": ("NSS 3: the certificates of a Firefox profile (cert9.db)", "", command(
        "certutil", "certutil -N -d sql:. --empty-password", result="cert9.db")),
}


def install(venv):
    """Installs the packages from PyPI that are missing, and returns a sentence for each that cannot be installed."""
    stamp, wanted = os.path.join(venv, "installed"), "\n".join(PYPI)
    if os.path.exists(stamp) and open(stamp).read() == wanted:
        return []
    pip = lambda *packages: subprocess.run([f"{venv}/bin/pip", "install", "-q", "--disable-pip-version-check", *packages], capture_output=True, text=True)
    if not os.path.exists(f"{venv}/bin/pip"):
        made = subprocess.run([sys.executable, "-m", "venv", venv], capture_output=True, text=True)
        if made.returncode:
            return [f"no Python environment: {(made.stderr or made.stdout).strip()[-200:]}"]
    failed = []
    if pip(*PYPI).returncode:
        failed = [f"not installed: {package}: {ran.stderr.strip()[-200:]}" for package in PYPI if (ran := pip(package)).returncode]
    if not failed:
        with open(stamp, "w") as file:
            file.write(wanted)
    return failed


def available(venv, wanted=()):
    """Returns the programs that can be run here, and a sentence for each of the others."""
    found, missing = [], []
    for name, (title, options, make) in MADE.items():
        if wanted and name not in wanted:
            continue
        tool = make.tool(venv)
        if os.path.exists(tool) and (not tool.endswith("/python") or importable(tool, name)):
            found.append(Program(name, f"-- {title}\n{options}", lambda path, make=make: make(path, os.path.abspath(venv))))
        else:
            missing.append(f"{name} is not installed ({title})")
    return found, missing


def importable(tool, name):
    module = {"alembic": "alembic", "sqlite-utils": "sqlite_utils", "requests-cache": "requests_cache", "django-functions": "django"}.get(name, name)
    return subprocess.run([tool, "-c", f"import importlib.util as u, sys; sys.exit(u.find_spec('{module}') is None)"]).returncode == 0
