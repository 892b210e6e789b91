import { type CSSProperties, type PointerEvent, useRef, useState, type WheelEvent } from 'react';
import { text } from '../text/create';
import { IconButton } from '../ui/Button';
import { classes } from '../ui/classes';
import { Dialog } from '../ui/Dialog';
import { Player } from '../ui/Player';
import { Segments } from '../ui/Segments';
import styles from './Compare.module.css';
import type { Result } from './results';
import { fit, move, type View, zoomAt } from './view';

type Mode = 'side' | 'wipe';

/** Compare shows two results side by side, or one over the other with a border that moves; both zoom and pan together. */
export default function Compare({ pair, onClose }: { pair: [Result, Result]; onClose: () => void }) {
  const pictures = pair.every((result) => result.type === 'IMG');
  const [mode, setMode] = useState<Mode>('side');
  const [swapped, setSwapped] = useState(false);
  const [view, setView] = useState<View>(fit);
  const [border, setBorder] = useState(50);
  const [left, right] = swapped ? [pair[1], pair[0]] : pair;
  const middle = { x: 0, y: 0 };

  return (
    <Dialog open onClose={onClose} title={text.compareTitle} kind="full" bare>
      <div className={styles.compare}>
        <header className={styles.head}>
          <h2>{text.compareTitle}</h2>
          {pictures && (
            <Segments
              label={text.compareTitle}
              value={mode}
              options={[
                { value: 'side', label: text.sideBySide },
                { value: 'wipe', label: text.wipe },
              ]}
              onChange={setMode}
            />
          )}
          <span className="grow" />
          {pictures && (
            <>
              <IconButton icon="minus" label={text.zoomOut} onClick={() => setView(zoomAt(view, 1 / 1.5, middle))} />
              <span className="small soft num">{Math.round(view.scale * 100)} %</span>
              <IconButton icon="plus" label={text.zoomIn} onClick={() => setView(zoomAt(view, 1.5, middle))} />
              <IconButton icon="expand" label={text.zoomFit} onClick={() => setView(fit)} />
            </>
          )}
          <IconButton icon="repeat" label={text.swap} onClick={() => setSwapped(!swapped)} />
          <IconButton icon="close" label={text.compareStop} onClick={onClose} />
        </header>
        {mode === 'side' || !pictures ? (
          <div className={styles.sides}>
            {[left, right].map((result) => (
              <figure key={result.id} className={styles.side}>
                <Stage view={view} onView={setView}>
                  <Content result={result} view={view} />
                </Stage>
                <figcaption className="small soft">
                  <span className="cut">{result.label}</span>
                  <span className="num">{text.seed(result.run.seed)}</span>
                </figcaption>
              </figure>
            ))}
          </div>
        ) : (
          <div className={styles.wipe}>
            <Stage view={view} onView={setView}>
              <Content result={left} view={view} />
              <div className={styles.upper} style={{ clipPath: `inset(0 0 0 ${border}%)` }}>
                <Content result={right} view={view} />
              </div>
              <i className={styles.border} style={{ left: `${border}%` }} />
            </Stage>
            <input
              type="range"
              className={styles.range}
              aria-label={text.wipeAt}
              min={0}
              max={100}
              step={0.5}
              value={border}
              onChange={(event) => setBorder(Number(event.target.value))}
            />
          </div>
        )}
      </div>
    </Dialog>
  );
}

type StageProps = { view: View; onView: (view: View) => void; children: React.ReactNode };

/** Stage turns the wheel and drags of the pointer into zoom and movement. */
function Stage({ view, onView, children }: StageProps) {
  const stage = useRef<HTMLDivElement>(null);
  const last = useRef<{ x: number; y: number }>(undefined);

  const onWheel = (event: WheelEvent) => {
    const box = stage.current?.getBoundingClientRect();
    if (box) {
      const point = { x: event.clientX - box.left - box.width / 2, y: event.clientY - box.top - box.height / 2 };
      onView(zoomAt(view, event.deltaY < 0 ? 1.15 : 1 / 1.15, point));
    }
  };
  const onPointerDown = (event: PointerEvent) => {
    last.current = { x: event.clientX, y: event.clientY };
    event.currentTarget.setPointerCapture(event.pointerId);
  };
  const onPointerMove = (event: PointerEvent) => {
    if (last.current) {
      onView(move(view, event.clientX - last.current.x, event.clientY - last.current.y));
      last.current = { x: event.clientX, y: event.clientY };
    }
  };
  const release = () => {
    last.current = undefined;
  };

  return (
    <div
      ref={stage}
      className={classes(styles.stage, view.scale > 1 && styles.grab)}
      onWheel={onWheel}
      onPointerDown={onPointerDown}
      onPointerMove={onPointerMove}
      onPointerUp={release}
      onPointerCancel={release}
    >
      {children}
    </div>
  );
}

function Content({ result, view }: { result: Result; view: View }) {
  if ((result.type === 'VID' || result.type === 'AUDIO') && result.url) {
    return <Player kind={result.type} src={result.url} poster={result.preview_url} label={result.label} />;
  }
  const style: CSSProperties = { transform: `translate(${view.x}px, ${view.y}px) scale(${view.scale})` };

  return (
    <img className={styles.image} src={result.url ?? undefined} alt={result.label} draggable={false} style={style} />
  );
}
