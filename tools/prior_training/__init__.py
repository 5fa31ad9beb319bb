"""Training of the bundled prior: data, loop and export. tools/train_prior.py is the command."""
