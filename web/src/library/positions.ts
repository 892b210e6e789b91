// Where each list was left: the first item in view, and how far its row was scrolled out of view. It lasts as long as the tab.

export type Position = { index: number; offset: number };

const storageKey = 'atelier-library-positions';
const most = 30;

function readAll(): Array<[string, Position]> {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(storageKey) ?? '[]');

    return Array.isArray(stored) ? (stored as Array<[string, Position]>) : [];
  } catch {
    return [];
  }
}

/** readPosition returns where a list was left, or its beginning. */
export function readPosition(list: string): Position {
  return readAll().find(([name]) => name === list)?.[1] ?? { index: 0, offset: 0 };
}

/** savePosition notes where a list is. */
export function savePosition(list: string, position: Position): void {
  const others = readAll().filter(([name]) => name !== list);
  sessionStorage.setItem(storageKey, JSON.stringify([[list, position], ...others].slice(0, most)));
}
