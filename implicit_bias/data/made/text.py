"""A short text, as contexts of words with embeddings drawn at random, and the words that follow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._support.doors import door
from ..._support.kinds import count
from ..arrays import Floats

TEXT = """
the old cat sleeps by the fire . the small dog sleeps by the door . a bird sings in the tree .
the cat hears the bird . the dog hears the cat . the old dog runs to the door . a small bird sings
to the moon . the moon sees the tree . the child sees the moon . the child sings to the small
bird . the bird hears the child . a dog runs to the child . the cat sees a small bird in the tree .
the bird sees the old cat . the cat runs to the tree . the bird sings . the old cat sleeps . the
child sleeps by the fire . the small dog hears a bird . the dog runs by the old tree . the moon
hears the dog . a cat sleeps in the tree . the fire sings to the child . the old dog sees the fire .
the small child runs to the fire . the moon sings to the old tree . the tree sleeps . a child hears
the fire . the dog sleeps . the moon sees the child . the small bird sleeps in the old tree . a cat
runs to the door . the child sees the door . the old cat hears the small dog . the dog sees a cat by
the door . the child sings . the fire sleeps . the moon sees a bird . the small bird sings by the
fire . the old cat sleeps by the small dog .
"""


class Text(NamedTuple):
    """Contexts and the words after them.

    Attributes
    ----------
    X : (n, D) array
        Embedding of the context of each word.
    tokens : (n,) ints
        The word that follows.
    words : tuple of str
        All words, in their order.
    """

    X: Floats
    tokens: NDArray[np.int64]
    words: tuple[str, ...]


@door(context=count(1), dimension=count(1))
def text_contexts(
    context: int = 1, dimension: int = 32, *, random_state: int | np.random.Generator = 0
) -> Text:
    """Return the contexts of a text of 40 sentences about a cat, a dog and a bird.

    Parameters
    ----------
    context : int
        Words that make a context: each sequence of so many that occurs has a Gaussian embedding of
        its own. A full stop is a word.
    dimension : int
        D. Above the number of contexts, embeddings are linearly independent.
    random_state : int or numpy Generator
        Source of the embeddings.

    Returns
    -------
    Text

    Raises
    ------
    ValueError
        If the text has no word after a context.

    Examples
    --------
    >>> X, tokens, words = ib.datasets.text_contexts()
    >>> X.shape, len(words), words[:4], len(np.unique(X, axis=0))
    ((271, 32), 21, ('.', 'a', 'bird', 'by'), 21)
    """
    words, codes = np.unique(TEXT.split(), return_inverse=True)
    if context >= len(codes):
        raise ValueError(f"`context` must be below {len(codes)}, words of the text, got {context}")
    windows = np.lib.stride_tricks.sliding_window_view(codes, context)[:-1]
    distinct, place = np.unique(windows, axis=0, return_inverse=True)
    drawn = np.random.default_rng(random_state).normal(size=(len(distinct), dimension))
    return Text(drawn[place.ravel()], codes[context:].astype(np.int64), tuple(words.tolist()))
