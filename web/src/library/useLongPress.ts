import { type PointerEvent, useMemo, useRef } from 'react';

const pressMs = 450;
const tolerance = 10;

/** useLongPress calls a function when a finger rests on something. The click that follows is to be ignored if `wasLong` says so. */
export function useLongPress(onLong: (target: EventTarget) => void) {
  const latest = useRef(onLong);
  latest.current = onLong;
  const press = useRef({ timer: 0, x: 0, y: 0, long: false });

  return useMemo(() => {
    const stop = () => clearTimeout(press.current.timer);
    const listeners = {
      onPointerDown: (event: PointerEvent) => {
        const { target, clientX, clientY } = event;
        press.current.long = false;
        if (event.pointerType !== 'touch') {
          return;
        }
        press.current.x = clientX;
        press.current.y = clientY;
        stop();
        press.current.timer = window.setTimeout(() => {
          press.current.long = true;
          latest.current(target);
        }, pressMs);
      },
      onPointerMove: (event: PointerEvent) => {
        const { x, y } = press.current;
        if (Math.abs(event.clientX - x) > tolerance || Math.abs(event.clientY - y) > tolerance) {
          stop();
        }
      },
      onPointerUp: stop,
      onPointerCancel: stop,
    };

    return { listeners, wasLong: () => press.current.long };
  }, []);
}
