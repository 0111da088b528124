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
