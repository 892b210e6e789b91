import { expect, test } from 'vitest';
import { EventParser } from './events';

const stream = ': hello\n\nid: 4\nevent: progress\ndata: {"progress":0.4}\n\nid: 5\nevent: note\ndata: a\ndata: b\n\n';

test('events are the same wherever the stream is cut', () => {
  for (let cut = 0; cut <= stream.length; cut++) {
    const parser = new EventParser();
    const events = [...parser.push(stream.slice(0, cut)), ...parser.push(stream.slice(cut))];

    expect(events).toEqual([
      { id: '4', event: 'progress', data: '{"progress":0.4}' },
      { id: '5', event: 'note', data: 'a\nb' },
    ]);
  }
});

test('an unfinished event is kept for later', () => {
  const parser = new EventParser();

  expect(parser.push('id: 1\ndata: x\n')).toEqual([]);
  expect(parser.push('\n')).toEqual([{ id: '1', event: 'message', data: 'x' }]);
});
