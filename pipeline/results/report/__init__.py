"""``report.html``: a run as one page with pictures that needs no network.

`content` gathers what is shown, in bounded memory. `figures` draws it as SVG. `page` puts it into HTML.
"""
