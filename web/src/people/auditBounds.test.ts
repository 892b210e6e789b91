import { expect, test } from 'vitest';
import { boundsOf } from './auditBounds';

test('boundsOf takes both days in, and nothing else', () => {
  const bounds = boundsOf('2026-11-16', '2026-11-16');
  expect(Date.parse(bounds.end_utc ?? '') - Date.parse(bounds.start_utc ?? '')).toBe(86_400_000);
  expect(boundsOf('', 'nonsense')).toEqual({ start_utc: undefined, end_utc: undefined });
});
