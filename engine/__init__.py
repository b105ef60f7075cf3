"""A decoder-only transformer that keeps what it computed, so that it can be looked into.

torch inside, read-only numpy records outside. Axis letters, everywhere in this package:

    L layers · H query heads · G key/value heads · T new tokens · S tokens so far
    D head_dim · C d_model · F d_ff · V vocab_size

There is no batch axis, training aside, where B comes first.
"""

__version__ = "0.1.0"
