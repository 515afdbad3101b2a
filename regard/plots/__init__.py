"""Plots of arrays and labels as SVG, PNG, HTML and terminal text."""
