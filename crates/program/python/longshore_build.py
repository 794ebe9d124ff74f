"""Builds the wheel: the Python package and the program `longshore`.

maturin builds either extension modules or programs. This backend builds the program with
Cargo and gives it to maturin as a data file; the installer puts it into the folder with the
programs of the environment. Everything else is maturin's.

Cargo compiles the code of the extension module together with the program, on all cores.
maturin then only links it.

`MATURIN_PEP517_ARGS="--zig --compatibility manylinux2014"` builds for old Linux
distributions: maturin links the extension module with zig, and cargo-zigbuild the program.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import maturin
from maturin import get_requires_for_build_sdist

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

# pip runs the hooks in the folder with pyproject.toml: `crates/program/python` in a checkout, the top
# folder in a source distribution, which has the manifest of the workspace there.
MANIFESTS = [Path("crates/program/python/Cargo.toml"), Path("Cargo.toml")]
# pyproject.toml names this folder; maturin fails if it does not exist.
DATA = Path("data")
# The extension module needs only the stable ABI. With this description of it, PyO3 does not
# depend on the Python of the build: Cargo compiles PyO3 once for the run here and that of
# maturin, and not again for another Python.
PYO3_CONFIG = Path(__file__).resolve().with_name("pyo3-config.txt")


COMPRESSION = "--compression-level=9"
#: What links for old Linux distributions.
ZIG = ["cargo-zigbuild==0.24.1", "ziglang==0.15.2"]


def get_requires_for_build_wheel(config_settings=None):
    """The packages that building the wheel needs."""
    return maturin.get_requires_for_build_wheel(config_settings) + (ZIG if _uses_zig() else [])


get_requires_for_build_editable = get_requires_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds the wheel in `wheel_directory`, and returns its file name."""
    with _data(program=True):
        return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """As `build_wheel`, with the Python files of the checkout."""
    with _data(program=True):
        return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    """Builds the source distribution in `sdist_directory`, and returns its file name."""
    with _data(program=False):
        return maturin.build_sdist(sdist_directory, config_settings)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Writes the metadata of the wheel without building it."""
    with _data(program=False):
        return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


@contextlib.contextmanager
def _data(program: bool):
    scripts = DATA / "scripts"
    scripts.mkdir(parents=True, exist_ok=True)
    before = dict(os.environ)
    try:
        if program:
            os.environ.update(_pyo3_settings())
            arguments = os.environ.get("MATURIN_PEP517_ARGS", "")
            # The wheel is 4 % smaller than with the default level of maturin.
            os.environ["MATURIN_PEP517_ARGS"] = f"{COMPRESSION} {arguments}"
            shutil.copy2(_program(), scripts / "longshore")
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(DATA)


def _pyo3_settings() -> dict[str, str]:
    """The environment with which maturin compiles PyO3, for both runs of Cargo."""
    has_abi = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
    if not has_abi:
        return {}
    return {"PYO3_BUILD_EXTENSION_MODULE": "1", "PYO3_CONFIG_FILE": str(PYO3_CONFIG)}


def _program() -> Path:
    """Builds the program and the code of the extension module; returns the program's path."""
    command = ["cargo", "build"]
    if _uses_zig():
        # The version of glibc for manylinux2014.
        target = f"{platform.machine()}-unknown-linux-gnu.2.17"
        command = ["cargo", "zigbuild", "--target", target]
    manifest = next(path for path in MANIFESTS if path.exists())
    # Both packages, so that Cargo builds the libraries once, with the features of both. Not
    # `--locked`: Cargo removes crates from Cargo.lock that a source distribution does not have.
    command += ["--manifest-path", str(manifest), "--profile", "release"]
    command += ["--package", "longshore-cli", "--bin", "longshore"]
    command += ["--package", "longshore-extension", "--lib"]
    command += ["--message-format", "json-render-diagnostics"]
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    for line in output.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == "longshore":
            return Path(message["executable"])
    raise RuntimeError("cargo built no program `longshore`")


def _uses_zig() -> bool:
    return "--zig" in os.environ.get("MATURIN_PEP517_ARGS", "").split()
