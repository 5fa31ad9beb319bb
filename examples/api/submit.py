"""Submit a campaign, wait for its end, and open its results in pandas.

    python submit.py campaign.yaml http://127.0.0.1:8620

It needs httpx and pandas. DDIFF_TOKEN has the access token, if the server requires one.
"""

import io
import json
import os
import sys

import httpx
import pandas


def wait(api: httpx.Client, campaign: str) -> dict:
    """Follow the events of a campaign until it has ended; resume after a lost connection."""
    last = "0"
    while True:
        status = api.get(f"/campaigns/{campaign}").raise_for_status().json()
        if status["campaign"]["phase"] in ("finished", "cancelled", "rejected"):
            return status
        try:
            with api.stream("GET", f"/campaigns/{campaign}/events", headers={"Last-Event-ID": last}) as events:
                for line in events.iter_lines():
                    name, _, value = line.partition(": ")
                    if name == "id":
                        last = value
                    elif name == "data" and (event := json.loads(value))["kind"] == "campaign":
                        if event["data"]["phase"] in ("finished", "cancelled", "rejected"):
                            break
        except httpx.TransportError:
            pass


def main() -> None:
    path, server = sys.argv[1:]
    token = os.environ.get("DDIFF_TOKEN")
    api = httpx.Client(base_url=server + "/api/v1", timeout=60, headers={"Authorization": f"Bearer {token}"} if token else {})
    with open(path, "rb") as file:
        answer = api.post("/campaigns", content=file.read(), headers={"Content-Type": "application/yaml"})
    if answer.is_error:
        sys.exit(answer.json()["detail"])
    campaign = answer.json()["id"]
    status = wait(api, campaign)
    print(campaign, status["campaign"]["phase"], status["status"]["counts"])
    table = api.get(f"/campaigns/{campaign}/report/results.csv").raise_for_status().text
    print(pandas.read_csv(io.StringIO(table)).groupby(["task", "method"])[["psnr", "ssim"]].mean())


if __name__ == "__main__":
    main()
