"""What models are on this computer: found without network and torch, and by headers alone.

Hugging Face's cache is walked here and not by `huggingface_hub.scan_cache_dir`: that one drops a
whole repository over one file whose download was broken off, walks data sets too, opens whatever
lies under `refs` (a pipe there would never answer), and can be neither bounded nor stopped. A test
holds what is found against what it finds.
"""

from engine.library.found import Found, Looking, Note
from engine.library.places import Place, added_place, standard_places
from engine.library.searching import search
from engine.library.stores import model_name
from engine.memory import available_bytes

__all__ = [
    "Found",
    "Looking",
    "Note",
    "Place",
    "added_place",
    "available_bytes",
    "model_name",
    "search",
    "standard_places",
]
