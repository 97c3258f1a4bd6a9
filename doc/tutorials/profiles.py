"""Serves the newest profile of a folder over HTTP, as Go's net/http/pprof serves its own.

    profiles.py FOLDER [PORT]

http://localhost:6060/debug/pprof/allocs, and each other path, is the newest *.pb.gz that cmttrace --pprof has written.
"""
import http.server
import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
port = int(sys.argv[2]) if len(sys.argv) > 2 else 6060


class Newest(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        for _ in range(10):  # the newest may be removed before it is read
            files = sorted(folder.glob("*.pb.gz"), key=lambda file: file.stat().st_mtime_ns)
            try:
                profile = files[-1].read_bytes()
            except (IndexError, FileNotFoundError):
                continue
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(len(profile)))
            self.end_headers()
            self.wfile.write(profile)
            return
        self.send_error(404, "no profile yet")


http.server.ThreadingHTTPServer(("", port), Newest).serve_forever()
