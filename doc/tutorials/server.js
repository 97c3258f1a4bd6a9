// A server whose memory grows: it keeps the page of each visitor, and drops none.
const http = require("http");

const pages = new Map();

function render(name) {
  return Buffer.alloc(20000, `<p>Hello, ${name}</p>`);
}

function answer(name) {
  if (!pages.has(name)) pages.set(name, render(name));
  return pages.get(name);
}

const server = http.createServer((request, response) => response.end(answer(request.url)));

// Its visitors, for this example: 2,000 of them, one after another. Then somebody stops the server.
function visit(number) {
  if (number === 2000) return process.kill(process.pid, "SIGTERM");
  http.get({ host: "127.0.0.1", port: server.address().port, path: `/visitor${number}`, agent: false }, (response) => {
    response.resume().on("end", () => visit(number + 1));
  });
}

server.listen(0, "127.0.0.1", () => visit(0));
