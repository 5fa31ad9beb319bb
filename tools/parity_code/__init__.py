"""The released code of DDiff beside this program, on equal measurements, start and noise: make parity-code."""
