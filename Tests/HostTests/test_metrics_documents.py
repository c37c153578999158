"""The documents about metrics, the dashboard and the alerts."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Iterator

from metrics_text import Metrics, run_worker
from package import ROOT

OPERATING = ROOT / "examples" / "operating"


class Documents(unittest.TestCase):
    """The page, the dashboard and the alerts are about metrics that exist."""

    metrics: Metrics

    @classmethod
    def setUpClass(cls) -> None:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            run = run_worker("--cache-dir", folder, requests='{"id": 1, "method": "metrics"}\n')
        cls.metrics = Metrics(json.loads(run.stdout)["result"]["text"])

    def used(self, query: str) -> set[str]:
        return set(re.findall(r"\bimageworker_\w+", query))

    def queries(self) -> Iterator[str]:
        dashboard = json.loads((OPERATING / "dashboard.json").read_text("utf-8"))
        for variable in dashboard["templating"]["list"]:
            yield variable["query"]
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                yield target["expr"]

    def test_the_page_lists_each_metric_with_its_labels_type_and_meaning(self) -> None:
        rows = re.findall(r"^\| `(imageworker_\w+)` \| (.*?)\| (\w+) \| (.+) \|$", (OPERATING / "metrics.md").read_text(), re.MULTILINE)
        listed = {name: (set(re.findall(r"`(\w+)`", labels)), kind, f"{meaning}.") for name, labels, kind, meaning in rows}
        actual = {name: (self.metrics.labels(name) - {"le"}, kind, self.metrics.help[name])
                  for name, kind in self.metrics.types.items()}  # fmt: skip
        self.assertEqual(len(listed), len(rows))
        self.assertEqual(listed, actual)

    def test_the_dashboard_uses_only_metrics_that_exist(self) -> None:
        queries = list(self.queries())
        self.assertGreater(len(queries), 15)
        for query in queries:
            self.assertLessEqual(self.used(query), self.metrics.names, query)

    def test_the_alerts_use_only_metrics_that_exist(self) -> None:
        rules = (OPERATING / "alerts.yml").read_text()
        self.assertGreater(len(self.used(rules)), 10)
        self.assertLessEqual(self.used(rules), self.metrics.names)

    @unittest.skipIf(shutil.which("promtool") is None, "there is no promtool here")
    def test_promtool_accepts_the_alerts_and_the_queries_of_the_dashboard(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            # As rules, because promtool checks these without a server.
            rules = [{"record": f"panel:{number}", "expr": re.sub(r"\$__rate_interval", "5m", query)}
                     for number, query in enumerate(self.queries()) if "(" in query and "label_values" not in query]  # fmt: skip
            panels = Path(folder) / "panels.yml"
            panels.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
            for file in (OPERATING / "alerts.yml", panels):
                checked = subprocess.run(["promtool", "check", "rules", str(file)], capture_output=True, text=True)
                self.assertEqual(checked.returncode, 0, checked.stderr)

    @unittest.skipIf(shutil.which("promtool") is None, "there is no promtool here")
    def test_the_alerts_of_a_worker_that_fails_and_of_one_that_is_gone_fire_for_no_other(self) -> None:
        series = {
            'imageworker_load_duration_seconds_count{worker="bad",result="failed"}': "0+60x20",
            'imageworker_load_duration_seconds_count{worker="bad",result="miss"}': "0+30x20",
            'imageworker_load_duration_seconds_count{worker="good",result="failed"}': "0+30x20",
            'imageworker_load_duration_seconds_count{worker="good",result="miss"}': "0+60x20",
            # A program may cancel more than it waits for.
            'imageworker_load_duration_seconds_count{worker="bad",result="cancelled"}': "0+900x20",
            'imageworker_snapshot_time_seconds{worker="bad"}': "0+60x20",
            'imageworker_snapshot_time_seconds{worker="killed"}': "0x20",
            'imageworker_snapshot_time_seconds{worker="ended"}': "0x20",
            'imageworker_running{worker="bad"}': "1x20",
            'imageworker_running{worker="killed"}': "1x20",
            'imageworker_running{worker="ended"}': "0x20",
        }
        summaries = dict(re.findall(r"alert: (\w+)\n(?:.*\n)*?\s+summary: (.+)", (OPERATING / "alerts.yml").read_text()))
        expected = [
            {"eval_time": "15m", "alertname": name, "exp_alerts": [
                {"exp_labels": {"worker": worker, "severity": "critical"}, "exp_annotations": {"summary": summaries[name]}}
            ]}
            for name, worker in (("ImageWorkerLoadsFail", "bad"), ("ImageWorkerGone", "killed"))
        ]  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            test = Path(folder) / "test.yml"
            inputs = [{"series": name, "values": values} for name, values in series.items()]
            test.write_text(json.dumps({
                "rule_files": [str(OPERATING / "alerts.yml")], "evaluation_interval": "1m",
                "tests": [{"interval": "1m", "input_series": inputs, "alert_rule_test": expected}],
            }))  # fmt: skip
            tested = subprocess.run(["promtool", "test", "rules", str(test)], capture_output=True, text=True)
        self.assertEqual(tested.returncode, 0, tested.stdout + tested.stderr)


if __name__ == "__main__":
    unittest.main()
