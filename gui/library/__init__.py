"""All the ways to a model: those on this computer, a download, a file that is dropped."""
