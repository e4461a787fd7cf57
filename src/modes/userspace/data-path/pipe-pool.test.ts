import { expect, test } from "vitest";
import { readdirSync } from "node:fs";
import { PipePool } from "./pipe-pool.ts";

function countFds(): number {
  return readdirSync("/proc/self/fd").length;
}

test("pipes leave a quarter of the file descriptors to connections", () => {
  const before = countFds();
  const highest = Math.max(...readdirSync("/proc/self/fd").map(Number));
  const pool = new PipePool(2 * highest + 16);
  const pipe = pool.take();
  expect(pipe).toBeDefined();
  const short = new PipePool(Math.floor((pipe!.writeFd * 4) / 3));
  expect(short.take()).toBeUndefined();
  pool.giveBack(pipe!);
  pool.dispose();
  expect(countFds()).toBe(before);
});
