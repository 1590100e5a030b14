"""The part of a legacy declarative application that runs (docs/guides/applications.md): data, training, predictions."""
