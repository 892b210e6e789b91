import { describe, expect, test } from 'vitest';
import type { Run } from '../data/runs';
import { text } from '../text/create';
import { partOf, secondsLeft, stateWords } from './words';

const now = Date.parse('2026-11-16T10:00:10Z');
const run = {
  status: 'pending',
  stage: 'running',
  progress: null,
  started: '2026-11-16T10:00:00Z',
  estimated_seconds: 14,
  tokens_held: 4,
  tokens_charged: 0,
  free_allowance_used: 0,
} as unknown as Run;

describe('the queue in words', () => {
  test('places are ordinals, and numbers once they are far', () => {
    expect(text.queuePlace(1)).toBe('Next in the queue');
    expect(text.queuePlace(3)).toBe('Third in the queue');
    expect(text.queuePlace(10)).toBe('Tenth in the queue');
    expect(text.queuePlace(14)).toBe('Number 14 in the queue');
    expect(text.queuePlace(null)).toBe('In the queue');
  });

  test('it says how long the run takes where that is known', () => {
    expect(text.queueHint(20)).toBe('Takes about 20 s once it starts. You can leave this page.');
    expect(text.queueHint(null)).toBe('You can leave this page; the run goes on.');
  });
});

describe('the state of a run', () => {
  test('the time left follows the progress, or else the usual time', () => {
    expect(secondsLeft({ ...run, progress: 0.5 }, now)).toBe(10);
    expect(secondsLeft(run, now)).toBe(4);
    expect(secondsLeft({ ...run, estimated_seconds: 3 }, now)).toBe(0);
    expect(secondsLeft({ ...run, estimated_seconds: null }, now)).toBeNull();
    expect(secondsLeft({ ...run, stage: 'queued' }, now)).toBeNull();
  });

  test('a line says what goes on', () => {
    expect(stateWords({ ...run, progress: 0.5 }, now)).toEqual(['running, 50 %', 'about 10 s left']);
    expect(stateWords({ ...run, estimated_seconds: null }, now)).toEqual(['running']);
    expect(stateWords({ ...run, stage: 'queued' }, now)).toEqual(['4 tokens held']);
    expect(stateWords({ ...run, status: 'succeeded', tokens_charged: 1 }, now)).toEqual(['1 token']);
    expect(stateWords({ ...run, status: 'failed' }, now)).toEqual(['cost nothing']);
  });

  test('progress is spread over the results', () => {
    expect([0, 1, 2, 3].map((at) => partOf(0.375, at, 4))).toEqual([1, 0.5, 0, 0]);
    expect(partOf(null, 0, 4)).toBeNull();
  });
});
