// Tests of pages share this: a browser, and checks that are counted. NODE_PATH names node_modules, BROWSER the browser.
import path from "node:path";
import {createRequire} from "node:module";

const require = createRequire(path.join(process.env.NODE_PATH, "browser.mjs"));
const {default: puppeteer} = await import(require.resolve("puppeteer-core"));

const patience = 300_000;  // of a machine that has much else to do
let failed = false;

export const check = (truth, words) => {
  if (truth) return;
  console.error(words);
  failed = true;
};

export const browser = await puppeteer.launch({executablePath: process.env.BROWSER, headless: true, timeout: patience, protocolTimeout: patience, args: ["--no-sandbox", "--disable-gpu"]});

/// A new page, whose messages and errors are faults of `name`, and the addresses that it asks for.
export const openPage = async (name, size) => {
  const page = await browser.newPage();
  page.setDefaultTimeout(patience);
  await page.setViewport(size);
  const requests = [];
  // Chromium advises against a test's own reading of pixels.
  page.on("console", (message) => check(message.text().startsWith("Canvas2D: Multiple readback"), `${name}: console: ${message.text()}`));
  page.on("pageerror", (error) => check(false, `${name}: ${error.message}`));
  page.on("request", (request) => { if (request.url() !== "about:blank") requests.push(request.url()); });
  return {page, requests};
};

/// Only scripts of the page may run: a script that is added later does not.
export const checkPolicy = async (page, name) => {
  page.removeAllListeners("console");
  await page.evaluate(() => {
    window.ran ??= false;
    const script = document.createElement("script");
    script.textContent = "window.ran = true";
    document.body.appendChild(script);
  });
  check(!(await page.evaluate(() => window.ran)), `${name}: the content policy lets foreign scripts run`);
};

export const finish = async () => {
  await browser.close();
  process.exit(failed ? 1 : 0);
};
