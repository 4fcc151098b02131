"""The command `highway-keras` in a process of its own, as the installed script starts it."""

import sys

SCRIPT = "import sys; from highway_keras_command import main; sys.exit(main())"
COMMAND = (sys.executable, "-c", SCRIPT)
