"""One network under many γ: rules and sizes side by side, and the test of differences."""
