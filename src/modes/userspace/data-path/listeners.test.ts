import { createServer } from "node:net";
import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { InlineDataPath } from "../../../../test/support/inline-data-path.ts";
import { Listeners, type ListenersOptions, type Wanted } from "./listeners.ts";
import type { SeenAs } from "../plan/entrance.ts";

const NODE: ReadonlySet<SeenAs> = new Set(["node"]);

function wanted(name: string): Wanted {
  const backends = [{ ip: "127.0.0.1", port: 9 }];
  return {
    name,
    protocol: "TCP",
    backends,
    affinitySeconds: undefined,
    seenAs: NODE,
    preferredPort: () => undefined,
  };
}

describe("Listeners", () => {
  let path: InlineDataPath;
  let taken: ReturnType<typeof createServer>;
  let port: number;

  beforeEach(async () => {
    path = new InlineDataPath();
    taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    port = (taken.address() as { port: number }).port;
  });
  afterEach(() => {
    taken.close();
    path[Symbol.dispose]();
  });

  function open(options: Partial<ListenersOptions> = {}): Listeners {
    const range = { first: port, last: port };
    const listeners = new Listeners({
      family: 4,
      plane: path.plane,
      range,
      ephemeral: range,
      ...options,
    });
    listeners.moveTo("127.0.0.1");
    return listeners;
  }

  test("a range that is used up is not searched for each service again, until there is reason to", async () => {
    const listeners = open();
    const reason = `no port of the range ${port}-${port} is free`;
    expect([...listeners.serve(wanted("a")).values()]).toEqual([reason]);
    taken.close();
    await once(taken, "close");
    // It is free by now, which is not looked at.
    expect([...listeners.serve(wanted("b")).values()]).toEqual([reason]);
    listeners.lookForPorts();
    expect([...listeners.serve(wanted("b")).values()]).toEqual([]);
    // A door of its own that is shut is a reason, too.
    expect([...listeners.serve(wanted("a")).values()]).toEqual([reason]);
    listeners.keep("b", new Set());
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect([...listeners.serve(wanted("a")).values()]).toEqual([]);
  });

  test("doors leave file descriptors to the rest of the process", () => {
    const refused = open({ range: undefined, endFd: () => 3 }).serve(
      wanted("a"),
    );
    expect([...refused.values()]).toEqual(["Cannot open a socket: EMFILE"]);
  });
});
