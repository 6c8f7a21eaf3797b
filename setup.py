"""Builds the optional compiled kernel; everything else is in pyproject.toml.

Without a C compiler the installation succeeds, and the Python engine scores. `SISOD_NATIVE=0` builds
without the kernel.
"""

import os
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext


class BuildKernel(build_ext):
    """Compile as C11, and without fusing products and sums: values must equal those of NumPy."""

    def build_extension(self, ext: Extension) -> None:
        """Compile with the options of the compiler that was found."""
        is_msvc = self.compiler.compiler_type == "msvc"
        ext.extra_compile_args = (
            ["/std:c11", "/O2", "/fp:precise"]
            if is_msvc
            else ["-std=c11", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
        )
        super().build_extension(ext)


FOLDER = Path("src", "native")
KERNEL = Extension(
    "sisod.scoring._native",
    sources=sorted(path.as_posix() for path in FOLDER.glob("*.c")),
    depends=sorted(path.as_posix() for path in FOLDER.glob("*.h")),
    py_limited_api=True,
    optional=True,
)
IS_WANTED = os.environ.get("SISOD_NATIVE") != "0"
setup(
    ext_modules=[KERNEL] if IS_WANTED else [],
    cmdclass={"build_ext": BuildKernel},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if IS_WANTED else {},
)
