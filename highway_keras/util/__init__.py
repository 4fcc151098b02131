"""What every room uses: checks of arguments, messages, files and locks, optional packages."""
