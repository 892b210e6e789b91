import { expect, test } from 'vitest';
import { ApiError } from '../api/errors';
import { countIn, problemsOf } from './useToolForm';

test('the number of results stays within the limits of the tool', () => {
  const tool = { num_results: { min: 2, max: 4, default: 3 } };

  expect(countIn(tool, undefined)).toBe(3);
  expect(countIn(tool, 9)).toBe(4);
  expect(countIn(tool, 1)).toBe(2);
  expect(countIn({ num_results: null }, 4)).toBe(1);
});

test('refused inputs are put at their fields', () => {
  const fields = [
    { path: 'inputs.prompt', message: 'Give a prompt.' },
    { path: 'inputs.pictures[1]', message: 'This upload does not exist.' },
    { path: 'num_results', message: 'Too many.' },
  ];
  const body = { code: 'INVALID_REQUEST', message: 'No.', retryable: false, details: { fields }, trace_id: 't' };

  expect(problemsOf(new ApiError(400, body as never, undefined))).toEqual({
    prompt: 'Give a prompt.',
    pictures: 'This upload does not exist.',
  });
  expect(problemsOf(new TypeError('offline'))).toEqual({});
});
