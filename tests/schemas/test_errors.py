"""The sentence of an error is one line that can be printed and sent, whatever the names in it are."""

import pickle

import pytest

from bicliques.schemas.errors import BicliqueError, IncompleteError, InputError, ResourceError, UnknownIdError


@pytest.mark.parametrize("kind", [BicliqueError, IncompleteError, InputError, ResourceError, UnknownIdError])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a b/é 東京 🌟.csv", "a b/é 東京 🌟.csv"),
        ("a\nb", r"a\nb"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\u202egnp", r"\u202egnp"),
        ("byte \udcff", r"byte \udcff"),
        (r"C:\new", r"C:\new"),
    ],
    ids=ascii,
)
def test_a_sentence_is_one_line_of_text(kind, name, said):
    error = kind(f"{name} is empty")
    for each in (error, pickle.loads(pickle.dumps(error))):
        assert str(each) == f"{said} is empty"
        assert str(each).isprintable()
        assert str(each).encode()
