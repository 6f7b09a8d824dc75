"""A Prometheus that scrapes the data plane of this machine: `python examples/delivery/prometheus.py [PORT]`.

Checks with the built-in metrics need none; queries of one's own do. It is Debian's `prometheus`, or whichever is on the
path; what it collects goes to a new temporary folder.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

WHERE = ("configmap", "data-plane", "-n", "trimtab-system", "-o", "jsonpath={.data.metrics}")


def main() -> None:
    port = sys.argv[1] if len(sys.argv) > 1 else "9090"
    asked = subprocess.run(["kubectl", "get", *WHERE], check=True, capture_output=True, text=True)  # noqa: S603, S607
    page = urlsplit(asked.stdout)
    job = {
        "job_name": "data-plane",
        "scrape_interval": "1s",
        "metrics_path": page.path,
        "static_configs": [{"targets": [page.netloc]}],
    }
    folder = Path(tempfile.mkdtemp(prefix="prometheus-"))
    (folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": [job]}))
    print(f"http://127.0.0.1:{port} scrapes {page.geturl()}, Ctrl-C ends it", flush=True)
    words = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    words += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    os.execvp("prometheus", ["prometheus", *words])  # noqa: S606, S607


if __name__ == "__main__":
    main()
