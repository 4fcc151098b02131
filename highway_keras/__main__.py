"""Run the command: `python -m highway_keras`, which imports Keras before it reads its arguments.

Python imports a package before it runs its `__main__`. The script `highway-keras` imports Keras
only for the commands that need it, and without the lines that TensorFlow's libraries print.
"""

import sys

from highway_keras.cli.command import main

if __name__ == "__main__":
    sys.exit(main())
