"""One network under many γ, tables of rules and of hidden sizes, and tests of differences between methods."""
