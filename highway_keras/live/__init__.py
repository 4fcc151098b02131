"""The live page: a network that runs in a browser while the user draws its input.

`live_page` writes it. `page.html` is the frame and `style.css` its style. `network.js` runs the
steps that `steps.py` makes from the layers, on the weights that it packs; `pad.js`, `maps.js` and
`chart.js` draw, `sentences.js` puts what they show into words, `page.js` and `controls.js` hold
them together, and `operations.js`, `weights.js`, `colors.js` and `elements.js` serve these.
`page.py` puts all of it into one file; nothing is loaded from elsewhere.
"""

from highway_keras.live.page import live_page

__all__ = ["live_page"]
