"""What a run or a search leaves on disk: its folder, its settings, and what it was made on."""

PROSE = ("name", "source", "reasons")  # of a recipe in `run.json`: they do not decide the training
