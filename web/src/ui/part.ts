import { lazy } from 'react';

const reloadedKey = 'reloaded';
const firstWait = 500;
const longestWait = 8_000;

/** part is React's lazy by way of loadPart: a component whose code is loaded when it is shown for the first time. */
export const part: typeof lazy = (load) => lazy(() => loadPart(load));

/**
 * loadPart loads code that is not needed at first. While the service cannot be reached it waits and tries again, so that
 * the page stays with all that was done on it. If the service is there and the code is not, the service was upgraded:
 * the page is loaded anew, once.
 */
export async function loadPart<Module>(load: () => Promise<Module>): Promise<Module> {
  for (let wait = firstWait; ; wait = Math.min(wait * 2, longestWait)) {
    try {
      const loaded = await load();
      sessionStorage.removeItem(reloadedKey);
      return loaded;
    } catch (error) {
      if (await serviceAnswers()) {
        return await loadAgain(load, error);
      }
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

/** serviceAnswers reports whether the service can be reached. A proxy in front of a service that is down answers 5xx. */
async function serviceAnswers(): Promise<boolean> {
  try {
    const response = await fetch('/healthz', { cache: 'no-store' });
    return response.ok;
  } catch {
    return false;
  }
}

/** loadAgain tries once more now that the service is there, and loads the page anew if the code is still missing. */
async function loadAgain<Module>(load: () => Promise<Module>, error: unknown): Promise<Module> {
  try {
    await loadMissingStyles();
    return await load();
  } catch {
    if (sessionStorage.getItem(reloadedKey)) {
      throw error;
    }
    sessionStorage.setItem(reloadedKey, '1');
    location.reload();
    return new Promise(() => {});
  }
}

/** loadMissingStyles asks again for style sheets that failed to load; a second import of their part would not. */
async function loadMissingStyles(): Promise<void> {
  const missing = [...document.querySelectorAll<HTMLLinkElement>('link[rel=stylesheet]')].filter((link) => !link.sheet);
  await Promise.all(
    missing.map((link) => {
      const again = link.cloneNode() as HTMLLinkElement;
      return new Promise((resolve, reject) => {
        again.onload = resolve;
        again.onerror = reject;
        link.replaceWith(again);
      });
    }),
  );
}
