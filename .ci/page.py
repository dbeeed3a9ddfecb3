#!/usr/bin/env python3
"""The page in a real browser: two nodes, a slow origin, Chromium by WebDriver.

Logs in, watches a running transfer to its end, searches and sorts, pins, lifts a ban, logs out; a wrong cookie
and a foreign Origin are refused; no request leaves the host; nothing runs that the policy forbids. With an
axe-core script (--axe) its serious findings fail the test. Screenshots go to --shots.

Usage: page.py LARDER [--shots DIR] [--axe FILE]
"""
import argparse, base64, hashlib, http.server, json, os, pathlib, subprocess, sys, tempfile, threading, time
import urllib.error, urllib.request

DRIVER = 18261
PLAIN = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Origin(http.server.BaseHTTPRequestHandler):
    """Files of any size; /slow/… gives a part and waits until it is released."""

    protocol_version = "HTTP/1.1"
    release = threading.Event()

    def do_GET(self):
        size = int(self.path.split("size=")[-1]) if "size=" in self.path else 300_000
        body = hashlib.shake_128(self.path.encode()).digest(size)
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.send_header("ETag", '"%s"' % hashlib.md5(self.path.encode()).hexdigest())
        self.send_header("Cache-Control", "max-age=86400")
        self.end_headers()
        try:
            if self.path.startswith("/slow/"):
                step = size // 20
                for at in range(0, size, step):
                    self.wfile.write(body[at : at + step])
                    Origin.release.wait(0.3 if at < size // 2 else 60)
            else:
                self.wfile.write(body)
        except OSError:
            pass

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A node that cuts a connection is no news."""


class Browser:
    def __init__(self, folder):
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={DRIVER}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until("chromedriver", lambda: self.call("GET", "/status"))
        arguments = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
            "--disable-component-update", "--disable-sync", "--force-prefers-reduced-motion", f"--user-data-dir={folder}/profile",
            "--lang=en", "--window-size=1280,900",
        ]
        wanted = {
            "goog:chromeOptions": {"args": arguments, "perfLoggingPrefs": {"enableNetwork": True}},
            "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"},
        }
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.here = "/session/" + made["sessionId"]

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{DRIVER}{path}", data, {"Content-Type": "application/json"}, method=method
        )
        try:
            return json.load(PLAIN.open(request, timeout=60))["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from None

    def go(self, url):
        self.call("POST", self.here + "/url", {"url": url})

    def run(self, script, *args):
        return self.call("POST", self.here + "/execute/sync", {"script": script, "args": list(args)})

    def run_later(self, script, *args):
        return self.call("POST", self.here + "/execute/async", {"script": script, "args": list(args)})

    def text(self, css):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", css)

    def find(self, css):
        found = self.call("POST", self.here + "/element", {"using": "css selector", "value": css})
        return self.here + "/element/" + next(iter(found.values()))

    def click(self, css):
        self.call("POST", self.find(css) + "/click", {})

    def type(self, css, text):
        element = self.find(css)
        self.call("POST", element + "/clear", {})
        self.call("POST", element + "/value", {"text": text})

    def size(self, width, height):
        self.call("POST", self.here + "/window/rect", {"width": width, "height": height})

    def devtools(self, command, **params):
        self.call("POST", self.here + "/goog/cdp/execute", {"cmd": command, "params": params})

    def picture(self, file):
        shot = self.run_cdp("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(shot["data"]))

    def run_cdp(self, command, **params):
        return self.call("POST", self.here + "/goog/cdp/execute", {"cmd": command, "params": params})

    def log(self, kind):
        return self.call("POST", self.here + "/se/log", {"type": kind})

    def close(self):
        try:
            self.call("DELETE", self.here)
        except (AssertionError, OSError):
            pass
        self.driver.terminate()
        self.driver.wait()


def until(what, holds, patience=60):
    end, last = time.monotonic() + patience, None
    while time.monotonic() < end:
        try:
            if holds():
                return
        except (AssertionError, OSError) as error:
            last = error
        time.sleep(0.1)
    raise AssertionError(f"gave up waiting for {what}: {last}")


def fetch(url, method="GET", headers=None, body=None, proxy=None):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy} if proxy else {}))
    request = urllib.request.Request(url, body, headers or {}, method=method)
    try:
        with opener.open(request, timeout=60) as answer:
            return answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers


class Node:
    def __init__(self, larder, folder, name, address):
        self.address, self.home = address, pathlib.Path(folder) / name
        self.home.mkdir()
        self.file = self.home / "larder.toml"
        self.file.write_text(
            f'site = "page"\nsecret_file = "../secret"\nstate_dir = "state"\nnode_name = "{name}"\n'
            f'[cache]\ndir = "cache"\nmax_size = "200MiB"\nmin_free = "0"\n[proxy]\nlisten = ["{address}:18298"]\n'
            f'[admin]\nlisten = ["{address}:18297"]\n[peers]\nlisten = ["{address}"]\nport = 18296\n'
            f'broadcast = ["127.255.255.255:18296"]\n'
        )
        self.process = subprocess.Popen(
            [larder, "run", "--config", self.file], stdout=subprocess.DEVNULL, stderr=open(self.home / "log", "w")
        )
        self.admin, self.proxy = f"http://{address}:18297", f"http://{address}:18298"
        until(f"{name} to serve", lambda: fetch(self.admin + "/readyz")[0] == 200)
        self.token = (self.home / "state/admin.token").read_text().strip()

    def api(self, method, path, body=None):
        headers = {"Authorization": "Bearer " + self.token, "Content-Type": "application/json"}
        status, answer, _ = fetch(self.admin + path, method, headers, None if body is None else json.dumps(body).encode())
        assert status < 400, (method, path, status, answer)
        return json.loads(answer) if answer else None

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def story(browser, nodes, origin, shots, axe):
    one, two = nodes
    until("the nodes to meet", lambda: len(one.api("GET", "/status")["peers"]) == 1)
    for number in range(6):
        fetch(f"{origin}/file-{number}.iso?size={(number + 1) * 700_000}", proxy=one.proxy)
    for number in range(40):
        fetch(f"{origin}/pool/package_{number}.deb?size={20_000 + number * 900}", proxy=one.proxy)
    for number in range(3):
        fetch(f"{origin}/file-{number}.iso?size={(number + 1) * 700_000}", proxy=two.proxy)
        fetch(f"{origin}/file-{number}.iso?size={(number + 1) * 700_000}", proxy=one.proxy)
    one.api("POST", "/api/v1/bans", {"address": "10.9.8.7", "duration": "10m"})

    browser.go(one.admin + "/")
    until("numbers without a login", lambda: "saved" in browser.text(".cards") and browser.text("#saved-ever") != "–")
    assert not browser.run("return document.querySelector('#contents').checkVisibility()"), "members only"
    picture(browser, shots, "login", axe)
    browser.type("#token", "0" * 64)
    browser.click("#login-form button")
    until("the refusal", lambda: "not right" in browser.text("#login-note"))
    browser.type("#token", one.token)
    browser.click("#login-form button")
    until("the contents", lambda: browser.run("return document.querySelectorAll('#blobs tbody tr').length") == 25)
    cookie = browser.call("GET", browser.here + "/cookie")
    assert len(cookie) == 1 and cookie[0]["httpOnly"] and cookie[0]["sameSite"] == "Strict", cookie
    assert browser.run("return document.cookie") == "", "no script sees it"

    print("a running transfer, to its end")
    got = []
    client = threading.Thread(target=lambda: got.append(fetch(f"{origin}/slow/model.bin?size=8000000", proxy=one.proxy)))
    client.start()
    until("the transfer to show", lambda: "/slow/model.bin" in browser.text("#running"))
    until("half of it", lambda: (browser.run("return document.querySelector('#running progress')?.value") or 0) >= 3_900_000)
    until("the neighbour", lambda: "two" in browser.text("#neighbours") and "two" in browser.run("return document.querySelector('#map').textContent"))
    for kind, width, dark in (("desktop", 1280, False), ("dark", 1280, True), ("narrow", 390, False)):
        browser.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        browser.devtools("Emulation.setDeviceMetricsOverride", width=width, height=1350, deviceScaleFactor=1, mobile=width < 500)
        time.sleep(1.2)
        overflow = browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, f"{kind}: {overflow} pixels too wide"
        picture(browser, shots, kind, axe)
    browser.devtools("Emulation.clearDeviceMetricsOverride")
    browser.devtools("Emulation.setEmulatedMedia", features=[])
    Origin.release.set()
    client.join()
    assert got[0][0] == 200 and len(got[0][1]) == 8_000_000
    until("the transfer to go", lambda: "nothing is being downloaded" in browser.text("#running"))
    browser.click("#ended-box summary")
    until("it to be remembered", lambda: "/slow/model.bin" in browser.text("#ended") and "complete" in browser.text("#ended"))

    print("search, sort, pages, pin, verify")
    browser.click('#blobs [data-by="size"]')
    until("the largest first", lambda: "/slow/model.bin" in browser.text("#blobs tbody tr"))
    assert browser.run("return document.querySelector('#blobs th[aria-sort]').innerText").startswith("Size")
    browser.click('#blobs [data-by="size"]')
    until("the smallest first", lambda: "package_0.deb" in browser.text("#blobs tbody tr"))
    browser.click("#next")
    until("the second page", lambda: browser.run("return document.querySelectorAll('#blobs tbody tr').length") == 22)
    browser.type("#search", "file-3")
    until("what was searched", lambda: browser.run("return document.querySelectorAll('#blobs tbody tr').length") == 1)
    browser.click('#blobs button[aria-label^="Pin"]')
    until("the pin", lambda: browser.run("return !!document.querySelector('#blobs button[aria-label^=Unpin]')"))
    assert len(one.api("GET", "/api/v1/pins")) == 1
    browser.click('#blobs button[aria-label^="Verify"]')
    until("the verdict", lambda: "what its digest says" in browser.text("#notice"))
    browser.type("#search", "package_7.deb")
    until("the other", lambda: "package_7.deb" in browser.text("#blobs tbody tr"))
    for kind, width in (("contents-narrow", 390), ("contents", 1280)):
        browser.devtools("Emulation.setDeviceMetricsOverride", width=width, height=1350, deviceScaleFactor=1, mobile=width < 500)
        browser.run("document.querySelector('#contents').scrollIntoView()")
        picture(browser, shots, kind, axe)
    browser.devtools("Emulation.clearDeviceMetricsOverride")
    browser.click('#blobs button[aria-label^="Remove"]')
    until("the question", lambda: browser.run("return document.querySelector('#ask').open"))
    browser.click("#ask-yes")
    until("it to be gone", lambda: "nothing is like that" in browser.text("#blobs"))

    print("a ban lifted, and who did it")
    until("the ban", lambda: "10.9.8.7" in browser.text("#refused"))
    browser.click('#refused button[aria-label="Lift the ban of 10.9.8.7"]')
    until("the lift", lambda: "nobody is refused" in browser.text("#refused"))
    until("the audit", lambda: "/api/v1/bans/10.9.8.7" in browser.text("#deeds") and "token" in browser.text("#deeds"))
    assert one.api("GET", "/api/v1/bans") == []

    print("the keyboard alone")
    browser.run("document.activeElement?.blur(); scrollTo(0, 0)")
    for _ in range(3):
        browser.call("POST", browser.here + "/actions", {"actions": [{"type": "key", "id": "k", "actions": [{"type": "keyDown", "value": "\ue004"}, {"type": "keyUp", "value": "\ue004"}]}]})
    outlined = browser.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outlined not in ("none", ""), "what has the focus is seen"

    print("wrong cookie, foreign Origin")
    name, value = cookie[0]["name"], cookie[0]["value"]
    path = one.admin + "/api/v1/bans"
    body = json.dumps({"address": "10.9.8.6"}).encode()
    own = {"Content-Type": "application/json", "Cookie": f"{name}={value}", "Origin": one.admin}
    for wrong, status in (
        ({"Cookie": f"{name}={'0' * 64}"}, 401),
        ({"Cookie": ""}, 401),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": f"http://{one.address}:9"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ):
        headers = {key: text for key, text in {**own, **wrong}.items() if text}
        assert fetch(path, "POST", headers, body)[0] == status, wrong
    assert one.api("GET", "/api/v1/bans") == []
    assert fetch(path, "POST", own, body)[0] == 201
    for site in ("same-site", "cross-site"):
        headers = {"Cookie": f"{name}={value}", "Sec-Fetch-Site": site}
        assert fetch(one.admin + "/api/v1/blobs", headers=headers)[0] == 401, "another port of this host reads nothing"

    browser.click("#logout")
    until("the end of the session", lambda: browser.run("return document.querySelector('#login').checkVisibility()"))
    assert fetch(one.admin + "/api/v1/session", headers={"Cookie": f"{name}={value}"})[0] == 401

    wrong = [entry for entry in browser.log("browser") if entry["level"] == "SEVERE" and "401" not in entry["message"]]
    assert not wrong, wrong
    weight, hosts = 0, set()
    for entry in browser.log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = urllib.request.urlparse(message["params"]["request"]["url"])
            hosts |= {url.netloc} if url.scheme in ("http", "https", "ws", "wss") else set()
    assert hosts == {f"{one.address}:18297"}, hosts
    for file in ("", "app.css", "app.js", "views.js", "draw.js"):
        status, text, headers = fetch(f"{one.admin}/{file}", headers={"Accept": "text/html"})
        weight += len(text)
        assert status == 200 and "unsafe" not in headers["Content-Security-Policy"], file
    assert weight <= 150 * 1024, weight
    print(f"the page weighs {weight} bytes; requests went to {hosts}")


def picture(browser, shots, name, axe):
    if shots:
        browser.picture(shots / f"page-{name}.png")
    if not axe:
        return
    browser.run(axe + "; return 1")
    found = browser.run_later("const done = arguments[0]; axe.run(document).then(r => done(r.violations), e => done([{id: String(e), impact: 'critical', nodes: []}]))")
    for violation in found:
        where = [node["target"] for node in violation["nodes"]][:3]
        print(f"axe on {name}: {violation['impact']}: {violation['id']}: {violation.get('help')}: {where}")
    assert not [it for it in found if it["impact"] in ("serious", "critical")], f"{name}: see above"
    print(f"axe on {name}: no serious finding, {len(found)} in all")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("larder")
    arguments.add_argument("--shots", type=pathlib.Path)
    arguments.add_argument("--axe", type=pathlib.Path)
    args = arguments.parse_args()
    if args.shots:
        args.shots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([args.larder, "secret", "new", "-o", f"{folder}/secret"], check=True, stdout=subprocess.DEVNULL)
        server = Server(("127.0.0.60", 0), Origin)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        origin = f"http://127.0.0.60:{server.server_port}"
        nodes, browser = [], None
        try:
            nodes += [Node(args.larder, folder, name, f"127.0.0.{61 + at}") for at, name in enumerate(("one", "two"))]
            browser = Browser(folder)
            story(browser, nodes, origin, args.shots, args.axe and args.axe.read_text())
        except BaseException:
            if browser and args.shots:
                browser.picture(args.shots / "page-failed.png")
            for node in nodes:
                print("".join((node.home / "log").read_text().splitlines(keepends=True)[-20:]), file=sys.stderr)
            raise
        finally:
            Origin.release.set()
            if browser:
                browser.close()
            for node in nodes:
                node.stop()
            server.shutdown()
    print("page: all right")


if __name__ == "__main__":
    main()
