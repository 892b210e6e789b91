import { type RefObject, useEffect, useId, useLayoutEffect, useRef, useState } from 'react';
import styles from './Bars.module.css';
import { classes } from './classes';
import { Table } from './Table';

export type BarSeries = { name: string; color: 1 | 2 | 3 | 4 | 5; values: number[] };

type Props = {
  label: string;
  /** What stands below each bar, in the order of the values; each must be different. */
  labels: string[];
  /** The long form of the labels, for the bubble and the table. */
  titles?: string[];
  /** What the labels are, as the head of their column in the table. */
  labelHead?: string;
  series: BarSeries[];
  format?: (value: number) => string;
  /** Whether the figures are shown as a table in place of the bars. */
  asTable?: boolean;
};

const height = 250;
const left = 44;
const bottom = 24;
const top = 8;

/** Bars stacks one bar per label; a table with the same figures stands beside it for screen readers, or in its place. */
export function Bars(props: Props) {
  const { label, labels, titles = labels, labelHead = 'Day', series, format = formatPlain, asTable } = props;
  const id = useId();
  const [over, setOver] = useState<number>();
  const frame = useRef<HTMLDivElement>(null);
  const width = useChartWidth(frame, labels.length, !asTable);
  const rows = labels.map((_, at) => at);
  const columns = [
    { head: labelHead, cell: (at: number) => titles[at] },
    ...series.map((one) => ({ head: one.name, cell: (at: number) => format(one.values[at] ?? 0), end: true })),
  ];

  // Where the bars do not fit, the last and newest are seen first.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a chart of another width is looked at from its end again.
  useLayoutEffect(() => {
    if (frame.current) {
      frame.current.scrollLeft = frame.current.scrollWidth;
    }
  }, [width, asTable]);

  return (
    <figure className={styles.figure} aria-labelledby={id}>
      <figcaption id={id} className="unseen">
        {label}
      </figcaption>
      {!asTable && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable with the keyboard.
        <div role="group" ref={frame} className={styles.scroll} aria-label={label} tabIndex={0}>
          <div className={styles.inner}>
            <Plot {...props} width={width} format={format} onOver={setOver} over={over} />
            {over !== undefined && (
              <Bubble title={titles[over] ?? ''} at={over} of={labels.length} {...{ series, format, width }} />
            )}
          </div>
        </div>
      )}
      <div className={asTable ? styles.table : 'unseen'}>
        <Table label={label} columns={columns} rows={rows} keyOf={(at) => labels[at] ?? ''} fixed={!asTable} />
      </div>
    </figure>
  );
}

/** useChartWidth measures the room of a chart: bars are drawn in true size, and where they would be too thin it scrolls. */
function useChartWidth(frame: RefObject<HTMLElement | null>, bars: number, shown: boolean): number {
  const [room, setRoom] = useState(1100);

  useEffect(() => {
    const element = shown && frame.current;
    if (!element) {
      return;
    }
    const observer = new ResizeObserver(() => setRoom(element.clientWidth || 1100));
    observer.observe(element);
    return () => observer.disconnect();
  }, [frame, shown]);

  const thinnest = room < 600 ? 22 : 3;
  return Math.max(room, left + bars * thinnest);
}

const formatPlain = (value: number) => value.toLocaleString();

type PlotProps = Props & {
  width: number;
  format: (value: number) => string;
  over?: number;
  onOver: (at: number | undefined) => void;
};

function Plot({ labels, series, format, width, over, onOver }: PlotProps) {
  const sums = labels.map((_, at) => series.reduce((sum, one) => sum + (one.values[at] ?? 0), 0));
  const peak = niceCeiling(Math.max(4, ...sums));
  const step = (width - left) / Math.max(1, labels.length);
  const barWidth = Math.min(step * 0.68, 56);
  const every = Math.ceil(84 / step);
  const y = (value: number) => height - bottom - (value / peak) * (height - bottom - top);

  return (
    <svg
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
      className={styles.plot}
      aria-hidden="true"
      onPointerLeave={() => onOver(undefined)}
    >
      {[0, 0.25, 0.5, 0.75, 1].map((part) => (
        <g key={part}>
          <line x1={left} x2={width} y1={y(peak * part)} y2={y(peak * part)} className={styles.axis} />
          <text x={left - 8} y={y(peak * part) + 4} textAnchor="end">
            {format(peak * part)}
          </text>
        </g>
      ))}
      {labels.map((text, at) => {
        const middle = left + (at + 0.5) * step;
        return (
          <g key={text} onPointerEnter={() => onOver(at)}>
            <rect x={middle - step / 2} y={0} width={step} height={height - bottom} className={styles.hit} />
            {over === at && <line x1={middle} x2={middle} y1={top} y2={y(sums[at] ?? 0)} className={styles.cross} />}
            <Stack at={at} series={series} left={middle - barWidth / 2} width={barWidth} y={y} />
            {at % every === 0 && (
              <text x={middle} y={height - 6} textAnchor="middle">
                {text}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}

type StackProps = { at: number; series: BarSeries[]; left: number; width: number; y: (value: number) => number };

function Stack({ at, series, left, width, y }: StackProps) {
  const filled = series.filter((one) => (one.values[at] ?? 0) > 0);
  let base = 0;

  return filled.map((one, index) => {
    const last = index === filled.length - 1;
    const foot = y(base);
    base += one.values[at] ?? 0;
    const head = Math.min(y(base), foot - 1);
    const gap = index > 0 && foot - head > 2 ? 1 : 0;
    const round = last ? Math.min(3, (foot - head) / 2, width / 2) : 0;
    const shape =
      `M${left} ${foot - gap}V${head + round}q0 ${-round} ${round} ${-round}` +
      `h${width - 2 * round}q${round} 0 ${round} ${round}V${foot - gap}z`;

    return <path key={one.name} d={shape} className={styles[`c${one.color}`]} />;
  });
}

type BubbleProps = {
  title: string;
  at: number;
  of: number;
  series: BarSeries[];
  format: (value: number) => string;
  width: number;
};

function Bubble({ title, at, of, series, format, width }: BubbleProps) {
  const place = (left + ((at + 0.5) * (width - left)) / Math.max(1, of)) / width;

  return (
    <div className={classes(styles.bubble, place > 0.6 && styles.before)} style={{ left: `${place * 100}%` }}>
      <b>{title}</b>
      {series.map((one) => (
        <span key={one.name} className={styles.line}>
          <span>{one.name}</span>
          <b>{format(one.values[at] ?? 0)}</b>
        </span>
      ))}
    </div>
  );
}

/** niceCeiling rounds up to a number whose quarters are round, for the five lines of an axis. */
export function niceCeiling(value: number): number {
  for (let power = 10 ** Math.floor(Math.log10(value)); ; power *= 10) {
    const found = [1, 1.2, 1.6, 2, 3, 4, 5, 6, 8].map((factor) => Math.round(factor * power));
    const ceiling = found.find((one) => one >= value && one % 4 === 0);
    if (ceiling !== undefined) {
      return ceiling;
    }
  }
}

/** Legend names the colours of a chart. */
export function Legend({ series }: { series: Array<Pick<BarSeries, 'name' | 'color'>> }) {
  return (
    <div className={styles.legend}>
      {series.map((one) => (
        <span key={one.name}>
          <i className={styles[`k${one.color}`]} />
          {one.name}
        </span>
      ))}
    </div>
  );
}
