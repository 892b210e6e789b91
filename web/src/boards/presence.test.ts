import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Presence, PresenceSender } from './presence';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const bert = { uid: 'bert', name: 'bert', cursor: null, selected: ['node'] };
const anna = { uid: 'anna', name: 'anna', cursor: null, selected: ['mine'] };

describe('Presence', () => {
  it('shows what others hold, and for a moment what they changed', () => {
    const presence = new Presence('anna', (id) => `key-${id}`);
    presence.setPeople([anna, bert]);
    expect(presence.haloOf('key-node')).toMatchObject({ name: 'bert', verb: 'holds' });
    expect(presence.haloOf('key-mine')).toBeUndefined();

    presence.noteChange('key-other', 'bert');
    presence.noteChange('key-mine', 'anna');
    expect(presence.haloOf('key-other')).toMatchObject({ name: 'bert', verb: 'changed' });
    expect(presence.haloOf('key-mine')).toBeUndefined();
    vi.advanceTimersByTime(8000);
    expect(presence.haloOf('key-other')).toBeUndefined();
    presence.stop();
  });
});

describe('PresenceSender', () => {
  it('sends five times a second at most, and only while there are others', () => {
    const sent: unknown[] = [];
    let others = false;
    const sender = new PresenceSender(
      (shown) => sent.push(shown),
      () => others,
    );
    sender.show({ cursor: { x: 1, y: 1 } });
    expect(sent).toHaveLength(0);
    others = true;
    for (let step = 0; step < 60; step++) {
      sender.show({ cursor: { x: step, y: 0 } });
      vi.advanceTimersByTime(1000 / 60);
    }
    expect(sent.length).toBeLessThanOrEqual(6);
    vi.advanceTimersByTime(500);
    expect(sent.at(-1)).toMatchObject({ cursor: { x: 59, y: 0 } });
    sender.stop();
  });
});
