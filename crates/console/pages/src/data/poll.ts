// Asks again and again, but not while nobody sees the page.

/** Asks at once, and then `ms` after each answer, until the signal; not while the page is hidden. */
export async function poll(ask: () => Promise<unknown>, ms: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await shown(signal);
    if (signal.aborted) return;
    await ask();
    await pause(ms, signal);
  }
}

/** Waits until somebody can see the page, or until the signal. */
export function shown(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const look = (): void => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      signal.removeEventListener("abort", look);
      done();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look);
    look();
  });
}

/** Waits for so long, or until the signal. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      done();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}
