// The stream of documents, and whether anybody still answers.

import { hearTime } from "./format.js";

const SILENT_MS = 8_000; // the server says something each 5 s
const AGAIN_MS = [300, 1_000, 2_000, 3_000];

/** Listens to one pipeline until it is stopped. `lost` is given the time of the last sign of life. */
export class Feed {
  constructor(index, { page, alive, lost, refused }) {
    this.url = `/api/p/${index}/events`;
    this.on = { page, alive, lost, refused };
    this.stopped = false;
    this.heardMs = Date.now();
    this.failures = 0;
    this.listen();
  }

  stop() {
    this.stopped = true;
    this.abort?.abort();
  }

  async listen() {
    while (!this.stopped) {
      try {
        await this.once();
      } catch (error) {
        if (this.stopped) return;
      }
      if (this.stopped) return;
      if (this.failures > 0) this.on.lost(this.heardMs);
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS[Math.min(this.failures, AGAIN_MS.length - 1)]));
      this.failures += 1;
    }
  }

  async once() {
    this.abort = new AbortController();
    let timer = setTimeout(() => this.silent(), SILENT_MS);
    try {
      const answer = await fetch(this.url, { signal: this.abort.signal, cache: "no-store" });
      if (answer.status === 401) {
        this.stopped = true;
        this.on.refused();
        return;
      }
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(() => this.silent(), SILENT_MS);
        this.heard();
        const blocks = (rest + value).split("\n\n");
        rest = blocks.pop();
        for (const block of blocks) this.block(block);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  heard() {
    this.heardMs = Date.now();
    this.failures = 0;
    this.on.alive();
  }

  silent() {
    this.failures = Math.max(this.failures, 1);
    this.on.lost(this.heardMs);
    this.abort.abort();
  }

  block(text) {
    for (const line of text.split("\n")) {
      if (line.startsWith(": now ")) hearTime(Number(line.slice(6)));
      else if (line.startsWith("data: ")) this.on.page(JSON.parse(line.slice(6)));
    }
  }
}
