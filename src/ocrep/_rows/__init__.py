"""Where rows come from: memory, a device, a scan, Dask; checked once, in `checks`."""
