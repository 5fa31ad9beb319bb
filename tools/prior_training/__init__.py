"""Training of the bundled prior: data, loop and export. Entry: tools/train_prior.py."""
