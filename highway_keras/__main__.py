"""Run the command as `python -m highway_keras`.

Python imports the package, and so Keras, before it runs `__main__`. The script `highway-keras`
imports Keras only for the commands that need it, and hides what TensorFlow's libraries print.
"""

import sys

from highway_keras.cli.command import main

if __name__ == "__main__":
    sys.exit(main())
