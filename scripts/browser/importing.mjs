// The owner brings data in without a terminal: exports are uploaded, recognised, tried and imported, and what they hold is found.
import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const EXPORTS = join(process.cwd(), "crates/ingest/tests/exports");
/** One file of each kind of export that is a file. */
const FILES = [
  "calendar/Family.ics",
  "chatgpt/conversations.json",
  "claude/conversations.json",
  "contacts/contacts.vcf",
  "telegram/result.json",
  "mail/Takeout/Mail/All mail Including Spam and Trash.mbox",
  "whatsapp/WhatsApp Chat - Trip/_chat.txt",
];

async function upload(owner, files) {
  const { page } = owner;
  await page.goto(new URL("/import", process.env.BROWSER_CONSOLE).href);
  await page.getByLabel("Files of an export").setInputFiles(files);
  await owner.press("Look at them");
}

export async function imported(owner) {
  const { page } = owner;
  for (const file of FILES) {
    await upload(owner, [join(EXPORTS, file)]);
    assert.equal(await owner.heading(), "What would be imported", file);
    const tried = await page.locator("ul.figures li").first().innerText();
    assert.match(tried, /^[1-9]\d*\s+new$/, `${file}: ${tried}`);
    await owner.press("Import");
    assert.equal(await owner.heading(), "Imported", file);
    assert.equal(await page.locator("ul.figures li").first().innerText(), tried, `${file}: what was tried is what was done`);
    await page.getByRole("link", { name: "Look at it" }).click();
    assert.ok((await page.locator("main a[href^='/browse/']").count()) > 0, file);
  }
  const folder = mkdtempSync(join(tmpdir(), "no-export-"));
  const nothing = join(folder, "nothing.bin");
  writeFileSync(nothing, Buffer.from([1, 2, 3]));
  await upload(owner, [nothing]);
  assert.equal(await owner.heading(), "Nothing to import");
  return FILES.length;
}

/** A backup is a file that the browser saves. */
export async function saved(owner) {
  const { page } = owner;
  await page.goto(new URL("/settings", process.env.BROWSER_CONSOLE).href);
  const waits = page.waitForEvent("download");
  await owner.press("Download a backup");
  const download = await waits;
  assert.equal(download.suggestedFilename(), "pdpp-backup.tar");
  await download.cancel();
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
  await page.locator("select[name=to0]").selectOption("notes/notes");
  await owner.press("Import");
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
