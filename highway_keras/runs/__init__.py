"""What a run or a search leaves on disk: its folder, its settings, and what it was made on."""
