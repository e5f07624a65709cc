"""The alerts that metrics raise, and the queries of the dashboard, in Debian's promtool and Prometheus."""
import contextlib, http.server, json, pathlib, re, subprocess, tempfile, threading, time, urllib.parse, urllib.request

HERE = pathlib.Path(__file__).resolve().parent.parent.parent / "integrations/prometheus"
RULES, DASHBOARD = HERE / "moult.rules.yml", HERE / "dashboard.json"
DAYS = 30


def firing(metrics):
    """Returns the alerts that fire after a server has read these metrics for 30 days. The clock of promtool starts at zero, so
    times are shifted."""
    shift = int(time.time()) - DAYS * 86_400
    series = []
    for line in metrics.splitlines():
        if line.startswith("#"):
            continue
        name, value = line.rsplit(" ", 1)
        if "_timestamp_seconds{" in name:
            value = str(int(value) - shift)
        series.append({"series": name.replace("{", '{instance="host:9100",', 1), "values": f"{value}+0x{DAYS * 24}"})
    names = re.findall(r"- alert: (\w+)", RULES.read_text())
    # promtool compares values instead of printing them: it complains about each alert that fires.
    questions = [{"expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) > bool 0 or vector(0)', "eval_time": f"{DAYS}d",
                  "exp_samples": [{"labels": "{}", "value": 0}]} for name in names]
    test = {"rule_files": [str(RULES)], "evaluation_interval": "1h",
            "tests": [{"interval": "1h", "input_series": series, "promql_expr_test": questions}]}
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        json.dump(test, file)  # JSON is YAML.
        file.flush()
        ended = subprocess.run(["promtool", "test", "rules", file.name], capture_output=True, text=True)
    answer = ended.stdout + ended.stderr
    found = sorted(set(re.findall(r'alertname=\\?"(\w+)', answer)))
    if bool(ended.returncode) != bool(found):
        raise SystemExit(f"promtool: {answer}")
    return found


def queries():
    """Returns the title of each panel of the dashboard with its queries."""
    return {panel["title"]: [target["expr"].replace("$product", ".*") for target in panel.get("targets", [])]
            for panel in json.loads(DASHBOARD.read_text())["panels"]}


def dashboard(metrics):
    """Runs each query of the dashboard in Prometheus. `metrics` has the metrics of each machine. Returns the results by panel."""
    class Exporter(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_): pass

        def do_GET(self):
            body = list(metrics.values())[int(self.path.lstrip("/"))].encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as end:
        end.callback(server.server_close)
        end.callback(server.shutdown)
        target = f"127.0.0.1:{server.server_port}"
        jobs = [{"job_name": f"drill {number}", "scrape_interval": "1s", "metrics_path": f"/{number}",
                 "static_configs": [{"targets": [target], "labels": {"instance": machine}}]} for number, machine in enumerate(metrics)]
        config = pathlib.Path(directory) / "prometheus.yml"
        config.write_text(json.dumps({"scrape_configs": jobs, "rule_files": [str(RULES)]}))
        log = end.enter_context(open(pathlib.Path(directory) / "log", "w+"))
        process = subprocess.Popen(["prometheus", "--config.file", str(config), "--storage.tsdb.path", f"{directory}/data",
                                    "--web.listen-address", "127.0.0.1:0"], stdout=log, stderr=log)
        end.callback(process.wait)
        end.callback(process.terminate)
        port = listening(process.pid)

        def ask(query):
            url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]["result"]

        until = time.time() + 60
        while True:
            with contextlib.suppress(OSError):
                if len(ask("moult_up")) == len(metrics):
                    break
            if time.time() > until:
                log.seek(0)
                raise SystemExit(f"Prometheus does not have the metrics: {log.read()[-2000:]}")
            time.sleep(0.2)
        return {title: [ask(query) for query in own] for title, own in queries().items()}


def listening(pid):
    """Returns the port on which a process listens, when it does."""
    for _ in range(300):
        with contextlib.suppress(OSError):
            sockets = {link for link in (path.readlink() for path in pathlib.Path(f"/proc/{pid}/fd").iterdir())}
            for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == "0A" and pathlib.Path(f"socket:[{words[9]}]") in sockets:
                    return int(words[1].split(":")[1], 16)
        time.sleep(0.1)
    raise SystemExit("prometheus does not listen")
