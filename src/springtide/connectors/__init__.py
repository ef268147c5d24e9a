"""Where rows come from and where they go: a file or a folder for each connector, with its declaration and its I/O."""
