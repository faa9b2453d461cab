"""Files of edges as text: plain ones, which a device reads, and others, which it leaves to the host."""

from typing import Any

from hypothesis import strategies as st

#: Files that a device reads: name, text, options of ingest.
PLAIN = {
    "konect": ("out.x", "% bip unweighted\n% 4 3 2\n1 1\n2 1\n3 2\n1 2\n"),
    "konect with tabs": ("out.x", "1\t1\n2\t1\n"),
    "konect with weights": ("out.x", "% bip\n1 1 1 978300019\n2 1 -3 978300019\n3 2 0.5 7\n"),
    "konect with whole weights": ("out.x", "1 1 1\n2 1 5\n"),
    "snap": ("x.el", "# a\n# b\n0 5\n7 5\n0 5\n"),
    "snap, text": ("x.el", "ann b\nbob \u00e9t\u00e9\n", {"label_type": "string"}),
    "csv": ("x.csv", "user,item\n3,4\n30,4\n3,4\n"),
    "csv, crlf, no end": ("x.csv", "user,item\r\n3,4\r\n30,4"),
    "csv, byte order mark": ("x.csv", "\ufeff3,4\n30,4\n", {"header": False}),
    "csv, mixed": ("x.csv", "n,user,item,when\n9,ann,4,x y\n8,bob,4,\u00fc\n", {"left": "user", "right": "item"}),
    "csv, large integers": ("x.csv", "123456789012345678,1\n999999999999999999,2\n", {"header": False}),
    "tsv, text": ("x.tsv", "NA\tnull\nnan\tnull\n", {"header": False, "label_type": "string"}),
}
#: Files that the host reads.
NOT_PLAIN = {
    "runs of blanks": ("out.x", "1  1\n 2 1\n"),
    "a tab and a blank": ("x.el", "a\t \n", {"label_type": "string"}),
    "a blank and a tab": ("x.el", "a\tb c\n", {"label_type": "string"}),
    "comments between": ("x.el", "1 2\n# and\n3 4\n"),
    "blank lines": ("x.csv", "1,2\n\n3,4\n", {"header": False}),
    "quotes": ("x.csv", '"a",b\n"c,d",b\n', {"header": False}),
    "leading zeros": ("x.csv", "1,2\n07,3\n", {"header": False}),
    "zeros made up for": ("x.csv", "1,2\n07,3\n,5\n", {"header": False, "skip_bad_lines": True}),
    "too large": ("x.csv", "1,2\n18446744073709551621,3\n", {"header": False}),
    "just too large": ("x.csv", "1,2\n9223372036854775808,3\n", {"header": False}),
    "largest": ("x.csv", "9223372036854775807,2\n5,3\n", {"header": False}),
    "negative": ("x.csv", "1,2\n-4,3\n", {"header": False}),
    "below the lowest": ("out.x", "1 1\n0 1\n"),
    "hexadecimal": ("x.csv", "1,2\n0x5,3\n", {"header": False}),
    "text for a number": ("x.csv", "1,2\na,3\n", {"header": False}),
    "text for a weight": ("out.x", "1 1 1\n1 2 one\n"),
    "a weight with an exponent": ("out.x", "1 1 1\n1 2 1e5\n"),
    "an empty label": ("x.csv", "a,b\n,c\n", {"header": False}),
    "too many columns": ("x.csv", "1,2\n3,4,5\n6\n", {"header": False}),
    "bad lines left out": ("x.csv", "1,2\nx,3\n4,5\n,\n6,7\n", {"header": False, "skip_bad_lines": True}),
    "a carriage return inside": ("x.csv", "1,2\n3\r4,5\n", {"header": False}),
    "header counts wrong": ("out.x", "% bip\n% 9 3 2\n1 1\n2 1\n"),
}


@st.composite
def any_text(draw: st.DrawFn, alphabet: str) -> tuple[str, bytes, dict[str, Any]]:
    """A file name, what the file holds, and options of ingest."""
    field = st.text(alphabet, max_size=4)
    lines = draw(st.lists(st.lists(field, min_size=1, max_size=3), min_size=1, max_size=8))
    delimiter = draw(st.sampled_from([" ", "\t", ","]))
    file = draw(st.sampled_from(["out.x", "x.el", "x.csv", "x.tsv"]))
    kind = draw(st.sampled_from(["auto", "string", "int"]))
    skip = draw(st.booleans())
    end = draw(st.sampled_from(["\n", "", "\r\n"]))
    options = {"label_type": kind, "skip_bad_lines": skip} | ({"header": False} if "sv" in file else {})
    return file, ("\n".join(delimiter.join(line) for line in lines) + end).encode(), options
