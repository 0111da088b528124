// Where hosts wait for the browser: one https server for the callbacks of hosted ones, and http servers for programs.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";

export class Callbacks {
  static async listening(secure) {
    const work = process.env.BROWSER_WORK;
    const pair = { key: readFileSync(`${work}/key.pem`), cert: readFileSync(`${work}/certificate.pem`) };
    const callbacks = new Callbacks();
    const answer = (request, response) => callbacks.#came(request, response);
    callbacks.server = secure ? https.createServer(pair, answer) : http.createServer(answer);
    // By every name this machine has, so that `localhost` is found whichever address the browser tries first.
    callbacks.server.listen(0);
    await once(callbacks.server, "listening");
    callbacks.port = callbacks.server.address().port;
    return callbacks;
  }

  seen = [];
  /** What came with each request. */
  heard = [];

  #came(request, response) {
    this.seen.push(request.url);
    this.heard.push(request.headers);
    if (request.url.startsWith("/lure")) {
      const host = new URL(process.env.BROWSER_CONSOLE).hostname;
      response.writeHead(302, { location: `http://${host}:${this.port}/caught` }).end();
      return;
    }
    response.setHeader("content-type", "text/html; charset=utf-8");
    response.end("<!doctype html><html lang=en><title>Back</title><h1>Back at the application</h1>");
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }
}
