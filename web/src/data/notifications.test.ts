import { expect, test, vi } from 'vitest';

vi.mock('./account', () => ({}));
vi.mock('./live', () => ({}));
vi.mock('./preferences', () => ({}));

const { isNews } = await import('./notifications');

const now = Date.parse('2026-11-16T12:00:00Z');
const run = { status: 'succeeded' as const, uid: 'me', finished: '2026-11-16T11:59:50Z' };

test('isNews is true for a run of the person that has just ended', () => {
  expect(isNews(run, 'me', now)).toBe(true);
  expect(isNews({ ...run, status: 'failed' }, 'me', now)).toBe(true);
});

test('isNews is false for runs of others, runs that go on, and runs of long ago', () => {
  expect(isNews({ ...run, uid: 'other' }, 'me', now)).toBe(false);
  expect(isNews({ ...run, status: 'pending', finished: null }, 'me', now)).toBe(false);
  expect(isNews({ ...run, finished: '2026-11-16T11:50:00Z' }, 'me', now)).toBe(false);
});
