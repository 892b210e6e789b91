import { useLayoutEffect, useRef } from 'react';

/** KeyMap names what keys do, such as `Ctrl+K`, `Shift+ArrowUp`, `g c` (one after the other) or `f`. */
export type KeyMap = Record<string, (event: KeyboardEvent) => void>;

type KeyOptions = {
  enabled?: boolean;
  /** Whether single letters count; combinations and named keys always do. */
  letters?: boolean;
};

const sequenceTime = 1200;

// What all listeners of the page share: the maps that listen, and the last key of each before the current one.
const active = new Set<{ current: KeyMap }>();
let last: { event: KeyboardEvent | undefined; key: string; before: string } = { event: undefined, key: '', before: '' };

/** noteKey remembers a key once, however many listeners see its event, and returns it with the key before it. */
function noteKey(event: KeyboardEvent): { name: string; pair: string } {
  if (last.event !== event) {
    const name = nameOf(event);
    const recent = last.event && event.timeStamp - last.event.timeStamp < sequenceTime;
    last = { event, key: name, before: recent ? last.key : '' };
  }
  return { name: last.key, pair: last.before ? `${last.before} ${last.key}` : '' };
}

/** nameOf writes a key event in the form of a KeyMap. */
export function nameOf(event: Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey' | 'shiftKey'>): string {
  const key = event.key === ' ' ? 'Space' : event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const control = event.ctrlKey || event.metaKey;
  const shift = event.shiftKey && (event.key.length > 1 || control || event.altKey || /[a-z]/i.test(event.key));

  return [control && 'Ctrl', event.altKey && 'Alt', shift && 'Shift', key].filter(Boolean).join('+');
}

/** isTyping reports whether the event belongs to an input in which letters are text. */
export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target instanceof HTMLTextAreaElement ||
      target instanceof HTMLSelectElement ||
      (target instanceof HTMLInputElement && !['checkbox', 'radio', 'range', 'button'].includes(target.type)))
  );
}

/**
 * useKeys listens to keys while a component is shown. Inside of inputs only combinations with Ctrl and Escape count. Like the
 * other listeners for keys, pastes and drops, it begins before the component is painted: a key that is pressed as soon as a
 * dialog is seen counts.
 */
export function useKeys(map: KeyMap, { enabled = true, letters = true }: KeyOptions = {}): void {
  const latest = useRef(map);
  latest.current = map;

  useLayoutEffect(() => {
    if (!enabled) {
      return;
    }

    const listen = (event: KeyboardEvent) => {
      const { name, pair } = noteKey(event);
      if (event.defaultPrevented || event.isComposing) {
        return;
      }
      const typing = isTyping(event.target);
      if (typing && !name.startsWith('Ctrl+') && name !== 'Escape') {
        return;
      }
      const single = name.length === 1 || (name.startsWith('Shift+') && name.length === 7);
      if (single && !letters) {
        return;
      }

      // The second key of a sequence belongs to it, whoever listens to the sequence.
      const inSequence = [...active].some((one) => one.current[pair]);
      const act = inSequence ? latest.current[pair] : latest.current[name];
      if (act) {
        event.preventDefault();
        act(event);
      }
    };

    active.add(latest);
    addEventListener('keydown', listen);
    return () => {
      active.delete(latest);
      removeEventListener('keydown', listen);
    };
  }, [enabled, letters]);
}
