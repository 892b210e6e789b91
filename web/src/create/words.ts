import type { Run } from '../data/runs';
import { text } from '../text/create';

/** secondsLeft guesses how long a running run still takes; null if nothing is known. */
export function secondsLeft(run: Run, now: number): number | null {
  if (run.stage !== 'running' || run.started === null) {
    return null;
  }
  const elapsed = (now - new Date(run.started).getTime()) / 1000;
  if (run.progress !== null && run.progress > 0.05 && elapsed > 1) {
    return Math.max(0, (elapsed / run.progress) * (1 - run.progress));
  }
  return run.estimated_seconds === null ? null : Math.max(0, run.estimated_seconds - elapsed);
}

/** stateWords says what a run does now or what it cost, in the parts of a line. */
export function stateWords(run: Run, now: number): string[] {
  if (run.status !== 'pending') {
    return [text.cost(run.tokens_charged + run.free_allowance_used)];
  }
  if (run.stage !== 'running') {
    return run.tokens_held > 0 ? [text.held(run.tokens_held)] : [];
  }
  const left = secondsLeft(run, now);
  const state = run.progress === null ? text.running : text.runningPart(Math.round(run.progress * 100));
  if (left === null) {
    return [state];
  }
  return [state, left < 1 ? text.finishing : text.aboutLeft(left)];
}

/** partOf returns how much of one of several results is done, if the run's progress counts them one after the other. */
export function partOf(progress: number | null, at: number, count: number): number | null {
  if (progress === null) {
    return null;
  }
  return Math.min(1, Math.max(0, progress * count - at));
}

/** nameOf returns what a run is called: its prompt, or else its tool. */
export function nameOf(run: Run): string {
  return run.prompt || text.unnamed(run.tool_name);
}
