/** History is what was, what is, and what was taken back. */
export type History<T> = { past: T[]; present: T; future: T[]; mark?: string; at: number };

const longest = 200;
const mergeTime = 800;

/** beginHistory starts with a state that cannot be taken back. */
export const beginHistory = <T>(present: T): History<T> => ({ past: [], present, future: [], at: 0 });

/** record adds a state. States with the same mark in short order, such as letters of a word, are taken back together. */
export function record<T>(history: History<T>, next: T, mark?: string, now = Date.now()): History<T> {
  if (next === history.present) {
    return history;
  }
  const merged = mark !== undefined && history.mark === mark && now - history.at < mergeTime;
  const past = merged ? history.past : [...history.past, history.present].slice(-longest);

  return { past, present: next, future: [], mark, at: now };
}

/** undo goes back by one state. */
export function undo<T>(history: History<T>): History<T> {
  const before = history.past.at(-1);
  if (before === undefined) {
    return history;
  }
  return { past: history.past.slice(0, -1), present: before, future: [history.present, ...history.future], at: 0 };
}

/** redo makes again what was taken back last. */
export function redo<T>(history: History<T>): History<T> {
  const [next, ...future] = history.future;
  if (next === undefined) {
    return history;
  }
  return { past: [...history.past, history.present], present: next, future, at: 0 };
}
