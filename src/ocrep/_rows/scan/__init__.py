"""Where rows come from when they are not all in memory: files, arrays on disk, iterables of blocks."""
