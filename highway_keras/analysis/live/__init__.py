"""The live page: a network that runs in a browser while the user draws its input.

`page.html` is the frame and `style.css` its style. `network.js` runs the steps that `steps.py`
makes from the layers, on the weights that `weights.py` packs; `pad.js`, `maps.js` and `chart.js`
draw, `sentences.js` puts what they show into words, and `page.js` and `controls.js` hold them
together. Nothing is loaded from elsewhere.
"""

from highway_keras.analysis.live.page import live_page

__all__ = ["live_page"]
