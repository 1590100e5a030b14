"""What runs of a legacy declarative application (docs/applications.md): its data, its training, and its predictions."""
