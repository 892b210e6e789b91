import { type KeyboardEvent, type PointerEvent, type Ref, useImperativeHandle, useRef } from 'react';
import { text } from '../text/library';
import { classes } from '../ui/classes';
import styles from './Scrubber.module.css';
import { labelMonths, type Point, thinOut, timeAt } from './timeline';

/** ScrubberHandle moves the mark without drawing the page anew: it is called at every frame that scrolls. */
export type ScrubberHandle = { move: (part: number, index: number) => void };

type Props = {
  points: Point[];
  total: number;
  height: number;
  onScrub: (part: number) => void;
  ref: Ref<ScrubberHandle>;
};

const thisYear = new Intl.DateTimeFormat(undefined, { weekday: 'long', day: 'numeric', month: 'long' });
const otherYear = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'long', year: 'numeric' });
const margin = 12;
// Labels stand below the place where their month begins, so that the mark at this place does not cross them.
const below = 10;
const showMs = 900;

function dayOf(time: number): string {
  const day = new Date(time);

  return (day.getFullYear() === new Date().getFullYear() ? thisYear : otherYear).format(day);
}

/** showDay writes a day into an element. The day gets a new element each time, since a text that changes its width counts as a shift of the layout. */
function showDay(element: HTMLElement, day: string): void {
  if (element.textContent !== day) {
    const label = document.createElement('span');
    label.textContent = day;
    element.replaceChildren(label);
  }
}

/** Scrubber is the timeline at the side: months and years, a mark where the view is, and its date while it moves. */
export function Scrubber({ points, total, height, onScrub, ref }: Props) {
  const track = useRef<HTMLDivElement>(null);
  const mark = useRef<HTMLElement>(null);
  const date = useRef<HTMLSpanElement>(null);
  const timer = useRef(0);
  const way = Math.max(1, height - 2 * margin - below);
  const labels = thinOut(labelMonths(points, total), way, 26);

  useImperativeHandle(
    ref,
    () => ({
      move: (part, index) => {
        const at = margin + part * way;
        const time = timeAt(points, index);
        const day = time === undefined ? '' : dayOf(time);
        if (mark.current && date.current && track.current) {
          mark.current.style.transform = `translateY(${at}px)`;
          date.current.style.transform = `translateY(${at}px)`;
          showDay(date.current, day);
          date.current.dataset.shown = day ? 'yes' : '';
          track.current.setAttribute('aria-valuenow', String(Math.round(part * 100)));
          track.current.setAttribute('aria-valuetext', day);
        }
        clearTimeout(timer.current);
        timer.current = window.setTimeout(() => {
          if (date.current) {
            date.current.dataset.shown = '';
          }
        }, showMs);
      },
    }),
    [points, way],
  );

  const scrub = (event: PointerEvent) => {
    const top = track.current?.getBoundingClientRect().top ?? 0;
    onScrub(Math.min(1, Math.max(0, (event.clientY - top - margin) / way)));
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const now = Number(track.current?.getAttribute('aria-valuenow') ?? 0) / 100;
    const parts: Record<string, number> = {
      ArrowDown: now + 0.02,
      ArrowUp: now - 0.02,
      PageDown: now + 0.1,
      PageUp: now - 0.1,
      Home: 0,
      End: 1,
    };
    const next = parts[event.key];
    if (next !== undefined) {
      event.preventDefault();
      onScrub(Math.min(1, Math.max(0, next)));
    }
  };

  return (
    <>
      <span ref={date} className={styles.date} aria-hidden="true" />
      <div
        ref={track}
        role="slider"
        tabIndex={0}
        aria-label={text.timeline}
        aria-orientation="vertical"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={0}
        className={styles.track}
        onKeyDown={onKeyDown}
        onPointerDown={(event) => {
          event.preventDefault();
          event.currentTarget.setPointerCapture(event.pointerId);
          scrub(event);
        }}
        onPointerMove={(event) => {
          if (event.currentTarget.hasPointerCapture(event.pointerId)) {
            scrub(event);
          }
        }}
      >
        <i ref={mark} className={styles.mark} />
        {labels.map((label) => (
          <b
            key={label.part}
            className={classes(label.year && styles.year)}
            style={{ top: margin + label.part * way + below }}
            aria-hidden="true"
          >
            {label.text}
          </b>
        ))}
      </div>
    </>
  );
}
