"""Logs the rows of a report's table to the project ddiff of Weights & Biases.

    python examples/python/wandb_runs.py out/demo/summary.json

A row that is logged again replaces its run. With WANDB_MODE=offline, `wandb sync wandb/offline-run-*` uploads later.
"""

import sys

import wandb

from report_runs import read

for row in read(sys.argv[1]):
    with wandb.init(project="ddiff", id=row.id, name=row.name, config=row.config) as run:
        run.log(row.scores)
