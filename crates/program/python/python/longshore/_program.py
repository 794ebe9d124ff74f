"""The program ``longshore`` that the wheel installs."""

from __future__ import annotations

import os
import shutil
import sysconfig

NAME = "longshore"


def find() -> str | None:
    """The path of the program: that of this installation, else the first one in ``PATH``."""
    user = sysconfig.get_preferred_scheme("user")
    for folder in (sysconfig.get_path("scripts"), sysconfig.get_path("scripts", user)):
        path = os.path.join(folder, NAME)
        if os.access(path, os.X_OK):
            return path
    return shutil.which(NAME)
