"""Fetching a model from Hugging Face, when and only when a user asks for one.

This is the one place that goes to a network. `huggingface_hub` is imported by the first question
and by nothing before; it is told to send nothing but what fetching needs.
"""

from engine.hub.cache import usual_cache
from engine.hub.client import Client
from engine.hub.offers import Choice, Offer, RemoteFile
from engine.hub.repository import Repository, read_repository
from engine.hub.transfer import Progress, download, free_bytes, lacking_bytes

__all__ = [
    "Choice",
    "Client",
    "Offer",
    "Progress",
    "RemoteFile",
    "Repository",
    "download",
    "free_bytes",
    "lacking_bytes",
    "read_repository",
    "usual_cache",
]
