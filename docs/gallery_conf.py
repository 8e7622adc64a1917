"""Settings of the gallery (sphinx-gallery), its order, and how its pages and plots look; a Sphinx extension, too."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from sphinx.application import Sphinx
from threadpoolctl import threadpool_limits

import tapegrad as tg

HERE = Path(__file__).parent / "gallery"
ORDER = [
    "decay",
    "regression",
    "gaussian_process",
    "mixture",
    "eight_schools",
    "options",
    "predator_prey",
    "neural_ode",
    "pendulum",
    "bundle_adjustment",
    "heat",
    "deconvolution",
    "transport",
    "digits",
    "lstm",
    "transformer",
    "vae",
    "maml",
]


def reset(gallery_conf: dict[str, Any], name: str) -> None:
    """Give an example the style of the site, and what a new process has."""
    plt.style.use(HERE / "site.mplstyle")
    threadpool_limits(1)  # threads of BLAS gain nothing here, and wait for each other if others compute
    tg.set_default_dtype(tg.float64)


def position(name: str) -> int:
    """Return where an example stands in the gallery."""
    return ORDER.index(Path(name).stem.removeprefix("plot_"))


SETTINGS = {
    "examples_dirs": "gallery",
    "gallery_dirs": "generated/gallery",
    "within_subsection_order": "gallery_conf.position",
    "reset_modules": ("matplotlib", "gallery_conf.reset"),
    "abort_on_example_error": True,
    "capture_repr": (),  # else the last call of a plot prints an object and its address
    "ignore_pattern": r"timing\.py",
    # A notebook that is downloaded brings the module with which the examples measure.
    "first_notebook_cell": "%%writefile timing.py\n" + (HERE / "timing.py").read_text(),
    "image_srcset": ["2x"],
    "show_signature": False,
    "write_computation_times": False,
    "inspect_global_variables": False,
}


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the gallery's style sheet."""
    app.config.html_static_path.append(str(HERE / "gallery.css"))
    app.add_css_file("gallery.css", priority=900)  # behind those of sphinx-gallery
    return {"parallel_read_safe": True, "parallel_write_safe": True}
