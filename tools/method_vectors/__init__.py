"""Reference vectors of published methods, from the authors' own codes: see __main__."""
