"""What runs of a legacy declarative application (docs/guides/applications.md): its data, its training, and its predictions."""
