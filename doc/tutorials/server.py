"""A server whose memory grows: it keeps the page of each visitor, and drops none."""
import http.server
import threading
import urllib.request

rows = [{"name": f"row {number}", "price": number * 7 % 100} for number in range(200)]
pages = {}


def load_rows(first):
    return [dict(row, name=row["name"].upper()) for row in rows[first:first + 60]]


def render(visitor, shown):
    items = "".join(f"<li>{row['name']}: {row['price']}</li>" for row in shown)
    return f"<h1>Hello, {visitor}</h1><ul>{items}</ul>".encode()


def answer(path):
    if path not in pages:
        pages[path] = render(path, load_rows(len(path) * 7 % 140))
    return pages[path]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        page = answer(self.path)
        self.send_response(200)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *arguments):
        pass


def visit(server):
    """Its visitors, for this example: each comes once."""
    number = 0
    while True:
        number += 1
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/visitor/{number}") as page:
            page.read()


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=visit, args=[server], daemon=True).start()
server.serve_forever()
