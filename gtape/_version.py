"""The version of gtape."""

version = "0.1.0"
