"""Arrays in, arrays out: factors that merge, and everything read off them; knows no estimator and no file."""
