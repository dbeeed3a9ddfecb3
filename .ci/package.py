#!/usr/bin/env python3
"""The Debian package in a test root: install, configure, download, upgrade in the middle of a download with the socket
handed over, purge; nothing may be left. No systemd runs in there: this script holds the socket and starts the daemon
as systemd would.

Usage, as root, in network and mount namespaces of its own:
    unshare -n -m .ci/package.py ROOT OLD.deb NEW.deb
ROOT is a Debian tree with systemd, procps and curl, as `mmdebstrap --variant=apt --include=systemd,procps,curl bookworm ROOT` makes it.
"""
import hashlib, http.server, os, pathlib, shutil, signal, socket, subprocess, sys, threading, time

ROOT = pathlib.Path(sys.argv[1])
OLD, NEW = (pathlib.Path(name) for name in sys.argv[2:4])
BODY = hashlib.shake_128(b"slow").digest(12_000_000)


class Slow(http.server.BaseHTTPRequestHandler):
    """A file that takes six seconds."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.send_header("ETag", '"1"')
        self.send_header("Cache-Control", "max-age=3600")
        self.end_headers()
        for at in range(0, len(BODY), 200_000):
            self.wfile.write(BODY[at : at + 200_000])
            time.sleep(0.1)

    def log_message(self, *_):
        pass


def inside(*command, **options):
    return subprocess.run(["chroot", str(ROOT), *command], check=True, text=True, capture_output=True, **options).stdout


def install(package):
    shutil.copy(package, ROOT / "tmp/larder.deb")
    inside("dpkg", "-i", "/tmp/larder.deb", env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    (ROOT / "tmp/larder.deb").unlink()


def tree():
    skip = ("/proc", "/sys", "/dev", "/tmp", "/run", "/var/lib/dpkg", "/var/log", "/var/cache/ldconfig", "/var/lib/systemd")
    found = {}
    for folder, folders, files in os.walk(ROOT):
        at = "/" + os.path.relpath(folder, ROOT).lstrip(".").lstrip("/")
        if at.startswith(skip):
            folders.clear()
            continue
        for name in files + folders:
            path = os.path.join(at, name)
            real = ROOT / path.lstrip("/")
            text = real.is_file() and not real.is_symlink() and path.startswith("/etc")
            found[path] = real.read_bytes() if text else None
    return found


class Manager:
    """What systemd does: holds the sockets, starts the daemon with them, waits until it says READY."""

    started = []

    def __init__(self):
        self.sockets = []
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            made = socket.socket(family)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            made.bind((address, 8098))
            made.listen(1024)
            self.sockets.append(made)
        (ROOT / "run/larder").mkdir(parents=True, exist_ok=True)
        owner = [int(part) for part in inside("sh", "-c", "id -u larder; id -g larder").split()]
        os.chown(ROOT / "run/larder", *owner)
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = ROOT / "run/larder/notify"
        self.notify.bind(str(path))
        os.chown(path, *owner)
        self.notify.settimeout(30)

    def start(self):
        # descriptors 3 and 4 are the sockets; LISTEN_PID must be the daemon's own
        script = "LISTEN_PID=$$ exec /usr/bin/larder run"
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "proxy:proxy", "NOTIFY_SOCKET": "/run/larder/notify",
            "STATE_DIRECTORY": "/var/lib/larder", "CACHE_DIRECTORY": "/var/cache/larder", "RUNTIME_DIRECTORY": "/run/larder",
        }
        numbers = [made.fileno() for made in self.sockets]
        wire = f"exec 3<&{numbers[0]} 4<&{numbers[1]}; exec chroot --userspec=larder:larder {ROOT} /bin/sh -c '{script}'"
        log = open(ROOT / "tmp/log", "a")
        process = subprocess.Popen(["bash", "-c", wire], pass_fds=numbers, env=environment, stdout=log, stderr=log)
        self.started.append(process)
        while b"READY=1" not in self.notify.recv(4096):
            pass
        return process


def main():
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for name in ("proc", "dev"):
        subprocess.run(["mount", "--rbind", f"/{name}", str(ROOT / name)], check=True)
    before = tree()
    origin = http.server.ThreadingHTTPServer(("127.0.0.5", 9000), Slow)
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    url = "http://127.0.0.5:9000/slow.bin"

    install(OLD)
    assert inside("larder", "--version").startswith("larder ")
    assert (ROOT / "var/lib/larder").stat().st_mode & 0o777 == 0o700
    print("installed:", inside("dpkg-query", "-W", "larder").strip())
    print("systemd-analyze verify:", inside("sh", "-c", "systemd-analyze --man=no verify larder.service larder.socket 2>&1 | grep -i larder || echo clean").strip())
    (ROOT / "etc/larder/larder.toml").write_text('site = "lab"\n[cache]\nmin_free = "0"\n[peers]\nenabled = false\n')
    inside("larder", "config", "check")

    manager = Manager()
    daemon = manager.start()
    curl = lambda *more: subprocess.Popen(
        ["chroot", str(ROOT), "curl", "-sS", "-f", "-x", "http://127.0.0.1:8098", *more], stdout=subprocess.PIPE
    )
    download = curl("-o", "/tmp/slow.bin", url)
    time.sleep(2)
    got = (ROOT / "tmp/slow.bin").stat().st_size
    assert 0 < got < len(BODY), got
    install(NEW)
    print("upgraded:", inside("dpkg-query", "-W", "larder").strip(), f"with {got} of {len(BODY)} bytes downloaded")
    daemon.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    # the old one drains: whoever comes now waits in the socket for the new one
    waiting = curl("-o", "/tmp/second.bin", "-w", "%{http_code} after %{time_total} s", url)
    assert daemon.wait(60) == 0
    daemon = manager.start()
    assert download.wait(60) == 0 and (ROOT / "tmp/slow.bin").read_bytes() == BODY, "the client is unharmed"
    said = waiting.communicate(timeout=60)[0].decode()
    assert waiting.returncode == 0 and (ROOT / "tmp/second.bin").read_bytes() == BODY
    print("the download ended whole; who came meanwhile:", said)
    status = curl("-o", "/dev/null", "-D", "-", url).communicate(timeout=60)[0].decode()
    assert "hit" in status, status
    daemon.send_signal(signal.SIGTERM)
    assert daemon.wait(60) == 0

    inside("dpkg", "--remove", "larder")
    assert (ROOT / "etc/larder/larder.toml").exists() and (ROOT / "var/cache/larder").exists(), "remove keeps"
    inside("dpkg", "--purge", "larder")
    after = tree()
    new = sorted(path for path in after if path not in before)
    changed = sorted(path for path in before if path in after and before[path] != after[path] and not path.endswith("-"))
    new = [path for path in new if not path.endswith("-")]
    gone = sorted(path for path in before if path not in after)
    assert not new and not changed and not gone, (new, changed, gone)
    assert "larder" not in (ROOT / "etc/passwd").read_text() + (ROOT / "etc/group").read_text()
    print("purged: nothing is left")


if __name__ == "__main__":
    try:
        main()
    finally:
        for daemon in Manager.started:
            if daemon.poll() is None:
                daemon.kill()
