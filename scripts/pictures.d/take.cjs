// Takes the pictures: the console and a consent from a running server, and terminal sessions from what they printed.
// node take.cjs SIGN-IN-LINK FOLDER-OF-SESSIONS FOLDER-OF-PICTURES FOLDER-OF-ALL-PAGES
const { createHash, randomBytes } = require("node:crypto");
const { mkdtempSync, readFileSync } = require("node:fs");
const { join } = require("node:path");
const { chromium } = require("playwright-core");

const [link, sessions, pictures, all] = process.argv.slice(2);
// Pages are at the link's host; applications ask at the address of the server.
const origin = `http://127.0.0.1:${new URL(link).port}`;

// What our program writes for a terminal, and nothing else of it.
const colours = { 1: "font-weight:600", 2: "color:#8b949e", 31: "color:#ff7b72", 32: "color:#7ee787", 33: "color:#f2cc60", 36: "color:#79c0ff" };

function html(text) {
  const escaped = (part) => part.replace(/&/g, "&amp;").replace(/</g, "&lt;");
  let open = false;
  return text.replace(/\r/g, "").split(/(\x1b\[[0-9;]*m)/).map((part) => {
    const code = part.match(/^\x1b\[([0-9;]*)m$/);
    if (!code) return escaped(part);
    const styles = code[1].split(";").map((one) => colours[one]).filter(Boolean);
    const close = open ? "</span>" : "";
    open = styles.length > 0;
    return close + (open ? `<span style="${styles.join(";")}">` : "");
  }).join("") + (open ? "</span>" : "");
}

function terminal(text) {
  return `<!doctype html><meta charset="utf-8"><style>
    body { margin: 0; display: inline-block; background: #0d1117; }
    pre { margin: 0; padding: 18px 22px; color: #e6edf3; font: 13px/1.5 "DejaVu Sans Mono", monospace; }
  </style><pre>${html(text.trimEnd())}</pre>`;
}

async function consent(page) {
  const redirect = "http://127.0.0.1:9/callback";
  const registered = await page.request.post(`${origin}/oauth/register`, {
    data: { client_name: "Claude Code", redirect_uris: [redirect], token_endpoint_auth_method: "none" },
  });
  const client = await registered.json();
  const challenge = createHash("sha256").update(randomBytes(32).toString("hex")).digest("base64url");
  const asked = new URLSearchParams({
    response_type: "code", client_id: client.client_id, redirect_uri: redirect, state: "s",
    code_challenge: challenge, code_challenge_method: "S256", resource: `${origin}/mcp`,
  });
  await page.goto(`${origin}/oauth/authorize?${asked}`);
}

async function main() {
  const browser = await chromium.launchPersistentContext(mkdtempSync(join(sessions, "chromium-")), {
    executablePath: process.env.CHROMIUM,
    viewport: { width: 1180, height: 800 },
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync"],
  });
  const page = await browser.newPage();
  const take = (name, options) => page.screenshot({ path: join(pictures, `${name}.png`), ...options });

  await page.setContent(terminal(readFileSync(join(sessions, "search.ansi"), "utf8")));
  await (await page.$("body")).screenshot({ path: join(pictures, "search.png") });

  await page.goto(link);
  await page.click("button.main");
  await consent(page);
  for (const [source, stream] of [["Mara's notes", "notes/notes"], ["Mara's work mail", "mail-work/messages"]]) {
    await page.locator("details.source > summary", { hasText: source }).click();
    await page.locator(`input[value="${stream}"]`).check();
  }
  await page.locator("button.main", { hasText: "Review" }).click();
  await take("consent");
  // The answer goes to a program that is not there.
  await page.locator("button.main", { hasText: "Allow" }).click().catch(() => {});
  await page.waitForTimeout(500);
  const pages = new URL(link).origin;
  await page.goto(`${pages}/`);
  await take("console");
  await page.goto(`${pages}/search?q=bridge+vendor`);
  await take("find");
  await page.locator(".hits a").first().click();
  await take("record");
  const record = new URL(page.url()).pathname;
  await page.goto(`${pages}/grants`);
  const grant = await page.locator("article h3 a").first().getAttribute("href");
  // Every page, to be looked at before it is called done.
  const paths = ["/", "/search", "/search?q=bridge+vendor", "/search?q=brigde", "/search?q=zzzz", "/browse", "/browse/mail-work/messages", "/browse/bank/transactions", "/timeline", record, `${record}/delete`,
    "/grants", grant, `${grant}/activity`, `${grant}/end`, `/?as=${grant.split("/").pop()}`, "/grants/new", "/import", "/connections", "/connections/mail-work", "/sessions", "/settings", "/device", "/nowhere"];
  const views = async (name) => {
    for (const [width, colorScheme] of [[390, "light"], [390, "dark"], [1280, "light"], [1280, "dark"]]) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: join(all, `${name}-${width}-${colorScheme}.png`), fullPage: true });
    }
  };
  for (const path of paths) {
    await page.goto(`${pages}${path}`);
    const name = path.replace(record, "/record").replace(grant, "/grant").replace(grant.split("/").pop(), "grant");
    await views(name.slice(1).replace(/[^a-z-]+/g, "-") || "overview");
  }
  await consent(page);
  await views("consent");
  await page.locator("details.source > summary").first().click();
  await page.locator("input[name=stream]").first().check();
  await page.locator("button.main", { hasText: "Review" }).click();
  await views("consent-review");
  await browser.clearCookies();
  await page.goto(`${pages}/sign-in`);
  await views("sign-in");
  await browser.close();
}

main().catch((error) => { console.error(error); process.exit(1); });
