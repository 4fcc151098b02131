"""The documentation site, for `mkdocs build`: its generated parts, and its checks.

`hook.py` is the hook that `mkdocs.yml` names. `zoo.py`, `api.py`, `live.py` and `notebooks.py`
generate pages, `docstrings.py` and `google_style.py` prepare docstrings for mkdocstrings, and
`links.py` checks a built site.
"""
