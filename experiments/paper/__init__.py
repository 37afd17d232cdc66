"""Figures of the papers, redone: the same picture from runs of the library, beside the printed one.

    python -m experiments.paper gln-2
    python -m experiments.paper relu-3 --full --data-dir DIR --jobs 8

`settings` says which runs a figure is made of, `points` brings their rows and the published ones to
one form, `figures` draws both.
"""
