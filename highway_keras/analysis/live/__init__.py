"""The live page: a network that runs in a browser while one draws its input.

`page.html` is the frame and `style.css` its look. `network.js` runs the steps that `steps.py` made
of the layers, on the numbers that `weights.py` packed; `pad.js`, `maps.js` and `chart.js` draw,
`sentences.js` says in words what they show, and `page.js` and `controls.js` hold them together.
Nothing in it is loaded from elsewhere.
"""

from highway_keras.analysis.live.page import live_page

__all__ = ["live_page"]
