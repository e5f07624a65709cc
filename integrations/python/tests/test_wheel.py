"""The wheel as it is uploaded: its tag, its licences, and its page."""

import base64
import email
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

WHEEL = pathlib.Path(os.environ["MOULT_WHEEL"]) if "MOULT_WHEEL" in os.environ else None
pytestmark = pytest.mark.skipif(WHEEL is None, reason="MOULT_WHEEL names no wheel")
#: The C and C++ libraries that every system with that glibc has, and libcurl, which must be installed for web servers.
LIBRARIES = {"libm.so.6", "libc.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "libcurl.so.4"}


@pytest.fixture(scope="module")
def content():
    with zipfile.ZipFile(WHEEL) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


def part(content, name):
    return next(data for each, data in content.items() if each.endswith(f".dist-info/{name}"))


def tag():
    return WHEEL.name.split("-")[-1].removesuffix(".whl")


def objdump(data, tmp_path, *words):
    (tmp_path / "program").write_bytes(data)
    return subprocess.run(["objdump", *words, tmp_path / "program"], check=True, capture_output=True, text=True).stdout


def test_no_program_needs_a_newer_glibc_than_the_tag_says(content, tmp_path):
    newest = int(re.fullmatch(r"manylinux_2_(\d+)_x86_64", tag())[1])
    found = set()
    for name in ["moult", "moult-fetch"]:
        printed = objdump(content[f"moult_store/bin/{name}"], tmp_path, "-T")
        found |= {int(each) for each in re.findall(r"GLIBC_2\.(\d+)", printed)}
    # The oldest one that is true, too.
    assert max(found) == newest
    assert f"Tag: py3-none-{tag()}\n" in part(content, "WHEEL").decode()


def test_only_the_libraries_of_every_system_and_libcurl_are_needed(content, tmp_path):
    assert "NEEDED" not in objdump(content["moult_store/bin/moult"], tmp_path, "-p")
    needed = set(re.findall(r"NEEDED +(\S+)", objdump(content["moult_store/bin/moult-fetch"], tmp_path, "-p")))
    assert needed <= LIBRARIES and "libcurl.so.4" in needed


def test_auditwheel_agrees_with_the_tag():
    command = [sys.executable, "-m", "auditwheel", "show", "--json", WHEEL]
    shown = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert shown["sym_tag"] == tag()


def test_twine_accepts_the_page():
    ended = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", WHEEL], capture_output=True, text=True)
    assert ended.returncode == 0 and "PASSED" in ended.stdout, ended.stdout


def test_the_page_has_no_link_that_is_dead_on_an_index(content):
    page = email.message_from_bytes(part(content, "METADATA")).get_payload()
    headings = {re.sub(r"[^a-z0-9 -]", "", each.lower()).replace(" ", "-") for each in re.findall(r"(?m)^#+ (.*)$", page)}
    for target in re.findall(r"\]\(([^)]*)\)", page):
        assert re.match(r"https?://", target) or target.startswith("#") and target[1:] in headings, target


def test_metadata_and_licences(content):
    metadata = email.message_from_bytes(part(content, "METADATA"))
    licences = metadata.get_all("License-File")
    assert metadata["License-Expression"] == "Apache-2.0" and metadata["Version"] == "0.1.0"
    assert "Framework :: Django" in metadata.get_all("Classifier")
    for licence in licences:
        assert part(content, f"licenses/{licence}")
    names = {licence.removeprefix("notices/") for licence in licences}
    assert names >= {"LICENSE", "moult", "versions", "libsqlite3-dev", "libssl-dev", "libzstd-dev", "libc6-dev", "nettle-dev"}
    assert b"Apache License" in part(content, "licenses/LICENSE")


def test_the_record_has_every_file_with_its_digest(content):
    lines = dict(line.split(",", 1) for line in part(content, "RECORD").decode().splitlines())
    assert set(lines) == set(content)
    for name, data in content.items():
        if not name.endswith("RECORD"):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert lines[name] == f"sha256={digest},{len(data)}"


def test_the_version_is_that_of_the_package():
    import moult_store

    assert moult_store.__version__ == WHEEL.name.split("-")[1]
