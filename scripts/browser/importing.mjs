// The owner brings data in without a terminal: exports are uploaded, recognised, tried and imported, and what they hold is found.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const EXPORTS = join(process.cwd(), "crates/ingest/tests/exports");
/** One file of each kind of export; folders are uploaded as archives. */
const FILES = [
  "calendar/Family.ics",
  "chatgpt/conversations.json",
  "claude/conversations.json",
  "contacts/contacts.vcf",
  "telegram/result.json",
  "mail/Takeout/Mail/All mail Including Spam and Trash.mbox",
  "whatsapp/WhatsApp Chat - Trip/_chat.txt",
  "claude-code/5e551011-0000-4000-8000-000000000001.jsonl",
  "codex/rollout-2025-10-01T09-00-00-0199aaaa-0000-7000-8000-000000000001.jsonl",
  "slack",
  "markdown",
];

/** A file as it is, a folder as an archive. */
function uploadable(name) {
  const path = join(EXPORTS, name);
  if (!statSync(path).isDirectory()) return path;
  const archive = join(mkdtempSync(join(tmpdir(), "export-")), `${name}.zip`);
  execFileSync("python3", ["-m", "zipfile", "-c", archive, path]);
  return archive;
}

/** Waits for a page that refreshes itself to become another. */
async function settled(owner, heading) {
  await owner.page.getByRole("heading", { level: 1, name: heading, exact: true }).waitFor();
}

async function upload(owner, files) {
  const { page } = owner;
  await page.goto(new URL("/import", process.env.BROWSER_CONSOLE).href);
  await page.getByLabel("Files of an export").setInputFiles(files);
  await owner.press("Look at them");
}

export async function imported(owner) {
  const { page } = owner;
  for (const file of FILES) {
    await upload(owner, [uploadable(file)]);
    await settled(owner, "What would be imported");
    const tried = await page.locator("ul.figures li").first().innerText();
    assert.match(tried, /^[1-9]\d*\s+new$/, `${file}: ${tried}`);
    assert.ok((await page.locator("dl.sample").count()) > 0, `${file}: samples are shown`);
    await owner.press("Import");
    await settled(owner, "Imported");
    assert.equal(await page.locator("ul.figures li").first().innerText(), tried, `${file}: what was tried is what was done`);
    await page.getByRole("link", { name: "Look at it" }).click();
    assert.ok((await page.locator("main a[href^='/browse/']").count()) > 0, file);
  }
  await page.goto(new URL("/import", process.env.BROWSER_CONSOLE).href);
  assert.ok((await page.locator("details.report").count()) >= Math.min(FILES.length, 10), "earlier imports are listed");
  const folder = mkdtempSync(join(tmpdir(), "no-export-"));
  const nothing = join(folder, "nothing.bin");
  writeFileSync(nothing, Buffer.from([1, 2, 3]));
  await upload(owner, [nothing]);
  assert.equal(await owner.heading(), "Nothing to import");
  return FILES.length;
}

/** Two windows upload so much that it takes a while: one follows by refreshing the page, one by the script; both are judged on the way. */
export async function followed(owner, judged, judge) {
  const folder = mkdtempSync(join(tmpdir(), "long-"));
  for (const [who, kind] of [[owner, "refreshed"], [judged, "polled"]]) {
    const file = join(folder, `${kind}.mbox`);
    const letter = (n) => `From a@example.test Mon Mar  2 09:00:00 2026\nFrom: A <a@example.test>\nSubject: ${kind} ${n}\nDate: Mon, 02 Mar 2026 09:00:00 +0000\nMessage-ID: <${kind}-${n}@example.test>\n\n${"The quay is closed. ".repeat(20)}\n\n`;
    writeFileSync(file, Array.from({ length: 12_000 }, (_, n) => letter(n)).join(""));
    await upload(who, [file]);
    assert.equal(await who.heading(), "Looking at the files", kind);
    assert.equal(await who.page.locator("[data-live] progress").count(), 1);
    if (who === judged) await judge(who.page, "a try that goes on");
    const address = who.page.url();
    await settled(who, "What would be imported");
    assert.equal(who.page.url(), address, "the page is the same");
    await who.press("Discard");
    assert.equal(await who.heading(), "Import");
  }
}

/** A backup is a file that the browser saves. */
export async function saved(owner) {
  const { page } = owner;
  await page.goto(new URL("/settings", process.env.BROWSER_CONSOLE).href);
  const waits = page.waitForEvent("download");
  await owner.press("Download a backup");
  const download = await waits;
  assert.equal(download.suggestedFilename(), "pdpp-backup.tar");
  await download.saveAs(join(mkdtempSync(join(tmpdir(), "backup-")), "backup.tar"));
  await page.reload();
  assert.match(await page.locator("section", { has: page.locator("#backup") }).innerText(), /The last one was made/);
}

/** A note whose texts try to be more than text, and a word of a megabyte. */
const HOSTILE = {
  id: "hostile <b>&\"'",
  title: "<script>document.title = 'owned'</script> \u202eesrever\u202c " + "x".repeat(3_000),
  folder: "\"><img src=https://evil.example/x.png onerror=alert(1)>",
  tags: ["<svg onload=alert(1)>", "\u2066hidden\u2069"],
  created_at: "2026-03-03T10:00:00Z",
  updated_at: "2026-03-03T10:00:00Z",
  word_count: 2,
  body: `zeppelin [click](javascript:alert(1)) ![](https://evil.example/pixel.png) <iframe src=//evil.example></iframe>\n${"w".repeat(1_000_000)}`,
};

/** Shows the hostile note wherever records are shown: as text, on every width, loading nothing, running nothing. */
export async function hostile(owner, judge) {
  const { page } = owner;
  const folder = mkdtempSync(join(tmpdir(), "hostile-"));
  const file = join(folder, "notes.jsonl");
  writeFileSync(file, `${JSON.stringify(HOSTILE)}\n`);
  await upload(owner, [file]);
  await settled(owner, "What would be imported");
  await judge(page, "what would be imported");
  await page.locator("select[name=to0]").selectOption("notes/notes");
  await owner.press("Import");
  await settled(owner, "Imported");
  await judge(page, "what was imported");
  assert.match(await page.locator("ul.figures li").first().innerText(), /^1\s+new$/);
  const told = [];
  page.on("dialog", (dialog) => told.push(dialog.message()));
  page.on("request", (request) => { if (request.url().includes("evil")) told.push(request.url()); });
  const record = `/records/notes/notes/${encodeURIComponent(HOSTILE.id)}`;
  const paths = [record, "/search?q=zeppelin", "/browse/notes/notes", "/timeline?day=2026-03-03", `${record}/delete`];
  for (const path of paths) {
    await page.goto(new URL(path, process.env.BROWSER_CONSOLE).href);
    assert.ok(!(await page.title()).startsWith("owned"), path);
    assert.ok(!(await page.content()).includes("\u202e"), `${path} turns no text around`);
    await judge(page, path);
  }
  assert.deepEqual(told, [], "nothing ran, and nothing was loaded");
  return paths.length;
}

/** From the overview to a record with the keyboard alone. */
export async function keyboard(owner) {
  const { page } = owner;
  await page.goto(new URL("/", process.env.BROWSER_CONSOLE).href);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the content");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "q");
  await page.keyboard.type("bridge");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/search\?/);
  const focused = () => page.evaluate(() => document.activeElement.getAttribute("href") ?? "");
  for (let steps = 0; steps < 80 && !(await focused()).startsWith("/records/"); steps += 1) await page.keyboard.press("Tab");
  assert.match(await focused(), /^\/records\//);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/records\//);
}
