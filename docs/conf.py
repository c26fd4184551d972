"""Sphinx: `sphinx-build docs build/docs`."""

from gtape import __version__

project = "gtape"
release = version = __version__
extensions = ["myst_parser"]
exclude_patterns = ["examples"]
html_theme = "pydata_sphinx_theme"
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False}
myst_heading_anchors = 2
