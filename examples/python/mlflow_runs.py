"""Logs the rows of a report's table to MLflow, into the experiment ddiff of the server in MLFLOW_TRACKING_URI.

    python examples/python/mlflow_runs.py out/demo/summary.json

A row that is logged again updates its run.
"""

import sys

import mlflow

from report_runs import read

mlflow.set_experiment("ddiff")
for row in read(sys.argv[1]):
    earlier = mlflow.search_runs(filter_string=f"tags.ddiff = '{row.id}'", output_format="list")
    with mlflow.start_run(run_id=earlier[0].info.run_id if earlier else None, run_name=row.name, tags={"ddiff": row.id}):
        mlflow.log_params(row.config)
        mlflow.log_metrics(row.scores)
